#include "core/testing/victim_oracle.h"

#include <algorithm>

#include "core/rules/place.h"
#include "core/rules/preempt_cover.h"
#include "core/rules/preempt_outlook.h"

namespace neap::testing {

namespace {

NodeRoom room_after(const PoolState& state, NodeId node, const Shape& demand,
                    const std::vector<TaskId>& gone) {
  NodeRoom room = room_of(state, node, demand);
  for (const TaskId task : gone) take_away(state, state.tasks.at(task), demand, room);
  return room;
}

bool accepts_on_model(const PoolState& state, const ModelState& model, const Shape& demand,
                      const std::vector<TaskId>& gone) {
  Shape one = demand;
  one.request.models = {model.name};
  const Split split = split_of(demand.request, model.per_node);
  const std::uint8_t roles = allowed_roles(state, demand);
  std::int32_t full = 0, rest = 0;
  for (std::uint32_t n = 0; n < state.nodes.size(); ++n) {
    const NodeRoom room = room_after(state, NodeId(n), one, gone);
    full += place_on_node(state, room, one, split.per_node, roles).empty() ? 0 : 1;
    if (split.remainder == 0) continue;
    rest += place_on_node(state, room, one, split.remainder, roles).empty() ? 0 : 1;
  }
  if (full < split.nodes) return false;
  if (split.nodes > 1 || split.remainder > 0) {
    // Shares do not span nodes.
    const MiB capacity = model.memory - state.spec.device_reserve;
    if (take_of(state, demand.request, capacity).share < whole_device) return false;
  }
  return split.remainder == 0 || rest > split.nodes;
}

struct Chooser {
  const PoolState& state;
  const Shape& demand;
  std::vector<std::pair<TaskId, std::int64_t>> offers;
  std::vector<TaskId> gone;
  std::optional<std::int64_t> best;

  void choose(std::size_t at, std::int64_t cost) {
    if (best && cost >= *best) return;
    if (at == offers.size()) {
      if (accepts(state, demand, gone)) best = cost;
      return;
    }
    choose(at + 1, cost);
    gone.push_back(offers[at].first);
    choose(at + 1, add_saturated(cost, offers[at].second));
    gone.pop_back();
  }
};

}  // namespace

bool accepts(const PoolState& state, const Shape& demand, const std::vector<TaskId>& gone) {
  return std::any_of(state.models.begin(), state.models.end(), [&](const ModelState& model) {
    const auto& named = demand.request.models;
    if (!named.empty() && std::find(named.begin(), named.end(), model.name) == named.end()) {
      return false;
    }
    return accepts_on_model(state, model, demand, gone);
  });
}

std::optional<std::int64_t> least_cost(const PoolState& state, const Shape& demand, Time now,
                                       Time needed_by) {
  for (const Killing killing : {Killing::never, Killing::break_glass}) {
    Chooser chooser{state, demand, {}, {}, {}};
    state.tasks.for_each([&](const TaskState& task) {
      if (!is_candidate(state, task, demand)) return;
      const auto offer = offer_by(outlook_of(state, task, now), needed_by, killing);
      if (offer) chooser.offers.emplace_back(task.id, offer->cost);
    });
    std::vector<TaskId> everyone;
    for (const auto& [task, cost] : chooser.offers) everyone.push_back(task);
    // Taking more away never hurts: when all of them are not enough, no set is.
    if (accepts(state, demand, everyone)) chooser.choose(0, 0);
    if (chooser.best || !state.spec.preempt.break_glass) return chooser.best;
  }
  return std::nullopt;
}

}  // namespace neap::testing
