#include "core/rules/lane.h"

#include <algorithm>
#include <utility>

#include "core/model/pool_index.h"
#include "core/rules/chain.h"
#include "core/rules/preempt.h"

namespace neap {

namespace {

constexpr Micros least_stay = minutes(1);  // who is started there is to come up, at least
// Who of the lane's devices holds any that is neither lent to it nor was started there.
bool is_stranger(const TaskState& task) {
  return task.lane_until == Time(0) && task.lane != LaneUse::borrows;
}

enum class NodeFitness : std::uint8_t { lane, free, used, unfit };

NodeFitness fitness_of(const PoolState& state, const NodeState& node) {
  bool lane = true;
  bool strangers = false;
  for (std::int32_t i = 0; i < node.count; ++i) {
    const DeviceState& device =
        state.device(DeviceId(node.first.value + static_cast<std::uint32_t>(i)));
    if (device.role == Role::dedicated || !is_usable(state, device)) return NodeFitness::unfit;
    lane = lane && device.role == Role::lane;
    for (const Tenant& tenant : device.tenants) {
      const TaskState& task = state.tasks.at(tenant.task);
      if (task.purpose == Purpose::inference) return NodeFitness::unfit;
      strangers = strangers || is_stranger(task);
    }
  }
  if (lane) return NodeFitness::lane;
  return strangers ? NodeFitness::used : NodeFitness::free;
}

// A derived buffer is a claim on what there is; a fixed one is devices. It is time sharing, and
// begins with that stage of adoption.
std::int64_t room_for_lane(const PoolState& state) {
  if (state.adoption.stage != AdoptionStage::time) return 0;
  const std::int64_t buffer = state.spec.tide.derive ? 0 : state.spec.elastic_buffer;
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(state.index->usable_shared) -
                                       state.spec.inference_guard_min - buffer);
}

}  // namespace

Result<void> check(const FairnessSpec& fairness, const std::vector<TierSpec>& tiers) {
  const auto refuse = [](std::string message, std::string field) {
    return fail(ErrorCode::invalid_argument, std::move(message), std::move(field));
  };
  if (fairness.lane < 0 || fairness.lane_within < Micros(0) || fairness.longest_bound < Micros(0)) {
    return refuse("counts and times are 0 or more", "fairness");
  }
  if (fairness.promoted_max < Ppm(0) || fairness.promoted_max > all_ppm) {
    return refuse("a part is 0 to 100 %", "fairness.promoted_max");
  }
  bool known = fairness.deadline_tier.empty();
  for (const TierSpec& tier : tiers) {
    known = known || (tier.name == fairness.deadline_tier && tier.purpose == Purpose::batch);
    if (tier.envelope.burst < 0 || tier.envelope.per_hour < 0) {
      return refuse("devices are 0 or more", "priority_tiers.envelope");
    }
  }
  if (known) return {};
  return refuse("names no batch tier", "fairness.deadline_tier");
}

Micros lane_within(const PoolSpec& spec) {
  const Micros within = spec.fairness.lane_within;
  return within.value > 0 ? within : spec.preempt.checkpoint_interval + spec.preempt.grace;
}

Micros lane_overrun(const PoolSpec& spec, Micros release) {
  return spec.preempt.grace + spec.preempt.term_grace + release;
}

Micros lane_clearing(const PoolSpec& spec) {
  return lane_within(spec) + lane_overrun(spec, spec.preempt.grace);
}

bool saves_on_demand(const ContractSpec& contract) {
  return contract.on_demand || (contract.signals && !contract.sdk && !contract.watch);
}

Micros lane_stay(const PoolSpec& spec, const TaskSpec& task) {
  return std::max(
      {spec.preempt.protect_min, task.contract.restore * protected_restores, least_stay});
}

Micros lane_leave(const PoolSpec& spec, const TaskSpec& task) {
  const ContractSpec& contract = task.contract;
  if (saves_on_demand(contract)) return contract.drain + contract.save + contract.release;
  const Micros interval =
      contract.interval.value > 0 ? contract.interval : spec.preempt.checkpoint_interval;
  return interval + contract.save + contract.release;
}

Micros lane_tenure(const PoolSpec& spec, const TaskSpec& task) {
  return lane_stay(spec, task) + lane_leave(spec, task) + lane_overrun(spec, task.contract.release);
}

LaneUse lane_use_of(const PoolState& state, const TaskState& task) {
  const PoolSpec& spec = state.spec;
  const bool may = spec.fairness.lane > 0 && task.purpose == Purpose::batch &&
                   task.spec.interruptible && task.spec.contract.any() &&
                   task.spec.windows.empty() && !is_carried_by_chain(state, task) &&
                   task.spec.contract.release <= spec.preempt.grace &&
                   lane_leave(spec, task.spec) <= lane_within(spec);
  return may ? LaneUse::borrows : LaneUse::none;
}

bool lane_is_wanted(const PoolState& state) {
  const auto& waiting = state.index->promised;
  if (waiting.empty()) return false;
  if (waiting.begin()->rank == 0 && waiting.begin()->forced_at <= state.now) return true;
  const auto next = waiting.lower_bound({1, Time(0), TaskId(0)});
  return next != waiting.end() && next->rank == 1 && next->forced_at <= state.now;
}

std::int64_t lane_wanted(const PoolState& state) {
  return std::min<std::int64_t>(state.spec.fairness.lane, room_for_lane(state));
}

std::vector<DeviceId> assign_lane(const PoolState& state) {
  std::vector<DeviceId> lane;
  if (state.spec.fairness.lane == 0) return lane;
  const std::int64_t most = room_for_lane(state);
  std::vector<std::pair<NodeFitness, std::uint32_t>> order;
  for (std::uint32_t n = 0; n < state.nodes.size(); ++n) {
    const NodeFitness fitness = fitness_of(state, state.nodes[n]);
    if (fitness == NodeFitness::unfit) continue;
    order.emplace_back(fitness, n);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [fitness, n] : order) {
    const NodeState& node = state.nodes[n];
    const auto has = static_cast<std::int64_t>(lane.size());
    if (has >= state.spec.fairness.lane) break;
    if (has + node.count > most) continue;
    // Rounded up to whole nodes it never takes all that guard and buffer leave: then no service and
    // nobody who may not wait in it could ever start.
    const bool more_than_asked = has + node.count > state.spec.fairness.lane;
    if (more_than_asked && has + node.count == most) continue;
    for (std::int32_t i = 0; i < node.count; ++i) {
      lane.emplace_back(node.first.value + static_cast<std::uint32_t>(i));
    }
  }
  std::sort(lane.begin(), lane.end());
  return lane;
}

std::vector<NodeId> lane_nodes(const PoolState& state) {
  std::vector<NodeId> out;
  for (const DeviceId id : state.index->lane) {
    const NodeId node = state.device(id).node;
    if (!out.empty() && out.back() == node) continue;
    out.push_back(node);
  }
  std::erase_if(out, [&](NodeId id) {
    const NodeState& node = state.node(id);
    if (fitness_of(state, node) != NodeFitness::lane) return true;
    for (std::int32_t i = 0; i < node.count; ++i) {
      const DeviceState& device =
          state.device(DeviceId(node.first.value + static_cast<std::uint32_t>(i)));
      for (const Tenant& tenant : device.tenants) {
        if (is_stranger(state.tasks.at(tenant.task))) return true;
      }
    }
    return false;
  });
  return out;
}

std::vector<TaskId> lane_tenants(const PoolState& state) {
  std::vector<TaskId> out;
  for (const DeviceId id : state.index->lane) {
    for (const Tenant& tenant : state.device(id).tenants) out.push_back(tenant.task);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace neap
