#include "core/testing/tides.h"

namespace neap::testing {

void Tides::run(Micros time) {
  for (Micros passed(0); passed < time; passed = passed + tide_tick) tick();
}

void Tides::tick() {
  script_.pass(tide_tick);
  for (const auto& [service, in_use] : use) {
    (void)script_.event(ServiceMeasured{service, in_use});
    const auto id = find_live_service(script_.state, service);
    if (!id) continue;
    const auto replicas = script_.state.service(*id).replicas;
    for (const TaskId replica : replicas) serve(script_.state.tasks.at(replica), service);
  }
}

void Tides::serve(const TaskState& task, const std::string& service) {
  if (!holds_devices(task.phase)) return;
  const std::string name = task.spec.name;
  const Pace took = pace[service];
  if (!served_.contains(task.id)) {
    const DeviceState& device = script_.state.device(task.slots.front().device);
    stays_.push_back({service, task.version, script_.state.models[device.model.value].name,
                      std::nullopt, std::nullopt, std::nullopt});
    served_[task.id] = {stays_.size() - 1, task.placed_at, Time(0), std::nullopt, false};
    script_.started(name);
  }
  Served& served = served_.at(task.id);
  Stay& stay = stays_[served.stay];
  if (task.phase == Phase::stopping) {
    // By whatever event it was asked: a measurement, another service's, or a timer at the hour.
    if (!served.asked && task.stop_reason == StopReason::scaled_down) {
      served.asked = task.phase_since;
      given_[service].push_back(task.phase_since);
    }
    if (served.asked && script_.now - *served.asked < took.leave) return;
    if (served.asked && served.ready != Time(0)) stay.left = script_.now - *served.asked;
    served_.erase(task.id);
    script_.exited(name, 0);
    return;
  }
  if (served.ready == Time(0)) {
    if (script_.now - served.placed < took.load) return;
    stay.loaded = script_.now - served.placed;
    served.ready = script_.now;
    script_.healthy(name);
    return;
  }
  answer(task, served, took);
}

bool Tides::is_overloaded(ServiceId id) {
  const ServiceState& service = script_.state.service(id);
  std::int64_t ready = 0;
  for (const TaskId replica : service.replicas) ready += script_.state.tasks.at(replica).ready;
  return use[service.spec.name].value_or(0) > ready * service.spec.concurrency;
}

void Tides::answer(const TaskState& task, Served& served, const Pace& took) {
  const bool late = script_.now - served.ready < took.warm_up;
  const bool too_many = is_overloaded(task.service);
  (void)script_.event(RequestsServed{task.allocation, 10, late ? 4 : 10, seconds(5)});
  if (served.warm) return;
  // Late answers under too much load say nothing of a cold start.
  if (late) served.warm = too_many;
  if (late) return;
  served.warm = true;
  const bool was_late = script_.now - served.ready > tide_tick;
  stays_[served.stay].warmed = was_late ? script_.now - served.ready : Micros(0);
}

}  // namespace neap::testing
