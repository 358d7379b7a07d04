// The recorded use of a cluster: how many devices were in use, over time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "trace/bytes.h"

namespace neap::assess {

inline constexpr std::int64_t most_use_rows = 10'000'000;
inline constexpr std::int64_t most_use_slots = 1'000'000;
inline constexpr std::int64_t most_use_devices = 1'000'000;

struct UseTrace {
  Micros slot;
  std::vector<std::int64_t> milli;  // of devices, the mean of each slot, rounded up
};

// Use over time, as it is told piece by piece, in the order of time.
class UseFiller {
 public:
  explicit UseFiller(Micros slot) : slot_(slot) {}

  // In µs from the first slot's begin. False: more slots than are taken.
  [[nodiscard]] bool hold(std::int64_t from, std::int64_t until, std::int64_t milli);
  // What is covered in full.
  [[nodiscard]] UseTrace take() const;

 private:
  __extension__ using Wide = __int128;

  Micros slot_;
  std::int64_t covered_ = 0;
  std::vector<Wide> sums_;  // milli-devices·µs
};

// CSV with a header that names `time`, in seconds from any origin and growing, and `devices`, such
// as 3 or 2.5. What a row says holds until the next one; the last row holds as long as the one
// before it did. The first slot begins with the first row; an unfinished slot at the end is left
// out.
[[nodiscard]] Result<UseTrace> read_use(trace::Bytes bytes, Micros slot);
[[nodiscard]] Result<UseTrace> read_use(const std::string& path, Micros slot);

}  // namespace neap::assess
