// A connection that sends and receives bytes as they are: what no well-behaved client does.
#pragma once

#include <string>
#include <string_view>

namespace neap::api::testing {

class RawConnection {
 public:
  explicit RawConnection(const std::string& socket_path);
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;
  ~RawConnection();

  [[nodiscard]] bool connected() const { return connected_; }
  bool send(std::string_view bytes);
  // All bytes until `needle` has come, the other end closes, or 5 s have passed.
  std::string read_until(std::string_view needle);
  std::string read_to_end() { return read_until({}); }
  // True when the other end closes within 5 s; what comes before is dropped.
  bool closed();

 private:
  int fd_ = -1;
  bool connected_ = false;
  bool ended_ = false;
};

// A folder of its own under /tmp, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace neap::api::testing
