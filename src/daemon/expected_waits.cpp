#include "daemon/expected_waits.h"

#include <algorithm>

#include "core/rules/deadline.h"
#include "simulate/forecast/replay.h"

namespace neap::daemon {

namespace {

Micros in_minutes(Micros wait) {
  const Micros minute = minutes(1);
  return minute * ((wait.value + minute.value - 1) / minute.value);
}

// A tenth more or less is the same wait.
bool differs(Micros now, Micros before) {
  const std::int64_t change = now > before ? (now - before).value : (before - now).value;
  return change > std::max(minutes(1).value, before.value / 10) ||
         (now.value == 0) != (before.value == 0);
}

}  // namespace

ExpectedWaits::ExpectedWaits(const PoolState& state) {
  for (std::uint8_t t = 0; t < state.spec.tiers.size(); ++t) {
    const TierSpec& tier = state.spec.tiers[t];
    const bool training = tier.purpose != Purpose::inference;
    known_.push_back({training ? tier.name : "", expected_wait(state, TierId(t))});
  }
  state.tasks.for_each([&](const TaskState& task) {
    // A stage that waits for others would not start with all devices free.
    if (task.phase == Phase::waiting && !task.awaits_stages) {
      waiting_.emplace_back(task.id, task.tier);
    }
  });
}

std::vector<WaitExpected> ExpectedWaits::changed_by(const forecast::Forecast& forecast) const {
  std::vector<WaitExpected> now = known_;
  for (WaitExpected& tier : now) tier.wait = Micros(0);
  for (const auto& [id, tier] : waiting_) {
    const forecast::Start* start = forecast.of(id);
    if (start == nullptr) continue;
    const Micros horizon = forecast::Limits{}.horizon;
    const Micros wait = start->p50 == Time::never() ? horizon : start->p50 - forecast.made;
    Micros& longest = now[tier.value].wait;
    longest = std::max(longest, in_minutes(std::max(Micros(0), wait)));
  }
  std::vector<WaitExpected> changed;
  for (std::size_t t = 0; t < now.size(); ++t) {
    if (!now[t].tier.empty() && differs(now[t].wait, known_[t].wait)) changed.push_back(now[t]);
  }
  return changed;
}

}  // namespace neap::daemon
