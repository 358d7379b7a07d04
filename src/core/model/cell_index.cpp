#include "core/model/cell_index.h"

#include <algorithm>
#include <bit>

namespace neap {

void MostOf::fit(std::uint32_t id) {
  if (id < leaves_) return;
  const std::size_t leaves = std::bit_ceil(static_cast<std::size_t>(id) + 1);
  std::vector<std::int32_t> counts(2 * leaves, 0);
  for (std::size_t i = 0; i < leaves_; ++i) counts[leaves + i] = counts_[leaves_ + i];
  for (std::size_t at = leaves - 1; at > 0; --at) {
    counts[at] = std::max(counts[2 * at], counts[2 * at + 1]);
  }
  counts_ = std::move(counts);
  leaves_ = leaves;
}

void MostOf::add(std::uint32_t id, std::int32_t change) {
  fit(id);
  std::size_t at = leaves_ + id;
  counts_[at] += change;
  while (at > 1) {
    const std::int32_t most = std::max(counts_[at], counts_[at ^ 1]);
    at /= 2;
    if (counts_[at] == most) return;
    counts_[at] = most;
  }
}

std::vector<std::uint32_t> MostOf::at_least(std::int32_t count) const {
  std::vector<std::uint32_t> ids;
  if (most() < count) return ids;
  for (std::uint32_t id = 0; id < leaves_; ++id) {
    if (counts_[leaves_ + id] >= count) ids.push_back(id);
  }
  std::stable_sort(ids.begin(), ids.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return at(a) < at(b); });
  return ids;
}

bool operator==(const MostOf& a, const MostOf& b) {
  const auto end = static_cast<std::uint32_t>(std::max(a.leaves_, b.leaves_));
  for (std::uint32_t id = 0; id < end; ++id) {
    if (a.at(id) != b.at(id)) return false;
  }
  return true;
}

}  // namespace neap
