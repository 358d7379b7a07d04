// Everything that decides what one running task offers, read from it once. What it offers by a
// moment, and when that changes, follow without another look at the task.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/victim_bounds.h"
#include "core/rules/preempt.h"

namespace neap {

struct Outlook {
  Time now;
  std::int64_t held = 0;             // g
  Time finish = Time::never();       // t + W
  Time finish_only = Time::never();  // from here on W <= R
  bool is_protected = false;
  Time protection_changes = Time::never();

  std::optional<Time> boundary_release;   // b + k + τ; none without the mode
  Time boundary_moves = Time::never();    // b is another one from here on
  std::optional<Micros> on_demand_after;  // s + k + τ
  Time on_demand_from;                    // not before: until then it restores what it had saved
  std::optional<Micros> kill_after;       // τ; while the work lost is within its limit
  Time kill_ends = Time::never();
  std::int64_t boundary_cost = 0, on_demand_cost = 0;
  std::int64_t kill_cost = 0;          // without what is lost; may be negative
  Time captured;                       // c
  Time deadline_near = Time::never();  // from here on the deadline term counts
};
[[nodiscard]] Outlook outlook_of(const PoolState& state, const TaskState& task, Time now);

// The same for a task with devices on several nodes, as one of them may count on it: with the
// largest gain, because who comes and goes on the other nodes is not noticed here. (A change of
// roles is: see VictimBounds::touch.)
[[nodiscard]] Outlook widest_outlook_of(const PoolState& state, const TaskState& task, Time now);

[[nodiscard]] std::optional<Offer> offer_by(const Outlook& outlook, Time needed_by,
                                            Killing killing);

// A cost that no offer of this task undercuts before `until`, for demands that can wait `horizon`.
[[nodiscard]] VictimBounds::Bound offer_bound(const Outlook& outlook, Micros horizon,
                                              Killing killing);

}  // namespace neap
