#include "core/rules/drill.h"

#include <algorithm>
#include <array>

#include "core/rules/scale.h"
#include "core/rules/tide.h"

namespace neap {

namespace {

std::string seconds_text(Micros length) {
  const std::int64_t tenths = (length.value + 50'000) / 100'000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

DrillCheck at_most(std::string name, std::int64_t seen, std::int64_t limit) {
  return {std::move(name), std::to_string(seen), "at most " + std::to_string(limit), seen <= limit};
}

DrillCheck at_most(std::string name, Micros seen, Micros limit) {
  return {std::move(name), seconds_text(seen), "at most " + seconds_text(limit), seen <= limit};
}

bool has_left(const DrillVictim& victim) { return victim.left != Time::never(); }

std::int64_t placed_from(const DrillState& drill, RoomSource source) {
  return std::count_if(drill.placed.begin(), drill.placed.end(),
                       [&](const DrillReplica& r) { return r.source == source; });
}

// How far a check may still change. Each is told once it is broken for good.
enum class OpenUntil : std::uint8_t { demand_is_over, drill_is_over };

DrillCheck open_until(OpenUntil until, const DrillState& drill, DrillCheck check,
                      bool can_be_kept) {
  const bool undecided = until == OpenUntil::demand_is_over ? drill.phase == DrillPhase::demand
                                                            : drill.phase != DrillPhase::none;
  check.open = undecided && can_be_kept;
  return check;
}

// What can only grow is broken for good once it is.
DrillCheck open_while_kept(const DrillState& drill, DrillCheck check) {
  const bool kept = check.kept;
  return open_until(OpenUntil::drill_is_over, drill, std::move(check), kept);
}

DrillCheck check_served(const DrillState& drill) {
  Micros slowest{0};
  std::int64_t served = 0;
  for (const DrillReplica& replica : drill.placed) {
    if (replica.ready == Time::never()) continue;
    ++served;
    slowest = std::max(slowest, replica.ready - replica.asked);
  }
  const std::int64_t wanted = drill.replicas - drill.before;
  const bool in_time = slowest <= drill.limits.ready_within;
  return open_until(
      OpenUntil::demand_is_over, drill,
      {"replicas that served, the slowest after",
       std::to_string(served) + " of " + std::to_string(wanted) + ", " + seconds_text(slowest),
       "all within " + seconds_text(drill.limits.ready_within), served >= wanted && in_time},
      in_time);
}

DrillCheck check_order(const DrillState& drill) {
  std::string figure;
  constexpr std::array sources{RoomSource::free, RoomSource::guard, RoomSource::buffer,
                               RoomSource::yielded};
  for (const RoomSource source : sources) {
    figure += (figure.empty() ? "" : ", ") + std::to_string(placed_from(drill, source)) + " " +
              std::string(name_of(source));
  }
  figure += "; " + std::to_string(drill.idle_reserve) + " idle when the first was asked to yield";
  // It is counted when the first is asked.
  return open_until(OpenUntil::drill_is_over, drill,
                    {"replicas placed, by whose room; idle guard and buffer", std::move(figure),
                     "nobody yields while guard or buffer have room", drill.idle_reserve == 0},
                    drill.victims.empty());
}

// What became of all who were asked: the number that the limit is about comes first.
DrillCheck check_preempted(const DrillState& drill) {
  std::int64_t yielded = 0, stopped = 0, stayed = 0;
  for (const DrillVictim& victim : drill.victims) {
    if (victim.withdrawn) {
      ++stayed;
    } else if (victim.forced) {
      ++stopped;
    } else if (has_left(victim)) {
      ++yielded;
    }
  }
  const std::int64_t preempted = drill_preemptions(drill);
  DrillCheck check = at_most("tasks preempted", preempted, drill.limits.preemptions);
  const std::int64_t asked = std::ssize(drill.victims) - yielded - stopped - stayed;
  check.figure += ": " + std::to_string(yielded) + " yielded, " + std::to_string(stopped) +
                  " stopped" + (asked > 0 ? ", " + std::to_string(asked) + " asked" : "") +
                  "; beside them " + std::to_string(stayed) + " told to stay";
  return check;
}

DrillCheck check_checkpoints(const DrillState& drill) {
  std::int64_t left = 0, saved = 0;
  for (const DrillVictim& victim : drill.victims) {
    if (!has_left(victim)) continue;
    ++left;
    saved += !victim.forced && victim.lost.value <= 0 ? 1 : 0;
  }
  return {"left with all their work saved", std::to_string(saved) + " of " + std::to_string(left),
          drill.limits.lost.value > 0 ? "see lost work" : "all",
          saved == left || drill.limits.lost.value > 0};
}

DrillCheck check_forced(const DrillState& drill) {
  const auto forced = std::count_if(drill.victims.begin(), drill.victims.end(),
                                    [](const DrillVictim& v) { return v.forced; });
  return at_most("did not leave in time, and were stopped", forced, 0);
}

DrillCheck check_resumed(const DrillState& drill) {
  std::int64_t left = 0, resumed = 0;
  Micros slowest{0};
  const Time over =
      drill.settle_by == Time::never() ? drill.until : drill.settle_by - drill.limits.resume_within;
  for (const DrillVictim& victim : drill.victims) {
    if (!has_left(victim)) continue;
    ++left;
    if (victim.resumed == Time::never()) continue;
    ++resumed;
    slowest = std::max(slowest, victim.resumed - over);
  }
  const bool in_time = slowest <= drill.limits.resume_within;
  return open_until(
      OpenUntil::drill_is_over, drill,
      {"resumed, the last after the demand ended",
       std::to_string(resumed) + " of " + std::to_string(left) + ", " + seconds_text(slowest),
       "all within " + seconds_text(drill.limits.resume_within), resumed == left && in_time},
      in_time);
}

void add_pause_checks(const DrillState& drill, std::vector<DrillCheck>& out) {
  if (drill.limits.pause.value == 0) return;
  const bool rehearsed = drill.resumed_at != Time::never();
  const auto add = [&](DrillCheck check, bool can_be_kept) {
    out.push_back(open_until(OpenUntil::demand_is_over, drill, std::move(check), can_be_kept));
  };
  add({"pause rehearsed and released",
       rehearsed ? seconds_text(drill.resumed_at - drill.paused_at) + ", then " +
                       std::to_string(drill.asked_after_pause) + " asked"
                 : "no",
       "for " + seconds_text(drill.limits.pause),
       rehearsed && drill.resumed_at - drill.paused_at >= drill.limits.pause},
      !rehearsed);
  DrillCheck froze =
      at_most("pause froze preemption after", drill.froze, drill.limits.freeze_within);
  const bool in_time = froze.kept;
  froze.kept = in_time && rehearsed;
  add(std::move(froze), !rehearsed && in_time);
  add(at_most("asked to yield during the pause", drill.asked_in_pause, 0),
      !rehearsed && drill.asked_in_pause == 0);
}

}  // namespace

std::string_view name_of(RoomSource source) {
  constexpr std::array<std::string_view, 5> names{"none", "free", "guard", "buffer", "yielded"};
  return names[static_cast<std::size_t>(source)];
}

std::string_view name_of(DrillPhase phase) {
  constexpr std::array<std::string_view, 3> names{"none", "demand", "settling"};
  return names[static_cast<std::size_t>(phase)];
}

std::int32_t drill_preemptions(const DrillState& drill) {
  return static_cast<std::int32_t>(
      std::count_if(drill.victims.begin(), drill.victims.end(),
                    [](const DrillVictim& victim) { return !victim.withdrawn; }));
}

Micros drill_lost(const DrillState& drill) {
  Micros lost{0};
  for (const DrillVictim& victim : drill.victims) lost += victim.lost;
  return lost;
}

std::vector<DrillCheck> drill_checks(const DrillState& drill) {
  std::vector<DrillCheck> out;
  const bool demand = drill.phase == DrillPhase::demand;
  out.push_back({"ran its time",
                 demand                    ? "under way"
                 : drill.withdrawn.empty() ? "yes"
                                           : "withdrawn: " + drill.withdrawn,
                 seconds_text(drill.until - drill.began), drill.withdrawn.empty(), demand});
  out.push_back(check_served(drill));
  out.push_back(check_order(drill));
  out.push_back(open_while_kept(drill, check_preempted(drill)));
  out.push_back(open_while_kept(drill, at_most("lost work", drill_lost(drill), drill.limits.lost)));
  out.push_back(open_while_kept(drill, check_checkpoints(drill)));
  out.push_back(open_while_kept(drill, check_forced(drill)));
  out.push_back(check_resumed(drill));
  add_pause_checks(drill, out);
  return out;
}

namespace {

bool is_late(const DrillState& drill, Time now) {
  return std::any_of(drill.placed.begin(), drill.placed.end(), [&](const DrillReplica& r) {
    return r.ready == Time::never() && now >= r.asked + drill.limits.ready_within;
  });
}

// Why the demand must end now; empty: for no reason.
std::string exceeded(const PoolState& state, Time now) {
  const DrillState& drill = state.drill;
  if (state.service(drill.service).removed) return "the service was removed";
  if (state.pause.active && !drill.pausing) return "the pool was paused by " + state.pause.by;
  if (drill_preemptions(drill) > drill.limits.preemptions) {
    return std::to_string(drill_preemptions(drill)) + " tasks were asked to yield, at most " +
           std::to_string(drill.limits.preemptions) + " may be";
  }
  if (drill_lost(drill) > drill.limits.lost) {
    return seconds_text(drill_lost(drill)) + " of work was lost, at most " +
           seconds_text(drill.limits.lost) + " may be";
  }
  if (std::any_of(drill.victims.begin(), drill.victims.end(),
                  [](const DrillVictim& v) { return v.forced; })) {
    return "a task did not leave in time";
  }
  if (is_late(drill, now)) {
    return "a replica did not serve within " + seconds_text(drill.limits.ready_within);
  }
  return {};
}

bool is_settled(const PoolState& state, Time now) {
  const DrillState& drill = state.drill;
  const ServiceState& service = state.service(drill.service);
  const bool extra = !service.removed &&
                     staying_replicas(state, service) > replicas_after_drill(state, service, now);
  if (extra) return false;
  const bool back =
      std::all_of(drill.victims.begin(), drill.victims.end(),
                  [](const DrillVictim& v) { return v.withdrawn || v.resumed != Time::never(); });
  return back && std::all_of(drill.placed.begin(), drill.placed.end(), [&](const DrillReplica& r) {
           const TaskState* task = state.tasks.find(r.task);
           return task == nullptr || has_ended(task->phase) ||
                  task->stop_reason == StopReason::none;
         });
}

DrillEnded verdict(const PoolState& state, Time now) {
  DrillEnded ended{"burst", true, now, {}};
  for (const DrillCheck& check : drill_checks(state.drill)) {
    if (check.kept) continue;
    ended.passed = false;
    ended.detail += (ended.detail.empty() ? "" : "; ") + check.name + ": " + check.figure + " (" +
                    check.limit + ")";
  }
  if (ended.passed) ended.detail = "every limit was kept";
  return ended;
}

}  // namespace

std::optional<Decision> drill_step(const PoolState& state, Time now) {
  const DrillState& drill = state.drill;
  if (drill.phase == DrillPhase::none) return std::nullopt;
  if (drill.phase == DrillPhase::settling) {
    // In a pause nobody resumes, and the extra replicas stay.
    if (state.pause.active || (!is_settled(state, now) && now < drill.settle_by))
      return std::nullopt;
    return verdict(state, now);
  }
  if (std::string why = exceeded(state, now); !why.empty()) return DrillWithdrawn{std::move(why)};
  if (now >= drill.until) return DrillWithdrawn{};
  if (drill.pausing) {
    if (now < drill.paused_at + drill.limits.pause) return std::nullopt;
    return DrillResumed{};
  }
  if (drill.paused_at == Time::never() && now >= drill.pause_at) return DrillPaused{};
  return std::nullopt;
}

std::int32_t least_replicas(const PoolState& state, const ServiceState& service) {
  const DrillState& drill = state.drill;
  const bool rehearsed = drill.phase == DrillPhase::demand && drill.service == service.id;
  return std::max(service.spec.min_replicas, rehearsed ? drill.replicas : 0);
}

std::int32_t replicas_after_drill(const PoolState& state, const ServiceState& service, Time now) {
  const DrillState& drill = state.drill;
  if (drill.phase != DrillPhase::settling || drill.service != service.id) {
    return service.spec.max_replicas;
  }
  std::int64_t needed = std::max(drill.before, service.spec.min_replicas);
  const ScaleSpec& scale = scale_of(state, service);
  if (scale.mode == ScaleMode::tidal) {
    needed = std::max<std::int64_t>(needed, tidal_target(state, service, now).value_or(0));
  } else if (service.in_use) {
    const std::int64_t filled = scale.up_above.value * service.spec.concurrency;
    if (filled > 0) {
      needed = std::max(needed, (*service.in_use * all_ppm.value + filled - 1) / filled);
    }
  }
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(needed, std::max(service.spec.max_replicas, drill.before)));
}

}  // namespace neap
