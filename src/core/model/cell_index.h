// Free devices of one model by rack and by fault domain, so that the cell for a gang is found
// without a look at its nodes. Derived, kept by refresh_device().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap {

// Small counts by dense id, and the largest of them: a tournament in which a change climbs only
// as far as it matters.
class MostOf {
 public:
  void add(std::uint32_t id, std::int32_t change);
  [[nodiscard]] std::int32_t at(std::uint32_t id) const {
    return id < leaves_ ? counts_[leaves_ + id] : 0;
  }
  [[nodiscard]] std::int32_t most() const { return leaves_ == 0 ? 0 : counts_[1]; }
  // The ids with at least so many, the fewest first, then by id.
  [[nodiscard]] std::vector<std::uint32_t> at_least(std::int32_t count) const;
  void clear() { *this = MostOf(); }
  // Counts that were never touched are 0.
  friend bool operator==(const MostOf& a, const MostOf& b);

 private:
  void fit(std::uint32_t id);

  std::size_t leaves_ = 0;            // a power of two, or 0
  std::vector<std::int32_t> counts_;  // counts_[1] is the largest; that of an id at leaves_ + id
};

// For one set of roles.
struct CellCounts {
  MostOf free_by_rack, free_by_domain;  // wholly free devices
  MostOf full_by_rack, full_by_domain;  // nodes with as many of them as any node has
  bool operator==(const CellCounts&) const = default;
};

}  // namespace neap
