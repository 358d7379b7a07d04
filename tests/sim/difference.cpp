#include "tests/sim/difference.h"

#include <array>
#include <vector>

#include "core/model/codec.h"
#include "core/model/pool_index.h"

namespace neap::sim {

namespace {

template <class T>
std::string bytes_of(const T& value) {
  Encoder encoder;
  encoder.put(value);
  return encoder.take();
}

// Names the fields in which two values of one type differ.
template <class T>
std::string fields_that_differ(const T& a, const T& b) {
  std::vector<std::string> of_b;
  const auto collect = [&](const char* /*name*/, const auto& value) {
    of_b.push_back(bytes_of(value));
  };
  visit_fields(collect, b);
  std::string names;
  std::size_t i = 0;
  const auto compare = [&](const char* name, const auto& value) {
    if (bytes_of(value) != of_b[i++]) names += std::string(" ") + name;
  };
  visit_fields(compare, a);
  return names;
}

template <class T>
std::string items_that_differ(const char* what, const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return std::string("the number of ") + what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::string fields = fields_that_differ(a[i], b[i]);
    if (!fields.empty()) return std::string(what) + " " + std::to_string(i) + ":" + fields;
  }
  return {};
}

std::string timer_difference(const PoolIndex& a, const PoolIndex& b) {
  const auto text = [](const TimerKey& key) {
    constexpr std::array kinds{"task", "shape", "device", "guard", "plan", "look"};
    const auto& [at, kind, id] = key;
    return std::string(kinds[static_cast<std::size_t>(kind)]) + " " + std::to_string(id) + " at " +
           std::to_string(at.us);
  };
  for (const TimerKey& key : a.timers) {
    if (!b.timers.contains(key)) return "timers: too many: " + text(key);
  }
  for (const TimerKey& key : b.timers) {
    if (!a.timers.contains(key)) return "timers: missing: " + text(key);
  }
  return "timers";
}

}  // namespace

std::string state_difference(const PoolState& a, const PoolState& b) {
  std::string found = items_that_differ("devices", a.devices, b.devices);
  if (found.empty()) found = items_that_differ("nodes", a.nodes, b.nodes);
  if (found.empty()) found = items_that_differ("models", a.models, b.models);
  if (found.empty()) found = items_that_differ("services", a.services, b.services);
  if (found.empty()) found = items_that_differ("shapes", a.shapes, b.shapes);
  if (!found.empty()) return found;
  a.tasks.for_each([&](const TaskState& task) {
    if (!found.empty()) return;
    const TaskState* other = b.tasks.find(task.id);
    const std::string fields = other == nullptr ? " missing" : fields_that_differ(task, *other);
    if (!fields.empty()) found = "task " + std::to_string(task.id.value) + ":" + fields;
  });
  if (!found.empty()) return found;
  if (a.plans.size() != b.plans.size()) return "the number of plans";
  if (a.now != b.now) return "now";
  if (a.sequence != b.sequence) return "sequence";
  if (a.wait_codes != b.wait_codes) return "wait_codes";
  if (a.preempt_retry_at != b.preempt_retry_at) return "preempt_retry_at";
  if (a.conditions != b.conditions) return "conditions";
  if (a.next_allocation != b.next_allocation) return "next_allocation";
  return hash_of(a) == hash_of(b) ? "" : "elsewhere";
}

std::string index_difference(const PoolState& state) {
  const PoolState fresh(state);
  const PoolIndex& a = *state.index;
  const PoolIndex& b = *fresh.index;
  if (!(a.device_keys == b.device_keys)) return "device_keys";
  if (a.usable_shared != b.usable_shared) return "usable_shared";
  if (a.training_on_guard != b.training_on_guard) return "training_on_guard";
  if (a.waiting != b.waiting) return "waiting";
  if (!(a.waiting_shapes == b.waiting_shapes)) return "waiting_shapes";
  if (a.timers != b.timers) return timer_difference(a, b);
  if (a.task_names != b.task_names) return "task_names";
  if (a.service_names != b.service_names) return "service_names";
  if (a.allocations != b.allocations) return "allocations";
  if (a.waiters != b.waiters) return "waiters";
  if (a.reserved != b.reserved) return "reserved";
  if (a.moving != b.moving) return "moving";
  if (a.plans_of_victim != b.plans_of_victim) return "plans_of_victim";
  if (a.leaving != b.leaving) return "leaving";
  if (a.ended != b.ended) return "ended";
  if (a.running_by_tier != b.running_by_tier) return "running_by_tier";
  return "models or devices";
}

}  // namespace neap::sim
