// What was observed of tasks of one type (SPEC A3): it stands in for what their next file leaves
// open. Kept by apply; part of the state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/spec.h"
#include "core/model/units.h"

namespace neap {

// The newest observations; older ones no longer count.
struct Observed {
  std::int64_t count = 0;          // in all
  std::vector<std::int64_t> last;  // newest last
};
inline constexpr std::size_t observations_kept = 16;

struct TaskProfile {
  std::string name;
  Purpose purpose{};
  Time used;                            // when a task of this type was last submitted or observed
  MemorySplit split;                    // as last declared
  MiB declared{0};                      // of each device, likewise
  Observed memory;                      // highest use of one device, in MiB
  Observed work, save, stall, restore;  // in µs
};

struct ProfileBook {
  std::vector<TaskProfile> known;  // sorted by name
};
// The one that was unused for longest is forgotten.
inline constexpr std::size_t most_profiles = 512;

}  // namespace neap
