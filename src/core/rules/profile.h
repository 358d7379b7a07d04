// Types of tasks (SPEC A3): what is observed of those that run stands in for what a later file of
// the same type leaves open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/profile.h"
#include "core/model/state.h"

namespace neap {

// The type of a task that names none: its name without a number at the end.
[[nodiscard]] std::string usual_profile(std::string_view name);
// Teams do not share types: "TEAM/PROFILE".
[[nodiscard]] std::string profile_key(std::string_view team, std::string_view profile);
[[nodiscard]] const TaskProfile* find_profile(const PoolState& state, std::string_view key);

// Fewer observations say nothing.
inline constexpr std::int64_t observations_needed = 3;
// The nearest rank among those that are kept; nothing while there are too few.
[[nodiscard]] std::optional<std::int64_t> p90_of(const Observed& observed);
[[nodiscard]] std::optional<std::int64_t> most_of(const Observed& observed);

[[nodiscard]] constexpr std::uint8_t learned_bit(Learned field) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(field));
}

// Fills in what is `open` (a set of Learned) from the type, and says in `learned` what it gave:
// W, R, k and the stall by their p90 (POLICIES 1), memory by the highest use that was seen.
void fill_open(const PoolState& state, std::uint8_t open, TaskSpec& spec);
void fill_open(const PoolState& state, std::uint8_t open, ServiceSpec& spec);

// Devices of a request that leaves their number open: as few as hold `memory`, of the smallest
// model that does with so few. Sets count and memory. Error: no device is there yet, or nothing is
// known of the memory.
[[nodiscard]] Result<void> choose_count(const PoolState& state, MiB memory, Request& request);
// What the whole task needs, as declared or as seen of its type; 0: not known.
[[nodiscard]] MiB memory_known(const PoolState& state, std::string_view key,
                               const MemorySplit& split);

// Where a declaration is below what was seen; empty: nowhere.
[[nodiscard]] std::string memory_warning(const PoolState& state, std::string_view key,
                                         const Request& request);

// ---- for apply -------------------------------------------------------------------------------

void note_submission(PoolState& state, const TaskSpec& spec);
void note_submission(PoolState& state, const ServiceSpec& spec, TierId tier);
enum class Observation : std::uint8_t { memory, work, save, stall, restore };
void observe(PoolState& state, const TaskState& task, Observation what, std::int64_t value);
// The highest use of one of its devices so far.
void observe_memory(PoolState& state, TaskState& task, MiB peak);
// At the end of an allocation, before its progress is booked.
void observe_end(PoolState& state, const TaskState& task);

}  // namespace neap
