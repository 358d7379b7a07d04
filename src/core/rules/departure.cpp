#include "core/rules/departure.h"

#include <algorithm>

#include "core/model/host.h"
#include "core/model/pool_index.h"
#include "core/rules/chain.h"
#include "core/rules/place.h"
#include "core/rules/preempt_outlook.h"

namespace neap {

namespace {

constexpr int most_destinations = 24;  // nodes, in one search for a destination

bool may_ever_move(const PoolState& state, const TaskState& task) {
  return state.spec.preempt.enabled && task.phase == Phase::running &&
         task.purpose == Purpose::batch && task.spec.interruptible && task.spec.contract.any();
}

std::optional<Offer> offer_to_move(const Outlook& outlook) {
  std::optional<Offer> offer;
  if (outlook.boundary_release) {
    offer = Offer{ReleaseMode::boundary, *outlook.boundary_release, outlook.boundary_cost};
  }
  if (outlook.on_demand_after && (!offer || outlook.on_demand_cost < offer->cost)) {
    offer = Offer{ReleaseMode::on_demand, outlook.now + *outlook.on_demand_after,
                  outlook.on_demand_cost};
  }
  return offer;
}

}  // namespace

Departure departure_of(const PoolState& state, const TaskState& task, Time now) {
  Departure out;
  if (task.phase == Phase::yielding || task.phase == Phase::stopping) {
    out.end = leaves_by(task);
    return out;
  }
  // What a pipeline leaves is for its next stage.
  if (task.purpose == Purpose::inference || chain_protects(state, task)) return out;
  if (task.phase == Phase::starting) {
    if (const auto work = remaining_work(task, now)) out.end = now + *work;
    return out;
  }
  const Outlook outlook = outlook_of(state, task, now);
  out.end = outlook.finish;
  if (!may_ever_move(state, task)) return out;
  const Micros restore = restore_of(task);
  const Time rested = task.started_at + restore * state.spec.defragment.cooldown;
  if (!outlook.is_protected && now >= rested) {
    if (now < outlook.finish_only) out.move = offer_to_move(outlook);
    return out;
  }
  const Time free = outlook.is_protected ? std::max(rested, outlook.protection_changes) : rested;
  if (free == Time::never() || free >= outlook.finish_only) return out;
  const ReleaseTimes times = release_times(state, task, now);
  const Micros interval = task.spec.contract.interval.value > 0
                              ? task.spec.contract.interval
                              : state.spec.preempt.checkpoint_interval;
  out.later = free + interval + times.save + times.release;
  return out;
}

// ---- destinations ----------------------------------------------------------------------------

namespace {

class DestinationSearch {
 public:
  DestinationSearch(const PoolState& state, const TaskState& task, const Elsewhere& where)
      : state_(state), shape_(state.shape(task.shape)), where_(where) {}

  std::vector<Slot> run() {
    std::uint8_t before = 0;
    for (const std::uint8_t stage : role_stages(state_, shape_)) {
      const auto added = static_cast<std::uint8_t>(stage & ~before);
      for (std::uint16_t m = 0; m < state_.models.size(); ++m) {
        const ModelState& model = state_.models[m];
        const Take take =
            take_of(state_, shape_.request, model.memory - state_.spec.device_reserve);
        if (shape_.request.count > model.per_node) continue;
        auto slots = take.share == whole_device || shape_.request.count > 1
                         ? on_nodes(ModelId(m), stage)
                         : on_devices(ModelId(m), added, take);
        if (!slots.empty()) return slots;
      }
      before = stage;
    }
    return {};
  }

 private:
  using Fresh = Elsewhere::Fresh;

  std::vector<Slot> on_devices(ModelId model, std::uint8_t roles, Take take) {
    for (std::size_t r = 0; r < role_count; ++r) {
      if ((roles & (1U << r)) == 0) continue;
      const auto& by_share = state_.index->models[model.value].partial[r];
      for (auto at = by_share.lower_bound(take.share.value); at != by_share.end(); ++at) {
        for (const auto& [memory, device] : at->second) {
          if (memory < take.memory.value) continue;
          if (asked_ == most_destinations) return {};
          auto slots =
              ask(state_.device(DeviceId(device)).node, static_cast<std::uint8_t>(1U << r));
          if (!slots.empty()) return slots;
        }
      }
    }
    return where_.fresh == Fresh::spared ? std::vector<Slot>{} : on_nodes(model, roles);
  }

  // The node with the fewest wholly free devices that are enough.
  std::vector<Slot> on_nodes(ModelId model, std::uint8_t roles) {
    const auto mask = std::find(role_masks.begin(), role_masks.end(), roles);
    if (mask == role_masks.end()) return {};
    const auto& buckets = state_.index->models[model.value]
                              .whole[static_cast<std::size_t>(mask - role_masks.begin())];
    for (auto f = static_cast<std::size_t>(shape_.request.count); f < buckets.size(); ++f) {
      for (auto n = buckets[f].first(); n; n = buckets[f].at_or_after(*n + 1)) {
        const NodeState& node = state_.node(NodeId(*n));
        const bool fresh = f >= static_cast<std::size_t>(node.count);
        if (fresh && where_.fresh == Fresh::spared) continue;
        if (asked_ == most_destinations) return {};
        auto slots = ask(NodeId(*n), roles);
        if (!slots.empty()) return slots;
      }
    }
    return {};
  }

  std::vector<Slot> ask(NodeId node, std::uint8_t roles) {
    ++asked_;
    if (node == where_.not_on) return {};
    NodeRoom room = room_of(state_, node, shape_);
    for (DeviceRoom& device : room.devices) {
      const bool shares = shape_.request.share < whole_device;
      const bool fresh = state_.device(device.device).tenants.empty();
      if ((shares && fresh && where_.fresh == Fresh::spared) ||
          std::binary_search(where_.not_devices.begin(), where_.not_devices.end(), device.device)) {
        device.allowed = false;
      }
    }
    for (const auto& [other, slots] : where_.taken) take(other, slots, room);
    return place_on_node(state_, room, shape_, shape_.request.count, roles);
  }

  void take(TaskId other, const std::vector<Slot>& slots, NodeRoom& room) const {
    for (DeviceRoom& device : room.devices) {
      for (const Slot& slot : slots) {
        if (slot.device != device.device) continue;
        device.share -= slot.share;
        device.memory -= slot.memory;
      }
    }
    const Request& request = state_.tasks.at(other).spec.request;
    room.host = room.host.minus(host_part(request, devices_on(state_, slots, room.node)));
  }

  const PoolState& state_;
  const Shape& shape_;
  const Elsewhere& where_;
  int asked_ = 0;
};

}  // namespace

std::vector<Slot> destination_of(const PoolState& state, const TaskState& task,
                                 const Elsewhere& where) {
  return DestinationSearch(state, task, where).run();
}

}  // namespace neap
