#include "core/rules/deadline.h"

#include <algorithm>

#include "core/model/check.h"

namespace neap {

namespace {

constexpr Micros least_margin = minutes(30);

std::optional<TierId> tier_named(const PoolState& state, const std::string& name) {
  for (std::size_t t = 0; t < state.spec.tiers.size(); ++t) {
    if (state.spec.tiers[t].name == name) return TierId(static_cast<std::uint8_t>(t));
  }
  return std::nullopt;
}

std::int64_t milli_asked(const TaskState& task) {
  return task.spec.request.share.value * task.spec.request.count;
}

}  // namespace

Micros expected_wait(const PoolState& state, TierId tier) {
  return tier.value < state.expected_waits.size() ? state.expected_waits[tier.value] : Micros(0);
}

DeadlineVerdict judge_deadline(const PoolState& state, const TaskState& task) {
  if (!task.spec.deadline || task.purpose == Purpose::inference) return DeadlineVerdict::none;
  if (!task.spec.work) return DeadlineVerdict::work_unknown;
  const Time done =
      state.now + *task.spec.work + restore_of(task) + expected_wait(state, task.tier);
  return done <= *task.spec.deadline ? DeadlineVerdict::accepted : DeadlineVerdict::too_soon;
}

std::optional<TierId> deadline_tier(const PoolState& state) {
  return tier_named(state, state.spec.fairness.deadline_tier);
}

TierId own_tier(const PoolState& state, const TaskState& task) {
  const auto tier = tier_named(state, task.spec.tier);
  NEAP_CHECK(tier.has_value());
  return *tier;
}

Time near_deadline_at(const PoolState& state, const TaskState& task) {
  const auto left = remaining_work(task, state.now);
  if (task.deadline != DeadlineVerdict::accepted || !left) return Time::never();
  const Micros margin = std::max(*left / 5, least_margin);
  return *task.spec.deadline - *left - restore_of(task) - expected_wait(state, task.tier) - margin;
}

Time latest_start(const PoolState& state, const TaskState& task) {
  const Micros left = remaining_work(task, state.now).value_or(Micros(0));
  return *task.spec.deadline - left - restore_of(task);
}

bool can_keep_deadline(const PoolState& state, const TaskState& task) {
  return state.now <= latest_start(state, task);
}

bool may_be_promoted(const PoolState& state, const TaskState& task) {
  std::int64_t all = 0;
  std::int64_t promoted = 0;
  state.tasks.for_each([&](const TaskState& other) {
    const bool counts = !has_ended(other.phase) && other.purpose != Purpose::inference &&
                        other.spec.team == task.spec.team;
    if (!counts) return;
    all += milli_asked(other);
    promoted += other.tier != own_tier(state, other) ? milli_asked(other) : 0;
  });
  if (promoted == 0) return true;
  return static_cast<Wide>(promoted + milli_asked(task)) * all_ppm.value <=
         static_cast<Wide>(all) * state.spec.fairness.promoted_max.value;
}

}  // namespace neap
