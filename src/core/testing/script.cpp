#include "core/testing/script.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/model/codec.h"
#include "core/model/pool_index.h"
#include "core/rules/explain.h"

namespace neap::testing {

namespace {

void must(const Result<void>& result) {
  if (result) return;
  std::fprintf(stderr, "test script: %s\n", to_string(result.error()).c_str());
  std::abort();
}

}  // namespace

Script::Script() {
  spec.tiers = {{"infer_core", 100, Purpose::inference},
                {"interactive", 90, Purpose::interactive},
                {"train_deadline_near", 80, Purpose::batch},
                {"train_normal", 40, Purpose::batch}};
}

void Script::configure() { must(event(PoolConfigured{spec})); }

void Script::node(const std::string& name, const std::string& domain, int devices, MiB memory,
                  const std::string& model) {
  NodeJoined joined{{name, domain, {}}};
  for (int i = 0; i < devices; ++i) {
    joined.spec.devices.push_back({name + "-" + std::to_string(i), model, memory, false});
  }
  must(event(std::move(joined)));
}

TaskSpec Script::training(const std::string& name, int gpus) {
  TaskSpec task;
  task.name = name;
  task.tier = "train_normal";
  task.request.count = gpus;
  task.contract.sdk = true;
  task.contract.on_demand = true;
  task.contract.interval = minutes(10);
  return task;
}

ServiceSpec Script::service(const std::string& name, int min, int max) {
  ServiceSpec service;
  service.name = name;
  service.tier = "infer_core";
  service.min_replicas = min;
  service.max_replicas = max;
  service.concurrency = 10;
  return service;
}

Result<void> Script::submit(TaskSpec task) { return event(TaskSubmitted{std::move(task)}); }
Result<void> Script::submit(ServiceSpec service) {
  return event(ServiceSubmitted{std::move(service)});
}

Result<void> Script::event(Event event) {
  last = {};
  if (auto allowed = check_event(state, event); !allowed) return allowed;
  step(state, now, event, last);
  return {};
}

void Script::pass(Micros time) {
  const Time end = now + time;
  while (next_timer(state) <= end) {
    now = std::max(now, next_timer(state));
    must(event(TimerFired{}));
  }
  now = end;
}

void Script::work(Micros time) {
  for (const Time end = now + time; now < end;) {
    pass(std::min(minutes(5), end - now));
    std::vector<std::string> running;
    state.tasks.for_each([&](const TaskState& t) {
      if (t.phase == Phase::running && t.spec.contract.sdk) running.push_back(t.spec.name);
    });
    for (const std::string& name : running) checkpoint(name);
  }
}

ReportStamp Script::next_stamp(const std::string& name) const {
  const TaskState& t = task(name);
  return {t.allocation, 1, t.report_epoch == 0 ? 1 : t.report_sequence + 1};
}

void Script::started(const std::string& name) { must(event(TaskStarted{next_stamp(name)})); }
void Script::healthy(const std::string& name) { must(event(ReplicaHealthy{next_stamp(name)})); }

void Script::checkpoint(const std::string& name) {
  CheckpointDurable e;
  e.stamp = next_stamp(name);
  e.step = task(name).durable_step + 100;
  e.path = "/ckpt/" + std::to_string(e.step);
  e.captured = now;
  must(event(std::move(e)));
}

void Script::exited(const std::string& name, int code, int signal) {
  TaskExited e;
  e.stamp = next_stamp(name);
  e.code = code;
  e.signal = signal;
  must(event(std::move(e)));
}

const TaskState& Script::task(const std::string& name) const {
  if (const auto live = find_live_task(state, name)) return state.tasks.at(*live);
  const TaskState* newest = nullptr;
  state.tasks.for_each([&](const TaskState& t) {
    if (t.spec.name == name) newest = &t;
  });
  if (newest == nullptr) {
    std::fprintf(stderr, "test script: no task %s\n", name.c_str());
    std::abort();
  }
  return *newest;
}

std::string Script::where(const std::string& name) const {
  const TaskState& t = task(name);
  std::string text(name_of(t.phase));
  if (t.phase == Phase::waiting) return text + " " + std::string(name_of(wait_code_of(state, t)));
  NodeId node;
  for (const Slot& slot : t.slots) {
    const DeviceState& device = state.device(slot.device);
    text += device.node == node ? "," : " " + state.node(device.node).name + ":";
    text += std::to_string(device.index);
    node = device.node;
  }
  return text;
}

std::vector<std::string> Script::decisions_of_last_event() const {
  std::vector<std::string> names;
  for (const Decision& decision : last.decisions) names.emplace_back(name_of(decision));
  return names;
}

bool Script::decided(std::string_view decision) const {
  return std::any_of(last.decisions.begin(), last.decisions.end(),
                     [&](const Decision& d) { return name_of(d) == decision; });
}

}  // namespace neap::testing
