#include "core/rules/promise.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/model/host.h"
#include "core/model/pool_index.h"
#include "core/rules/lane.h"
#include "core/rules/place.h"

namespace neap {

namespace {

constexpr std::int64_t nothing_certain = 0;
constexpr std::int64_t hour_us = hours(1).value;
constexpr Micros usual_restore = seconds(180);
constexpr Micros farthest = hours(24 * 3650);

NodeRoom emptied(const PoolState& state, NodeId node, const Shape& shape) {
  NodeRoom room = room_of(state, node, shape);
  room.host = whole_host(state.node(node));
  for (DeviceRoom& device : room.devices) {
    device.share = whole_device;
    device.memory = device.capacity - state.device(device.device).foreign;
    device.strangers = device.kin = 0;
  }
  return room;
}

// One model's part of the lane, were it empty: by node the devices that serve.
std::vector<std::int64_t> serving(const PoolState& state, const std::vector<NodeId>& lane,
                                  const Shape& shape, ModelId model, std::int32_t least) {
  std::vector<std::int64_t> out;
  for (const NodeId node : lane) {
    NodeRoom room = emptied(state, node, shape);
    std::int64_t devices = 0;
    for (DeviceRoom& device : room.devices) {
      device.allowed = device.allowed && state.device(device.device).model == model;
      devices += serves(state, device, shape) ? 1 : 0;
    }
    if (devices < least) continue;
    const auto slots = place_on_node(state, room, shape, least, role_bit(Role::lane));
    if (!slots.empty()) out.push_back(devices);
  }
  return out;
}

// Each node has fewer than `count` devices free: all others of it are busy.
LaneFit fit_on_a_node(const std::vector<std::int64_t>& nodes, std::int64_t count) {
  LaneFit fit{!nodes.empty(), 0};
  for (const std::int64_t devices : nodes) fit.busy += devices - count + 1;
  return fit;
}

// Of `full` nodes that could give all their devices, too few are wholly free; where so many are as
// whole nodes are wanted, all others have too few for the rest. Of a node that is not wholly free
// no more than one device is certainly busy.
LaneFit fit_on_nodes(const std::vector<std::int64_t>& full, std::int64_t others,
                     const Split& split) {
  const auto nodes = static_cast<std::int64_t>(full.size());
  const std::int64_t spare = nodes - split.nodes;
  if (spare < 0 || (split.remainder > 0 && spare + others == 0)) return {};
  if (split.remainder == 0) return {true, spare + 1};
  std::int64_t by_rest = 0;
  for (const std::int64_t devices : full) by_rest += devices - split.remainder + 1;
  // The wholly free ones are the largest, at worst.
  std::vector<std::int64_t> largest = full;
  std::sort(largest.begin(), largest.end());
  for (std::int64_t i = 0; i < split.nodes; ++i) {
    by_rest -= largest[largest.size() - 1 - static_cast<std::size_t>(i)] - split.remainder + 1;
  }
  return {true, std::max<std::int64_t>(0, std::min(spare + 1, by_rest))};
}

}  // namespace

LaneFit fit_in_lane(const PoolState& state, const std::vector<NodeId>& lane, const Shape& shape) {
  Shape forced = shape;
  forced.lane = LaneUse::forced;
  LaneFit all;
  for (const ModelId id : allowed_models(state, shape.request)) {
    const ModelState& model = state.models[id.value];
    const Split split = split_of(shape.request, model.per_node);
    LaneFit fit;
    if (split.nodes == 1 && split.remainder == 0) {
      const std::int32_t count = shape.request.count;
      fit = fit_on_a_node(serving(state, lane, forced, id, count), count);
    } else if (take_of(state, shape.request, model.memory - state.spec.device_reserve).share ==
               whole_device) {
      const auto full = serving(state, lane, forced, id, split.per_node);
      const auto rest = split.remainder > 0
                            ? serving(state, lane, forced, id, split.remainder).size()
                            : full.size();
      fit = fit_on_nodes(full, static_cast<std::int64_t>(rest - full.size()), split);
    }
    all.fits = all.fits || fit.fits;
    all.busy += fit.fits ? fit.busy : 0;
  }
  if (needs_host(shape.request)) all.busy = nothing_certain;
  return all;
}

namespace {

// Who is in the lane by a forced start, and until when at the latest.
struct Tenure {
  std::int64_t devices = 0;
  Time end;
};

std::vector<Tenure> tenures(const PoolState& state) {
  std::vector<Tenure> out;
  for (const TaskId id : lane_tenants(state)) {
    const TaskState& task = state.tasks.at(id);
    if (task.lane_until == Time(0) || task.bound != BoundCode::issued) continue;
    const Time end = task.lane_until + lane_leave(state.spec, task.spec) +
                     lane_overrun(state.spec, task.spec.contract.release);
    out.push_back({task.spec.request.count, end});
  }
  return out;
}

// What is ahead of a task among those that wait.
struct Ahead {
  Wide area = 0;   // sum of g X, device-microseconds
  Wide chain = 0;  // sum of X
  std::int64_t busy = std::numeric_limits<std::int64_t>::max();
  std::int64_t tasks = 0;

  void pass(const PoolSpec& spec, const TaskState& task) {
    const Micros tenure = lane_tenure(spec, task.spec);
    area += static_cast<Wide>(tenure.value) * task.spec.request.count;
    chain += tenure.value;
    ++tasks;
  }
};

class Judge {
 public:
  explicit Judge(const PoolState& state)
      : state_(state), lane_(lane_nodes(state)), tenures_(tenures(state)) {}

  [[nodiscard]] LaneFit fit(ShapeId shape) {
    const auto [at, is_new] = fits_.try_emplace(shape);
    if (is_new) at->second = fit_in_lane(state_, lane_, state_.shape(shape));
    return at->second;
  }

  // Fills `out`; false if a promise that was made would not hold.
  bool promise(const TaskState& task, Promise& out) {
    const PoolSpec& spec = state_.spec;
    const WaitKey key{0, out.forced_at, task.id};
    // What envelopes may bring is not for others to use up.
    const bool enveloped = !task.allocation.valid() && state_.tier(task.tier).envelope.burst > 0;
    const Keeping keeping = enveloped ? Keeping::nothing : Keeping::reserve;
    Ahead ahead;
    bool counted = false;
    for (const WaitKey& waiting : state_.index->promised) {
      if (waiting.rank != 0) break;
      const TaskState& other = state_.tasks.at(waiting.task);
      if (!counted && key < waiting) {
        make(task, ahead, out);
        ahead.pass(spec, task);
        counted = true;
      }
      ahead.busy = std::min(ahead.busy, fit(other.shape).busy);
      // Whoever is forced already has only those ahead that it had then.
      if (counted && !other.forced && breaks(other, ahead, keeping)) return false;
      ahead.pass(spec, other);
    }
    if (!counted) make(task, ahead, out);
    return out.start_by - state_.now <= spec.fairness.longest_bound;
  }

 private:
  void make(const TaskState& task, Ahead& ahead, Promise& out) {
    ahead.busy = std::min(ahead.busy, fit(task.shape).busy);
    Ahead with_reserve = ahead;
    reserve(out.forced_at, with_reserve);
    out.start_by = latest_start(out.forced_at, with_reserve);
    out.ahead = ahead.tasks;
    for (const Tenure& tenure : tenures_) out.ahead += tenure.end > out.forced_at ? 1 : 0;
  }

  enum class Keeping : std::uint8_t { nothing, reserve };
  bool breaks(const TaskState& other, Ahead ahead, Keeping keeping) {
    if (keeping == Keeping::reserve) reserve(other.forced_at, ahead);
    return latest_start(other.forced_at, ahead) > other.start_by;
  }

  [[nodiscard]] Time latest_start(Time forced_at, const Ahead& ahead) const {
    const Micros clearing = lane_clearing(state_.spec);
    Wide area = ahead.area;
    Time gone = forced_at + clearing;
    for (const Tenure& tenure : tenures_) {
      const Micros left = std::max(Micros(0), tenure.end - forced_at);
      area += static_cast<Wide>(left.value) * tenure.devices;
      gone = std::max(gone, tenure.end);
    }
    Wide wait = (gone - forced_at).value + ahead.chain;
    if (ahead.busy > 0) {
      wait = std::min(wait, clearing.value + (area + ahead.busy - 1) / ahead.busy);
    }
    return forced_at + Micros(static_cast<std::int64_t>(std::min<Wide>(wait, farthest.value)));
  }

  // Room for those of other tiers who come later and are forced earlier.
  void reserve(Time forced_at, Ahead& ahead) {
    const PoolSpec& spec = state_.spec;
    const Micros stay = std::max(spec.preempt.protect_min, usual_restore * 9);
    const Micros tenure = stay + lane_within(spec) + lane_overrun(spec, spec.preempt.grace);
    for (const TierSpec& tier : spec.tiers) {
      if (tier.purpose != Purpose::batch || tier.envelope.burst == 0) continue;
      const Micros wait = std::max(tier.wait, spec.preempt.wait_min);
      const Micros open = forced_at - state_.now - wait;
      if (open <= Micros(0)) continue;
      const Wide more =
          (static_cast<Wide>(tier.envelope.per_hour) * open.value + hour_us - 1) / hour_us;
      const Wide devices = tier.envelope.burst + more;
      ahead.area += devices * tenure.value;
      ahead.chain += devices * tenure.value;
      ahead.busy = std::min(ahead.busy, busy_up_to(tier.envelope.burst));
    }
  }

  // For whole devices of any model, so many or fewer.
  std::int64_t busy_up_to(std::int32_t most) {
    const auto [at, is_new] = least_busy_.try_emplace(most);
    if (is_new) at->second = least_busy(most);
    return at->second;
  }
  [[nodiscard]] std::int64_t least_busy(std::int32_t most) const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::int32_t count = 1; count <= most; ++count) {
      Shape shape;
      shape.request.count = count;
      shape.purpose = Purpose::batch;
      const LaneFit fit = fit_in_lane(state_, lane_, shape);
      if (!fit.fits) break;  // larger ones have no business here
      least = std::min(least, fit.busy);
    }
    return least;
  }

  const PoolState& state_;
  std::vector<NodeId> lane_;
  std::vector<Tenure> tenures_;
  std::map<ShapeId, LaneFit> fits_;
  std::map<std::int32_t, std::int64_t> least_busy_;
};

// Its place depends on where others are, or it asks for certain nodes.
bool is_constrained(const Nearness& near) {
  const bool within = near.within != Cell::any && near.within != Cell::node;
  return within || !near.exclude.empty() || !near.group.empty();
}

BoundCode unfit_for_promise(const PoolState& state, const TaskState& task) {
  if (task.purpose != Purpose::batch) return BoundCode::not_batch;
  if (task.dedicated) return BoundCode::dedicated;
  if (!task.spec.windows.empty()) return BoundCode::windows;
  return is_constrained(state.shape(task.shape).request.near) ? BoundCode::constrained
                                                              : BoundCode::none;
}

}  // namespace

Promise promise_for(const PoolState& state, const TaskState& task) {
  Promise out;
  out.code = unfit_for_promise(state, task);
  if (out.code == BoundCode::not_batch || out.code == BoundCode::dedicated) return out;
  const bool has_started = task.allocation.valid();
  out.forced_at = std::max(task.due, state.now);
  if (has_started) {
    out.forced_at = std::max({task.due, state.now + state.spec.preempt.wait_min, task.not_before});
  }
  if (out.code != BoundCode::none) return out;
  Judge judge(state);
  if (!judge.fit(task.shape).fits) {
    out.code = BoundCode::too_large;
    return out;
  }
  // None is made while others wait without: they would be passed for ever.
  if (state.index->infeasible.empty() && judge.promise(task, out)) {
    out.code = BoundCode::issued;
    return out;
  }
  out.code = has_started ? BoundCode::requeued : BoundCode::infeasible;
  out.start_by = Time::never();
  out.ahead = 0;
  return out;
}

}  // namespace neap
