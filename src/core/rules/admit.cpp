#include "core/rules/admit.h"

#include <algorithm>
#include <map>

#include "core/model/group_index.h"
#include "core/model/host.h"
#include "core/model/pool_index.h"
#include "core/rules/chain.h"
#include "core/rules/deadline.h"
#include "core/rules/lane.h"
#include "core/rules/place.h"

namespace neap {

namespace {

bool has_dedicated_devices(const PoolState& state) {
  return std::any_of(state.devices.begin(), state.devices.end(),
                     [](const DeviceState& d) { return d.role == Role::dedicated; });
}

std::string whole_seconds_text(Micros time) {
  return std::to_string(time.value / 1'000'000) + " s";
}

// The first of the three conditions of A4 that fails; empty when all hold.
Admission failed_condition(const PoolState& state, const TaskState& task) {
  const TaskSpec& spec = task.spec;
  const ContractSpec& contract = spec.contract;
  const PreemptSpec& preempt = state.spec.preempt;
  if (!spec.predictable) {
    return {.condition = "predictable",
            .detail = "a shared device needs a declared memory and compute share"};
  }
  if (task.purpose == Purpose::inference) return {};
  if (!spec.interruptible) {
    return {.condition = "interruptible", .detail = "the task says that it cannot be interrupted"};
  }
  if (!contract.any()) {
    return {.condition = "interruptible",
            .detail = "it has no checkpoint contract (checkpoint.contract: sdk, signals or watch)"};
  }
  if ((contract.sdk || contract.watch) && contract.interval.value == 0 && !contract.on_demand) {
    return {.condition = "interruptible",
            .detail = "it declares neither a checkpoint interval nor checkpoints on demand"};
  }
  const Micros standstill = contract.restore + contract.release + preempt.grace;
  if (spec.delay_tolerance < standstill) {
    return {.condition = "delay_tolerance",
            .detail = "it tolerates " + whole_seconds_text(spec.delay_tolerance) +
                      " of standstill, one preemption takes up to " +
                      whole_seconds_text(standstill)};
  }
  return {};
}

}  // namespace

Admission admit(const PoolState& state, const TaskState& task) {
  const std::string& baseline = state.spec.baseline;
  if (!baseline.empty() && !task.spec.baseline.empty() && task.spec.baseline != baseline) {
    return {.condition = "baseline",
            .detail = "this pool runs " + baseline + ", the task needs " + task.spec.baseline};
  }
  Admission result = failed_condition(state, task);
  if (!result.condition.empty()) {
    result.dedicated = has_dedicated_devices(state);
    result.admitted = result.dedicated;
    result.deadline = judge_deadline(state, task);
    return result;
  }
  result.admitted = true;
  result.lane = lane_use_of(state, task);
  result.deadline = judge_deadline(state, task);
  const ContractSpec& contract = task.spec.contract;
  result.releasable =
      task.purpose != Purpose::inference && !is_carried_by_chain(state, task) &&
      (contract.on_demand || (contract.signals && !contract.sdk && !contract.watch) ||
       (contract.interval.value > 0 &&
        contract.interval <= state.spec.preempt.checkpoint_interval));
  return result;
}

Shape shape_of(const PoolSpec& pool, const TaskState& task) {
  Shape shape{task.spec.request, task.tier, task.purpose, task.dedicated, task.releasable, {}};
  if (!pool.teams.empty()) shape.team = task.spec.team;
  shape.request.near.group = group_of(task.spec);
  shape.lane = task.lane;
  return shape;
}

namespace {

// What could serve the request were all of it free. Cells below the node and above it are counted
// through; for all else the index knows the answer.
class Serving {
 public:
  Serving(const PoolState& state, const Request& request)
      : state_(state), near_(request.near), models_(allowed_models(state, request)) {}

  [[nodiscard]] std::int64_t devices() const {
    std::int64_t count = 0;
    for (const ModelId m : models_) count += state_.index->models[m.value].devices;
    for (const std::string& name : near_.exclude) {
      if (const auto node = find_node(state_, name)) count -= devices_on_node(*node);
    }
    return count;
  }
  [[nodiscard]] std::int64_t most_on_a_node() const {
    if (!near_.exclude.empty()) return most_in(Cell::node);
    std::int64_t most = 0;
    for (const ModelId m : models_) {
      most = std::max<std::int64_t>(most, state_.models[m.value].per_node);
    }
    return most;
  }
  // Of one model in one cell.
  [[nodiscard]] std::int64_t most_in(Cell cell) const {
    std::map<std::pair<ModelId, std::uint64_t>, std::int64_t> counts;
    std::int64_t most = 0;
    for_each_node([&](const NodeState& node) {
      for (std::int32_t i = 0; i < node.count; ++i) {
        const DeviceId d(node.first.value + static_cast<std::uint32_t>(i));
        const ModelId model = state_.device(d).model;
        if (is_allowed(model)) most = std::max(most, ++counts[{model, cell_of(state_, cell, d)}]);
      }
    });
    return most;
  }
  [[nodiscard]] HostPart largest_host() const {
    HostPart largest;
    for_each_node([&](const NodeState& node) {
      const HostPart host = whole_host(node);
      largest = {std::max(largest.cpu, host.cpu), std::max(largest.memory, host.memory)};
    });
    return largest;
  }

 private:
  [[nodiscard]] bool is_allowed(ModelId model) const {
    return std::find(models_.begin(), models_.end(), model) != models_.end();
  }
  [[nodiscard]] std::int64_t devices_on_node(NodeId id) const {
    const NodeState& node = state_.node(id);
    const auto first = state_.devices.begin() + node.first.value;
    return std::count_if(first, first + node.count,
                         [&](const DeviceState& d) { return is_allowed(d.model); });
  }
  // Of the nodes with such devices that are not excluded.
  template <class Visit>
  void for_each_node(const Visit& visit) const {
    for (std::uint32_t n = 0; n < state_.nodes.size(); ++n) {
      const auto& counts = state_.index->node_counts[n];
      const bool has = std::any_of(counts.begin(), counts.end(),
                                   [&](const auto& count) { return is_allowed(count.model); });
      const NodeState& node = state_.nodes[n];
      if (has && !std::binary_search(near_.exclude.begin(), near_.exclude.end(), node.name)) {
        visit(node);
      }
    }
  }

  const PoolState& state_;
  const Nearness& near_;
  const std::vector<ModelId> models_;
};

// A request that spans nodes takes of each a part.
Result<void> check_host(const Serving& serving, const Request& request) {
  if (!needs_host(request)) return {};
  const bool spans = serving.most_on_a_node() < request.count;
  const HostPart wanted = host_part(request, spans ? 1 : request.count);
  const HostPart largest = serving.largest_host();
  const std::string each = spans ? " for each device" : "";
  if (wanted.cpu > largest.cpu) {
    return fail(ErrorCode::invalid_argument,
                std::to_string(wanted.cpu) + " milli-CPU" + each +
                    " is more than any node that could serve it has (" +
                    std::to_string(largest.cpu) + ")",
                "cpu");
  }
  if (wanted.memory > largest.memory) {
    return fail(ErrorCode::invalid_argument,
                std::to_string(wanted.memory.value) + " MiB of host memory" + each +
                    " is more than any node that could serve it has (" +
                    std::to_string(largest.memory.value) + " MiB)",
                "host_memory");
  }
  return {};
}

Result<void> check_within(const Serving& serving, const Request& request) {
  const Cell within = request.near.within;
  if (within == Cell::any) return {};
  const std::int64_t most =
      within == Cell::node ? serving.most_on_a_node() : serving.most_in(within);
  if (request.count <= most) return {};
  return fail(ErrorCode::invalid_argument,
              std::to_string(request.count) + " devices are asked for within one cell, and the " +
                  "largest such cell has " + std::to_string(most) + " that could serve",
              "placement.within");
}

}  // namespace

Result<void> check_request(const PoolState& state, const Request& request) {
  if (request.count < 1) {
    return fail(ErrorCode::invalid_argument, "a request needs at least one device", "gpus");
  }
  if (request.share < MilliGpu(1) || request.share > whole_device) {
    return fail(ErrorCode::invalid_argument, "a share is above 0 % and at most 100 %",
                "gpu.compute");
  }
  if (request.least < 0 || request.least > request.count ||
      (request.least > 0 && request.share != whole_device)) {
    return fail(ErrorCode::invalid_argument,
                "a range goes from one whole device or more up to the number asked for",
                "least_gpus");
  }
  if (request.memory < MiB(0)) {
    return fail(ErrorCode::invalid_argument, "memory cannot be negative", "gpu.memory");
  }
  if (state.devices.empty()) return {};
  if (request.cpu_milli < 0) {
    return fail(ErrorCode::invalid_argument, "CPU cannot be negative", "cpu");
  }
  if (request.host_memory < MiB(0)) {
    return fail(ErrorCode::invalid_argument, "host memory cannot be negative", "host_memory");
  }
  MiB largest{0};
  for (const ModelState& model : state.models) {
    if (names_model(request.models, model.name)) largest = std::max(largest, model.memory);
  }
  if (largest.value == 0) {
    return fail(ErrorCode::invalid_argument, "the pool has no device of these models",
                "device_models");
  }
  if (request.memory > largest - state.spec.device_reserve) {
    return fail(ErrorCode::invalid_argument,
                std::to_string(request.memory.value) + " MiB is more than any device has (" +
                    std::to_string((largest - state.spec.device_reserve).value) + " MiB)",
                "gpu.memory");
  }
  const Serving serving(state, request);
  const std::int64_t devices = serving.devices();
  if (request.count > devices) {
    return fail(ErrorCode::invalid_argument,
                std::to_string(request.count) + " devices are asked for, the pool has " +
                    std::to_string(devices) + " that could serve",
                "gpus");
  }
  if (const auto host = check_host(serving, request); !host) return host;
  return check_within(serving, request);
}

}  // namespace neap
