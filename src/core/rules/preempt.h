// Who yields for whom: the cost table and the cheapest set of victims (POLICIES section 1).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/state.h"
#include "core/model/victim_bounds.h"

namespace neap {

// The cheapest feasible way in which a running task could release what it holds.
struct Offer {
  ReleaseMode mode{};
  Time release_by;        // p95
  std::int64_t cost = 0;  // milli-GPU·µs, saturated at 2^62; 0 for finish
};

// Expected moments and lengths of a running task, measured before declared before default.
struct ReleaseTimes {
  Micros save{0}, stall{0}, drain{0}, release{0}, restore{0};  // k, stall, s, τ, R
  std::optional<Micros> remaining;                             // W
  std::optional<Time> next_boundary;                           // b (p95); none without boundaries
};
[[nodiscard]] ReleaseTimes release_times(const PoolState& state, const TaskState& task, Time now);

// P >= 9 R keeps 90 % of a segment useful.
inline constexpr std::int64_t protected_restores = 9;
// Inside its protected window P, a declared window, or past its budget of the day. Never on
// lendable devices (role buffer).
[[nodiscard]] bool is_protected(const PoolState& state, const TaskState& task, Time now);

// May a demand of this shape take from this task at all: running, of a lower tier, not inference,
// interactive only for inference (D1), interruptible.
[[nodiscard]] bool is_candidate(const PoolState& state, const TaskState& task, const Shape& demand,
                                Taking taking = Taking::lighter);

// The same, whoever waits for it to leave already. Taking::equal: a batch task of the same tier
// may too, where a guarantee asks for it (rules/teams.h).
[[nodiscard]] bool may_yield_to(const PoolState& state, const TaskState& task, const Shape& demand,
                                Taking taking = Taking::lighter);

// Nothing when no mode releases by `needed_by`. Kill is among the modes where the pool allows
// break-glass; find_victims() turns to it only when no set of victims can do without.
[[nodiscard]] std::optional<Offer> cheapest_offer(const PoolState& state, const TaskState& task,
                                                  Time now, Time needed_by);

struct Proposal {
  std::vector<Slot> slots;      // where the demand would be placed
  std::vector<Victim> victims;  // sorted by task; removing any breaks the placement
  std::int64_t cost = 0;
  std::int64_t lower_bound = 0;  // equal to cost when the search was exact
};

// The cheapest victim set for which place_on_node() accepts the demand. Exact below a bound on
// operations (10^5), beyond it the better of two greedies with reverse-delete and a lower bound.
// Equal costs: fewer victims, then the smaller node. Nothing: no set is feasible by `needed_by`,
// or none was found within the bound. Only the index of `state` changes.
[[nodiscard]] std::optional<Proposal> find_victims(PoolState& state, const Shape& demand, Time now,
                                                   Time needed_by);

// Brings the bounds of changed nodes up to date, about so many tenants at each call on average: a
// crowded node takes the allowance of several calls. Changes no decision.
void settle_victim_bounds(PoolState& state, Time now, std::int64_t tenants);

}  // namespace neap
