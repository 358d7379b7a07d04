#include "backend/simulated/simulated_backend.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "backend/simulated/replica.h"
#include "backend/simulated/training.h"
#include "core/model/check.h"

namespace neap::simulated {

namespace {
constexpr Ppm half{500'000};

template <class Map>
std::vector<AllocationId> sorted_keys(const Map& map) {
  std::vector<AllocationId> keys;
  keys.reserve(map.size());
  for (const auto& [key, value] : map) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}
}  // namespace

SimulatedBackend::SimulatedBackend(Timeline& timeline, Machines& machines, Network network,
                                   Random random)
    : timeline_(timeline),
      machines_(machines),
      random_(random),
      reports_(timeline, machines, network, random_.fork()),
      surroundings_{timeline, machines, reports_, random_, records_} {}

void SimulatedBackend::crash_daemon() {
  ++daemon_life_;
  reports_.disconnect();
  // What waits for an unreachable node waits in the daemon, not in the node's supervisor.
  for (auto& [allocation, way] : ways_) way.held.clear();
}

void SimulatedBackend::carry_out(const Action& action) {
  const AllocationId allocation = allocation_of(action);
  Way& way = ways_[allocation];
  if (const auto* order = std::get_if<StartTask>(&action)) {
    way.node = order->node;
    way.devices = order->devices;
  }
  way.free_at = std::max(timeline_.now() + reports_.delay(), way.free_at);
  timeline_.at(way.free_at,
               [this, sent = std::make_shared<const Action>(action), life = daemon_life_] {
                 if (life != daemon_life_ && random_.chance(half)) return;
                 arrive(sent);
               });
}

void SimulatedBackend::arrive(const Sent& sent) {
  const Action& action = *sent;
  const AllocationId allocation = allocation_of(action);
  Way& way = ways_[allocation];
  const Machines::Node* node = machines_.find(way.node);
  if (node != nullptr && !node->reachable) {
    way.held.push_back(sent);
    return;
  }
  if (const auto* order = std::get_if<StartTask>(&action)) {
    return start(std::shared_ptr<const StartTask>(sent, order));
  }
  const auto found = processes_.find(allocation);
  if (found == processes_.end()) {
    const bool ends =
        std::holds_alternative<StopTask>(action) || std::holds_alternative<KillTask>(action);
    if (ends) end_unstarted(allocation);
    return;
  }
  Process& process = *found->second;
  if (process.is_gone()) return;
  if (const auto* yield = std::get_if<AskYield>(&action)) process.ask_yield(yield->mode);
  if (std::holds_alternative<WithdrawYield>(action)) process.withdraw_yield();
  if (std::holds_alternative<AskCheckpoint>(action)) process.ask_checkpoint();
  if (const auto* stop = std::get_if<StopTask>(&action)) process.stop(stop->kill_at);
  if (std::holds_alternative<KillTask>(action)) process.kill();
}

void SimulatedBackend::start(std::shared_ptr<const StartTask> sent) {
  const StartTask& order = *sent;
  if (processes_.contains(order.allocation) || never_.contains(order.allocation)) return;
  for (const std::string& uuid : order.devices) {
    const Machines::Node* node = machines_.node_with(uuid);
    if (node != nullptr && !node->up) {
      // The loss of the node ends this allocation, whether it had begun or not.
      never_.insert(order.allocation);
      return;
    }
  }
  const Result<Behaviour> behaviour = parse_launch_text(order.launch);
  NEAP_CHECK(behaviour.has_value());
  std::shared_ptr<Process> process;
  if (order.service.valid()) {
    process = std::make_shared<Replica>(surroundings_, std::move(sent), *behaviour);
  } else {
    process = std::make_shared<Training>(surroundings_, std::move(sent), *behaviour);
  }
  processes_[order.allocation] = process;
  process->start();
}

// The order to start it was lost in a crash; now it is to end. It must never begin.
void SimulatedBackend::end_unstarted(AllocationId allocation) {
  never_.insert(allocation);
  if (!told_.insert(allocation).second) return;
  reports_.post(allocation, ways_[allocation].node, TaskExited{.detail = "was never started"});
}

void SimulatedBackend::lose_node(const std::string& name) {
  machines_.go_down(name);
  for (auto& [allocation, way] : ways_) {
    // Orders on their way to the node are void: it will come back as another one.
    const bool meant_for_it =
        std::any_of(way.devices.begin(), way.devices.end(), [&](const std::string& uuid) {
          const Machines::Node* node = machines_.node_with(uuid);
          return node != nullptr && node->spec.name == name;
        });
    if (meant_for_it && !processes_.contains(allocation)) never_.insert(allocation);
    if (way.node == name) way.held.clear();
  }
  for (const AllocationId allocation : sorted_keys(processes_)) {
    Process& process = *processes_.at(allocation);
    const std::vector<std::string> nodes = machines_.nodes_with(process.order().devices);
    if (std::find(nodes.begin(), nodes.end(), name) != nodes.end()) process.lose_node(name);
  }
}

void SimulatedBackend::reach_node(const std::string& name) {
  machines_.node(name).reachable = true;
  for (const AllocationId allocation : sorted_keys(ways_)) {
    Way& way = ways_.at(allocation);
    if (way.node != name) continue;
    for (const Sent& sent : std::exchange(way.held, {})) arrive(sent);
  }
}

void SimulatedBackend::fail_device(const std::string& node, std::int32_t index) {
  Machines::Device& device = machines_.node(node).devices[static_cast<std::size_t>(index)];
  device.failed = true;
  const std::vector<Machines::Process> there = device.processes;
  for (const Machines::Process& process : there) {
    Process& hit = *processes_.at(process.allocation);
    if (random_.chance(half)) {
      hit.hang();
    } else {
      hit.crash("the device fell off the bus");
    }
  }
}

void SimulatedBackend::crash_task(AllocationId allocation, const std::string& why) {
  const auto found = processes_.find(allocation);
  if (found != processes_.end()) found->second->crash(why);
}

void SimulatedBackend::forget(AllocationId allocation) {
  const auto found = processes_.find(allocation);
  if (found == processes_.end() || !found->second->is_gone()) return;
  processes_.erase(found);
  ways_.erase(allocation);
}

void SimulatedBackend::calm(const Network& network) { reports_.set_network(network); }

const Process* SimulatedBackend::process(AllocationId allocation) const {
  const auto found = processes_.find(allocation);
  return found == processes_.end() ? nullptr : found->second.get();
}

std::int32_t SimulatedBackend::healthy_replicas(ServiceId service) const {
  std::int32_t healthy = 0;
  for (const auto& [allocation, process] : processes_) {
    if (process->order().service != service || process->is_gone()) continue;
    if (const auto* replica = dynamic_cast<const Replica*>(process.get())) {
      healthy += replica->is_healthy() ? 1 : 0;
    }
  }
  return healthy;
}

}  // namespace neap::simulated
