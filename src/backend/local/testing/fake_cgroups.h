// A directory that looks like mounted hierarchies: the kernel makes control files, so here they
// are made beforehand.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace neap::local::testing {

class FakeCgroups {
 public:
  FakeCgroups();
  ~FakeCgroups();
  FakeCgroups(const FakeCgroups&) = delete;
  FakeCgroups& operator=(const FakeCgroups&) = delete;

  [[nodiscard]] const std::string& root() const { return root_; }
  void file(const std::string& name, const std::string& content) const;
  [[nodiscard]] std::string read(const std::string& name) const;

  // The control files of the groups neap/p/<id>.
  void make_v2(std::initializer_list<std::uint64_t> ids) const;
  void make_v1(std::initializer_list<std::uint64_t> ids) const;

 private:
  std::string root_;
};

}  // namespace neap::local::testing
