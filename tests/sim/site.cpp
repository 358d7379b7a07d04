#include "tests/sim/site.h"

#include <variant>

#include "core/model/check.h"

namespace neap::sim {

using simulated::Machines;
using simulated::Random;

namespace {
constexpr Micros ask_again = seconds(5);
constexpr Micros watch_always = minutes(2);
constexpr std::uint64_t most_events = 400'000;
}  // namespace

Site::Site(const Options& options)
    : options_(options),
      random_(options.seed),
      backend_(timeline_, machines_, options.network, random_.fork()),
      invariants_(machines_),
      daemon_(timeline_, backend_, random_.fork(), options.crashes, invariants_) {}

void Site::open(const PoolSpec& pool, const std::vector<NodeSpec>& nodes) {
  for (const NodeSpec& node : nodes) machines_.add(node);
  daemon_.boot();
  ask(PoolConfigured{pool});
  watch();
  watch_again();
}

// ---- people ----------------------------------------------------------------------------------

void Site::ask(const Event& request) {
  const auto again = [this, request] { ask(request); };
  const auto* task = std::get_if<TaskSubmitted>(&request);
  if (!daemon_.is_up()) return timeline_.after(ask_again, again);
  const auto done = std::make_shared<bool>(false);
  const std::uint64_t crashes = daemon_.crashes();
  const TaskId id = state().tasks.next_id();
  const Result<void> answer = daemon_.ask(request, [this, done, request, task_id = id] {
    *done = true;
    if (const auto* asked = std::get_if<TaskSubmitted>(&request)) {
      invariants_.promise(asked->spec.name, task_id);
    }
  });
  if (!answer) {
    if (answer.error().code == ErrorCode::unavailable) return timeline_.after(ask_again, again);
    // A name that lives already: this request was durable, and its answer was lost in a crash.
    const auto known = task ? find_live_task(state(), task->spec.name) : std::nullopt;
    if (known) {
      invariants_.promise(task->spec.name, *known);
    } else if (task != nullptr) {
      refused_[task->spec.name] = true;
    }
    return;
  }
  // No answer came: was it before the crash or after it that the request became durable?
  timeline_.after(ask_again, [this, done, crashes, again] {
    if (!*done && daemon_.crashes() != crashes) again();
  });
}

void Site::submit(const TaskSpec& task) { ask(TaskSubmitted{task}); }

void Site::submit(const ServiceSpec& service, Load load) {
  ask(ServiceSubmitted{service});
  loads_[service.name] = std::move(load);
  timeline_.after(options_.sample_every, [this, name = service.name] { sample(name); });
}

void Site::sample(const std::string& name) {
  if (daemon_.is_up() && find_live_service(state(), name)) {
    if (const auto in_use = loads_[name](now())) daemon_.tell(ServiceMeasured{name, in_use});
  }
  timeline_.after(options_.sample_every, [this, name] { sample(name); });
}

const TaskState* Site::task(const std::string& name) const {
  const TaskState* found = nullptr;
  state().tasks.for_each([&](const TaskState& t) {
    if (t.spec.name == name) found = &t;
  });
  return found;
}

const ServiceState* Site::service(const std::string& name) const {
  const auto id = find_live_service(state(), name);
  return id ? &state().service(*id) : nullptr;
}

// ---- machines --------------------------------------------------------------------------------

void Site::fail_device(const std::string& node, std::int32_t index) {
  if (machines_.node(node).up) backend_.fail_device(node, index);
  watch_soon();
}

void Site::repair_device(const std::string& node, std::int32_t index) {
  machines_.node(node).devices[static_cast<std::size_t>(index)].failed = false;
  watch_soon();
}

void Site::set_foreign_memory(const std::string& node, std::int32_t index, MiB used) {
  Machines::Device& device = machines_.node(node).devices[static_cast<std::size_t>(index)];
  MiB room = device.spec.memory;  // a process outside the pool gets no more than there is
  for (const Machines::Process& process : device.processes) room = room - process.memory;
  device.foreign = std::min(used, room);
  watch_soon();
}

void Site::cut_node(const std::string& node) {
  machines_.node(node).reachable = false;
  watch_soon();
}

void Site::reconnect_node(const std::string& node) {
  backend_.reach_node(node);
  watch_soon();
}

void Site::lose_node(const std::string& node) {
  if (!machines_.node(node).up) return;
  backend_.lose_node(node);
  watch_soon();
}

void Site::return_node(const std::string& name) {
  Machines::Node& node = machines_.node(name);
  if (node.up) return;
  const auto id = daemon_.is_up() ? find_node(state(), name) : std::nullopt;
  const bool booked =
      id && !state().node(*id).up && daemon_.journal().durable() == daemon_.journal().size();
  if (!booked) {
    timeline_.after(ask_again, [this, name] { return_node(name); });
    return;
  }
  node.up = true;
  backend_.reach_node(name);
  watch_soon();
}

void Site::calm() {
  calm_ = true;
  daemon_.stop_crashing();
  backend_.calm(simulated::Network{});
  for (const auto& [name, node] : machines_.nodes()) {
    for (const Machines::Device& device : node.devices) {
      repair_device(name, device.index);
      set_foreign_memory(name, device.index, MiB(0));
    }
    if (!node.reachable) reconnect_node(name);
    if (!node.up) return_node(name);
  }
}

// The watcher compares what it sees with what the daemon knows, as one that has just started
// would: a fact that was lost in a crash is found again.
void Site::watch_soon() {
  timeline_.after(random_.between(options_.watch_least, options_.watch_most), [this] { watch(); });
}

void Site::watch_again() {
  timeline_.after(watch_always, [this] {
    watch();
    watch_again();
  });
}

void Site::watch() {
  if (!daemon_.is_up()) return;
  for (const auto& [name, node] : machines_.nodes()) {
    watch_node(name, node);
    if (!daemon_.is_up()) return;
  }
}

void Site::watch_node(const std::string& name, const Machines::Node& node) {
  const auto id = find_node(state(), name);
  const bool known_up = id && state().node(*id).up;
  const bool known_reachable = known_up && state().node(*id).reachable;
  if (!node.up) {
    if (known_up) daemon_.tell(NodeLost{name});
    return;
  }
  if (!node.reachable) {
    if (known_reachable) daemon_.tell(NodeUnreachable{name});
    return;
  }
  if (!known_reachable) daemon_.tell(NodeJoined{node.spec});
  for (const Machines::Device& device : node.devices) {
    if (!daemon_.is_up()) return;
    const NodeState& known = state().node(*find_node(state(), name));
    const DeviceState& seen =
        state().devices[known.first.value + static_cast<std::uint32_t>(device.index)];
    const DeviceHealth health = device.failed ? DeviceHealth::failed : DeviceHealth::healthy;
    const MiB foreign = device.foreign;
    const bool other_memory = seen.foreign != foreign;
    if (seen.health != health) {
      daemon_.tell(DeviceHealthChanged{name, device.index, health, device.failed ? "XID 79" : ""});
    }
    if (other_memory && daemon_.is_up()) {
      daemon_.tell(ForeignMemoryChanged{name, device.index, foreign});
    }
  }
}

// ---- running ---------------------------------------------------------------------------------

bool Site::run_until(Time end) {
  return run_until(end, [] { return false; });
}

bool Site::run_until(Time end, const std::function<bool()>& reached) {
  while (timeline_.next() <= end) {
    timeline_.run_next();
    if (!invariants_.violations().empty() || daemon_.events() > most_events) return false;
    if (reached()) return true;
  }
  timeline_.run_until(end);
  return invariants_.violations().empty();
}

}  // namespace neap::sim
