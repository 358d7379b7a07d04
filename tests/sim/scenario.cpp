#include "tests/sim/scenario.h"

#include <gtest/gtest.h>

#include "core/rules/explain.h"

namespace neap::sim {

std::vector<NodeSpec> nodes_of(std::int32_t devices, std::int32_t per_node, std::int32_t domains) {
  std::vector<NodeSpec> nodes;
  for (std::int32_t made = 0; made < devices;) {
    NodeSpec node;
    const auto n = static_cast<std::int32_t>(nodes.size());
    node.name = "n" + std::to_string(n);
    node.fault_domain = "rack" + std::to_string(n % domains);
    for (std::int32_t d = 0; d < per_node && made < devices; ++d, ++made) {
      node.devices.push_back({.uuid = "GPU-" + node.name + "-" + std::to_string(d),
                              .model = "A100-80G",
                              .memory = MiB(81'920)});
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

PoolSpec pool_with(std::int32_t guard, std::int32_t buffer) {
  PoolSpec pool;
  pool.inference_guard_min = guard;
  pool.elastic_buffer = buffer;
  pool.tiers = field_tiers();
  pool.scale.stale_after = minutes(2);
  return pool;
}

TaskSpec task_of(Job job) {
  simulated::Behaviour& b = job.behaviour;
  b.steps = job.length.value / b.step.value;
  TaskSpec task;
  task.name = job.name;
  task.team = "red";
  task.tier = job.tier;
  task.request.count = job.devices;
  task.contract.sdk = true;
  task.contract.interval = b.interval;
  task.contract.save = b.save;
  task.contract.stall = b.stall;
  task.contract.release = b.release;
  task.contract.restore = b.load + b.restore;
  task.work = undisturbed_work(b);
  task.launch = launch_text(b);
  return task;
}

TaskSpec share_of(TaskSpec task, MiB memory, MilliGpu share) {
  task.request.memory = memory;
  task.request.share = share;
  return task;
}

ServiceSpec service_of(const std::string& name, std::int32_t least, std::int32_t most) {
  simulated::Behaviour behaviour;
  behaviour.load = seconds(30);
  ServiceSpec service;
  service.name = name;
  service.team = "web";
  service.tier = "infer_core";
  service.min_replicas = least;
  service.max_replicas = most;
  service.concurrency = 10;
  service.launch = launch_text(behaviour);
  return service;
}

Load constant(std::int64_t in_use) {
  return [in_use](Time) -> std::optional<std::int64_t> { return in_use; };
}

Stage::Stage(const PoolSpec& pool, const std::vector<NodeSpec>& nodes, Site::Options options)
    : site_(options) {
  site_.open(pool, nodes);
  site_.run_for(seconds(5));
}

Stage::~Stage() {
  if (site_.daemon().is_up()) {
    site_.invariants().check_all(site_.state(), site_.daemon().journal());
  }
  for (const std::string& violation : site_.invariants().violations()) ADD_FAILURE() << violation;
}

bool Stage::wait_for(const std::function<bool()>& reached, Micros limit) {
  const auto up_and_reached = [&] { return site_.daemon().is_up() && reached(); };
  site_.run_until(site_.now() + limit, up_and_reached);
  return up_and_reached();
}

const TaskState& Stage::task(const std::string& name) const {
  const TaskState* found = site_.task(name);
  EXPECT_NE(found, nullptr) << "no task " << name;
  static const TaskState nobody;
  return found != nullptr ? *found : nobody;
}

std::string Stage::reason(const std::string& name) const {
  return std::string(name_of(wait_code_of(state(), task(name))));
}

std::vector<std::string> Stage::roles_of(const std::string& name) const {
  std::vector<std::string> roles;
  for (const Slot& slot : task(name).slots) {
    roles.emplace_back(name_of(state().device(slot.device).role));
  }
  return roles;
}

std::int64_t Stage::ready(const std::string& name) const {
  const ServiceState* service = site_.service(name);
  std::int64_t ready = 0;
  if (service == nullptr) return 0;
  for (const TaskId id : service->replicas) ready += state().tasks.at(id).ready ? 1 : 0;
  return ready;
}

std::int64_t Stage::replicas(const std::string& name) const {
  const ServiceState* service = site_.service(name);
  std::int64_t staying = 0;
  if (service == nullptr) return 0;
  for (const TaskId id : service->replicas) {
    staying += state().tasks.at(id).phase != Phase::stopping ? 1 : 0;
  }
  return staying;
}

std::int64_t Stage::holding(const std::string& prefix) const {
  std::int64_t holding = 0;
  state().tasks.for_each([&](const TaskState& task) {
    holding += task.spec.name.starts_with(prefix) && holds_devices(task.phase) ? 1 : 0;
  });
  return holding;
}

bool Stage::has_condition(const std::string& name) const {
  return state().conditions.contains(name);
}

std::int64_t Stage::executed(const std::string& name) const {
  const auto& records = site_.records();
  const auto found = records.find(name);
  return found == records.end() ? 0 : found->second.executed_steps;
}

std::int64_t Stage::used_milli() const {
  std::int64_t used = 0;
  for (const DeviceState& device : state().devices) used += device.used_share.value;
  return used;
}

std::int64_t Stage::occupied_milli() {
  std::int64_t occupied = 0;
  for (const auto& [name, node] : site_.machines().nodes()) {
    for (const simulated::Machines::Device& device : node.devices) {
      for (const simulated::Machines::Process& p : device.processes) occupied += p.share.value;
    }
  }
  return occupied;
}

}  // namespace neap::sim
