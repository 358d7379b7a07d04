#include "core/rules/admit.h"

#include <algorithm>
#include <map>

#include "core/model/group_index.h"
#include "core/model/host.h"

namespace neap {

namespace {

bool allows(const Request& request, const ModelState& model) {
  return request.models.empty() || std::find(request.models.begin(), request.models.end(),
                                             model.name) != request.models.end();
}

bool has_dedicated_devices(const PoolState& state) {
  return std::any_of(state.devices.begin(), state.devices.end(),
                     [](const DeviceState& d) { return d.role == Role::dedicated; });
}

std::string seconds_text(Micros time) { return std::to_string(time.value / 1'000'000) + " s"; }

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
            .detail = "it tolerates " + seconds_text(spec.delay_tolerance) +
                      " of standstill, one preemption takes up to " + seconds_text(standstill)};
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
    return result;
  }
  result.admitted = true;
  const ContractSpec& contract = task.spec.contract;
  result.releasable =
      task.purpose != Purpose::inference &&
      (contract.on_demand || (contract.signals && !contract.sdk && !contract.watch) ||
       (contract.interval.value > 0 &&
        contract.interval <= state.spec.preempt.checkpoint_interval));
  return result;
}

Shape shape_of(const TaskState& task) {
  Shape shape{task.spec.request, task.tier, task.purpose, task.dedicated, task.releasable};
  shape.request.near.group = group_of(task.spec);
  return shape;
}

namespace {

// Devices that could serve the request were all of them free, of one cell at most.
class Serving {
 public:
  Serving(const PoolState& state, const Request& request) : state_(state) {
    for (std::uint32_t d = 0; d < state.devices.size(); ++d) {
      const DeviceState& device = state.devices[d];
      const std::string& node = state.node(device.node).name;
      const auto& exclude = request.near.exclude;
      if (allows(request, state.models[device.model.value]) && device.memory >= request.memory &&
          !std::binary_search(exclude.begin(), exclude.end(), node)) {
        devices_.emplace_back(d);
      }
    }
  }

  [[nodiscard]] const std::vector<DeviceId>& all() const { return devices_; }
  [[nodiscard]] std::int64_t most_in(Cell cell) const {
    std::map<std::pair<ModelId, std::uint64_t>, std::int64_t> counts;
    std::int64_t most = 0;
    for (const DeviceId d : devices_) {
      most = std::max(most, ++counts[{state_.device(d).model, cell_of(state_, cell, d)}]);
    }
    return most;
  }
  // Of the nodes of these devices.
  [[nodiscard]] HostPart largest_host() const {
    HostPart largest;
    for (const DeviceId d : devices_) {
      NodeState node = state_.node(state_.device(d).node);
      node.used_cpu = node.held_cpu = 0;
      node.used_memory = node.held_memory = MiB(0);
      const HostPart host = free_host(node);
      largest = {std::max(largest.cpu, host.cpu), std::max(largest.memory, host.memory)};
    }
    return largest;
  }

 private:
  const PoolState& state_;
  std::vector<DeviceId> devices_;
};

// A request that spans nodes takes of each a part.
Result<void> check_host(const Serving& serving, const Request& request) {
  if (!needs_host(request)) return {};
  const bool spans = serving.most_in(Cell::node) < request.count;
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
  const std::int64_t most = serving.most_in(within);
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
    if (allows(request, model)) largest = std::max(largest, model.memory);
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
  const std::size_t devices = serving.all().size();
  if (static_cast<std::size_t>(request.count) > devices) {
    return fail(ErrorCode::invalid_argument,
                std::to_string(request.count) + " devices are asked for, the pool has " +
                    std::to_string(devices) + " that could serve",
                "gpus");
  }
  if (const auto host = check_host(serving, request); !host) return host;
  return check_within(serving, request);
}

}  // namespace neap
