#include "core/rules/admit.h"

#include <algorithm>

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
  return {task.spec.request, task.tier, task.purpose, task.dedicated, task.releasable};
}

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
  std::int64_t devices = 0;
  MiB largest{0};
  for (const ModelState& model : state.models) {
    if (allows(request, model)) largest = std::max(largest, model.memory);
  }
  for (const DeviceState& device : state.devices) {
    const ModelState& model = state.models[device.model.value];
    devices += allows(request, model) && device.memory >= request.memory ? 1 : 0;
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
  if (request.count > devices) {
    return fail(ErrorCode::invalid_argument,
                std::to_string(request.count) + " devices are asked for, the pool has " +
                    std::to_string(devices) + " that could serve",
                "gpus");
  }
  return {};
}

}  // namespace neap
