#include "core/rules/preempt.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/model/pool_index.h"
#include "core/rules/place.h"
#include "core/rules/preempt_cover.h"
#include "core/rules/preempt_gang.h"
#include "core/rules/preempt_host.h"
#include "core/rules/preempt_node.h"
#include "core/rules/teams.h"

namespace neap {

namespace {

constexpr std::int64_t cells_per_search = 100'000;
// A gang is searched among its cheapest nodes and so many more, then four times as many.
// So many nodes of one cost are compared by victims, where some victim adds nothing to it.
constexpr int most_ties = 16;
constexpr std::size_t first_spare_nodes = 8;
constexpr std::size_t most_spare_nodes = 512;

// Bounds are kept for a few horizons, each long enough for the demands that share it.
Micros horizon_for(const PreemptSpec& spec, Micros wait) {
  Micros near = spec.guard_reclaim;
  Micros far = spec.checkpoint_interval + spec.grace;
  if (far < near) std::swap(near, far);
  if (wait <= near) return near;
  if (wait <= far) return far;
  Micros horizon = hours(1);
  while (horizon < wait && horizon < hours(24 * 365)) horizon = horizon * 2;
  return std::max(horizon, wait);
}

// Requests that differ little share their bounds, so that few kinds of bound are kept: asking for
// less never costs more, so what bounds the smaller request bounds the larger one too.
void coarsen(Request& request) {
  constexpr std::int64_t share_step = 50;
  constexpr std::int64_t memory_step = 8 * 1024;  // few classes: each is kept up at every change
  constexpr std::int64_t cpu_step = 8'000;
  constexpr std::int64_t host_step = 32 * 1024;
  request.memory -= MiB(request.memory.value % memory_step);
  request.cpu_milli -= request.cpu_milli % cpu_step;
  request.host_memory -= MiB(request.host_memory.value % host_step);
  request.near = {};  // who may be where only makes it dearer
  request.least = 0;
  if (request.share == whole_device) {
    request.trust_domain.clear();  // nobody stays
  } else if (request.share.value > share_step) {
    request.share -= MilliGpu(request.share.value % share_step);
  }
}

void sort_by_task(std::vector<Victim>& victims) {
  std::sort(victims.begin(), victims.end(),
            [](const Victim& a, const Victim& b) { return a.task < b.task; });
}

// Those that may be to spare, the dearest first: an exact cover has none with a price.
std::vector<Victim> maybe_spare(std::vector<Victim> victims, bool exact) {
  if (exact && total_cost(victims) < saturated_cost) {
    std::erase_if(victims, [](const Victim& v) { return v.cost > 0; });
  }
  std::stable_sort(victims.begin(), victims.end(),
                   [](const Victim& a, const Victim& b) { return a.cost > b.cost; });
  return victims;
}

class VictimSearch {
 public:
  VictimSearch(PoolState& state, const Shape& demand, Time now, Time needed_by, Killing killing)
      : state_(state),
        now_(now),
        needed_by_(needed_by),
        killing_(killing),
        rights_(state, demand) {}

  std::optional<Proposal> run(const Shape& demand) {
    for (const ModelId id : allowed_models(state_, demand.request)) {
      model_ = id;
      const ModelState& model = state_.models[id.value];
      Shape one = demand;
      one.request.models = {model.name};
      const Split split = split_of(demand.request, model.per_node);
      if (split.nodes == 1 && split.remainder == 0) {
        on_one_node(one);
        continue;
      }
      const MiB capacity = model.memory - state_.spec.device_reserve;
      if (take_of(state_, demand.request, capacity).share < whole_device) continue;
      const Cell within = demand.request.near.within;
      if (within == Cell::any) {
        over_nodes(one, split);
      } else if (within >= Cell::rack) {
        over_cells(one, split);
      }
    }
    if (!best_) return std::nullopt;
    best_->lower_bound = std::min(lower_, best_->cost);
    if (best_->cost == 0 && !best_->victims.empty()) {
      // Victims that cost nothing hide nodes that need none.
      Placement now = place(state_, demand);
      if (!now.slots.empty()) return Proposal{std::move(now.slots), {}, 0, 0};
    }
    return std::move(best_);
  }

 private:
  const VictimBounds::Tree& bounds_of(const Shape& demand, std::int32_t count, Spread spread) {
    DemandClass demands{demand, horizon_for(state_.spec.preempt, needed_by_ - now_), killing_,
                        spread, rights_.taking()};
    demands.shape.team.clear();  // a guarantee only keeps victims from it
    // The part of one node is a request of its own.
    Request& part = demands.shape.request;
    const HostPart host = host_part(part, count);
    part.count = count;
    part.cpu_milli = host.cpu;
    part.host_memory = host.memory;
    coarsen(part);
    return state_.index->victims.up_to_date(demands, state_.nodes.size(), now_, [&](NodeId node) {
      return measure_bound(state_, node, demands, now_);
    });
  }

  // ---- one node ------------------------------------------------------------------------------

  void on_one_node(const Shape& demand) {
    const auto& tree = bounds_of(demand, demand.request.count, Spread::one_node);
    NodesByBound nodes(tree);
    int ties = 0;
    for (auto next = nodes.peek(); next && may_win(next->cost, ties); next = nodes.peek()) {
      if (cells_.spent()) {
        lower_ = std::min(lower_, next->cost);
        return;
      }
      nodes.take();
      try_node(demand, next->node);
    }
  }

  // Nodes come by bound, then id: the first of equals has won, unless it takes, beside others, a
  // victim that adds nothing to the cost and that another node does without.
  bool may_win(std::int64_t bound, int& ties) const {
    if (!best_ || bound < best_->cost) return true;
    if (bound > best_->cost || best_->victims.size() < 2 || ++ties > most_ties) return false;
    return best_->cost == saturated_cost ||
           std::any_of(best_->victims.begin(), best_->victims.end(),
                       [](const Victim& v) { return v.cost == 0; });
  }

  void try_node(const Shape& demand, NodeId node) {
    cells_.spend(64);  // for reading the node
    read_node(state_, node, demand, now_, needed_by_, killing_, rights_, problem_);
    solve_node(solver_, problem_, demand.request.count, cells_, cover_);
    if (!cover_.feasible) return;
    lower_ = std::min(lower_, cover_.lower);
    std::vector<Victim> victims = chosen();
    if (!rights_.allows(victims)) {
      victims = cover_within_guarantees(demand);
      if (!cover_.feasible) return;
    }
    if (best_ && !wins(cover_.price, victims.size(), node)) return;
    const auto place = [&] {
      return place_on_node(state_, room_without(state_, node, demand, victims), demand,
                           demand.request.count, allowed_roles(state_, demand));
    };
    for (const Victim& victim : maybe_spare(victims, cover_.lower == cover_.price)) {
      const std::vector<Victim> kept = victims;
      std::erase(victims, victim);
      if (place().empty()) victims = kept;
    }
    std::vector<Slot> slots = place();
    if (slots.empty()) return;  // the predicate has the last word
    sort_by_task(victims);
    const std::int64_t cost = total_cost(victims);
    best_ = Proposal{std::move(slots), std::move(victims), cost, cost};
  }

  std::vector<Victim> chosen() const {
    std::vector<Victim> victims;
    for (const std::uint32_t c : cover_.chosen) victims.push_back(problem_.victims[c]);
    return victims;
  }

  // The cheapest cover takes a team's guarantee: the better one of those among which all may be
  // asked together, taken from the cheapest on, or from the largest on.
  std::vector<Victim> cover_within_guarantees(const Shape& demand) {
    const NodeProblem all = problem_;
    NodeProblem best_problem;
    Cover best;
    for (const Taken order : {Taken::cheapest_first, Taken::largest_first}) {
      problem_ = all;
      keep_candidates(may_go_together(problem_.victims, order), problem_);
      solve_node(solver_, problem_, demand.request.count, cells_, cover_);
      if (!cover_.feasible || (best.feasible && cover_.price >= best.price)) continue;
      best = cover_;
      best_problem = problem_;
    }
    cover_ = best;
    cover_.lower = 0;  // not searched exactly
    problem_ = std::move(best_problem);
    return cover_.feasible ? chosen() : std::vector<Victim>{};
  }

  enum class Taken : std::uint8_t { cheapest_first, largest_first };
  std::vector<bool> may_go_together(const std::vector<Victim>& victims, Taken order) const {
    std::vector<std::size_t> turns(victims.size());
    std::iota(turns.begin(), turns.end(), std::size_t{0});
    std::stable_sort(turns.begin(), turns.end(), [&](std::size_t a, std::size_t b) {
      if (order == Taken::cheapest_first) return victims[a].cost < victims[b].cost;
      return held_milli(state_.tasks.at(victims[a].task)) >
             held_milli(state_.tasks.at(victims[b].task));
    });
    std::vector<Victim> in_turn;
    for (const std::size_t i : turns) in_turn.push_back(victims[i]);
    const std::vector<bool> may = rights_.together(in_turn);
    std::vector<bool> out(victims.size());
    for (std::size_t i = 0; i < turns.size(); ++i) out[turns[i]] = may[i];
    return out;
  }

  // The same whatever the order in which nodes are tried, so that a bound that is low does not
  // change the outcome.
  [[nodiscard]] bool wins(std::int64_t cost, std::size_t victims, NodeId node) const {
    if (cost != best_->cost) return cost < best_->cost;
    if (victims != best_->victims.size()) return victims < best_->victims.size();
    const DeviceState& rival = state_.device(best_->slots.front().device);
    return rival.model == model_ && node < rival.node;
  }

  // ---- several nodes -------------------------------------------------------------------------

  struct Gathered {
    std::set<NodeId> nodes;
    std::int64_t cheapest = 0;                        // no gang anywhere costs less
    std::int64_t outside = VictimBounds::infeasible;  // nor less, if it uses another node
    bool everything = false;
  };

  void over_nodes(const Shape& demand, const Split& split) {
    for (std::size_t spare = first_spare_nodes;; spare *= 4) {
      Gathered gathered;
      if (!gather(demand, split, spare, gathered)) return;
      GangProblem gang;
      read_gang(demand, split, gathered, gang);
      const GangCover cover = cover_gang(gang, cells_);
      const std::int64_t price = cover.feasible ? cover.value.price : VictimBounds::infeasible;
      const bool proved = cover.exact && price <= gathered.outside;
      const bool last =
          gathered.everything || proved || cells_.spent() || spare >= most_spare_nodes;
      if (!last) continue;
      lower_ =
          std::min(lower_, cover.exact ? std::min(price, gathered.outside) : gathered.cheapest);
      const bool wins = !best_ || price < best_->cost ||
                        (price == best_->cost && cover.jobs.size() < best_->victims.size());
      if (cover.feasible && wins) propose_gang(demand, gang, cover);
      return;
    }
  }

  // All of it in one rack, or in one fault domain: those in which the bounds promise least, one
  // after the other.
  void over_cells(const Shape& demand, const Split& split) {
    const bool in_rack = demand.request.near.within == Cell::rack;
    const auto& cells = in_rack ? state_.index->rack_nodes : state_.index->domain_nodes;
    const auto& full = bounds_of(demand, split.per_node, Spread::many_nodes);
    std::vector<std::pair<std::int64_t, std::size_t>> promises;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::int64_t least = least_in(cells[c], full, split);
      if (least != VictimBounds::infeasible) promises.emplace_back(least, c);
    }
    std::sort(promises.begin(), promises.end());
    for (const auto& [least, c] : promises) {
      if (best_ && least >= best_->cost) return;
      if (cells_.spent()) {
        lower_ = std::min(lower_, least);
        return;
      }
      Gathered gathered;
      gathered.nodes.insert(cells[c].begin(), cells[c].end());
      GangProblem gang;
      read_gang(demand, split, gathered, gang);
      const GangCover cover = cover_gang(gang, cells_);
      if (!cover.feasible) continue;
      lower_ = std::min(lower_, cover.exact ? cover.value.price : least);
      if (!best_ || cover.value.price < best_->cost) propose_gang(demand, gang, cover);
    }
  }

  // The sum of the least bounds of as many nodes as give all their devices.
  static std::int64_t least_in(const std::vector<NodeId>& nodes, const VictimBounds::Tree& full,
                               const Split& split) {
    std::vector<std::int64_t> costs;
    for (const NodeId node : nodes) {
      const std::int64_t cost = full.bound(node).cost;
      if (cost != VictimBounds::infeasible) costs.push_back(cost);
    }
    const auto wanted = static_cast<std::size_t>(split.nodes);
    if (costs.size() < wanted) return VictimBounds::infeasible;
    std::sort(costs.begin(), costs.end());
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < wanted; ++i) sum = add_saturated(sum, costs[i]);
    return sum;
  }

  // The cheapest nodes by bound, and all nodes of the jobs on them that hold several.
  bool gather(const Shape& demand, const Split& split, std::size_t spare, Gathered& out) {
    const auto wanted = static_cast<std::size_t>(split.nodes);
    const bool has_rest = split.remainder > 0;
    NodesByBound full(bounds_of(demand, split.per_node, Spread::many_nodes));
    std::vector<std::int64_t> sums{0};
    std::optional<VictimBounds::Entry> next_full;
    for (next_full = full.peek(); next_full && sums.size() <= wanted + spare;
         next_full = full.peek()) {
      sums.push_back(add_saturated(sums.back(), next_full->cost));
      out.nodes.insert(next_full->node);
      full.take();
    }
    if (sums.size() <= wanted) return false;
    std::optional<NodesByBound> rest;
    std::int64_t rest_cost = 0;
    std::optional<VictimBounds::Entry> next_rest;
    if (has_rest) {
      rest.emplace(bounds_of(demand, split.remainder, Spread::many_nodes));
      next_rest = rest->peek();
      if (!next_rest) return false;
      rest_cost = next_rest->cost;
      for (std::size_t more = 0; next_rest && more <= spare; next_rest = rest->peek()) {
        more += out.nodes.insert(next_rest->node).second ? 1 : 0;
        rest->take();
      }
    }
    add_coupled(demand, spare, out.nodes);
    while (next_full && out.nodes.contains(next_full->node)) {
      full.take();
      next_full = full.peek();
    }
    while (next_rest && out.nodes.contains(next_rest->node)) {
      rest->take();
      next_rest = rest->peek();
    }
    out.cheapest = add_saturated(sums[wanted], rest_cost);
    if (next_full) {
      out.outside = add_saturated(add_saturated(sums[wanted - 1], next_full->cost), rest_cost);
    }
    if (next_rest) {
      out.outside = std::min(out.outside, add_saturated(sums[wanted], next_rest->cost));
    }
    out.everything = !next_full && !next_rest;
    return true;
  }

  void add_coupled(const Shape& demand, std::size_t spare, std::set<NodeId>& nodes) {
    const std::size_t most = nodes.size() + 8 * spare;
    std::vector<NodeId> queue(nodes.begin(), nodes.end());
    for (std::size_t i = 0; i < queue.size() && nodes.size() < most; ++i) {
      cells_.spend(16);
      read_node(state_, queue[i], demand, now_, needed_by_, killing_, rights_, problem_);
      for (std::size_t v = 0; v < problem_.victims.size(); ++v) {
        if (problem_.spans[v] < 2) continue;
        for (const Slot& slot : state_.tasks.at(problem_.victims[v].task).slots) {
          const NodeId node = state_.device(slot.device).node;
          if (nodes.insert(node).second) queue.push_back(node);
        }
      }
    }
  }

  void read_gang(const Shape& demand, const Split& split, const Gathered& gathered,
                 GangProblem& out) {
    out.split = split;
    for (const NodeId node : gathered.nodes) {
      read_node(state_, node, demand, now_, needed_by_, killing_, rights_,
                out.nodes.emplace_back().problem);
    }
    number_jobs(out);
  }

  void propose_gang(const Shape& demand, const GangProblem& gang, const GangCover& cover) {
    std::vector<bool> gone(gang.jobs.size(), false);
    std::vector<Victim> victims;
    for (const std::uint32_t job : cover.jobs) {
      gone[job] = true;
      victims.push_back(gang.jobs[job]);
    }
    for (const Victim& victim : maybe_spare(victims, cover.exact)) {
      const auto at =
          std::lower_bound(gang.jobs.begin(), gang.jobs.end(), victim,
                           [](const Victim& x, const Victim& y) { return x.task < y.task; });
      const auto job = static_cast<std::size_t>(at - gang.jobs.begin());
      gone[job] = false;
      if (seats_of(gang, gone)) {
        std::erase(victims, victim);
      } else {
        gone[job] = true;
      }
    }
    const auto seats = seats_of(gang, gone);
    if (!seats) return;
    Proposal proposal;
    for (std::size_t i = 0; i < seats->size(); ++i) {
      const bool is_rest = i == static_cast<std::size_t>(gang.split.nodes);
      const NodeId node = gang.nodes[(*seats)[i]].problem.room.node;
      const auto slots = place_on_node(state_, room_without(state_, node, demand, victims), demand,
                                       is_rest ? gang.split.remainder : gang.split.per_node,
                                       allowed_roles(state_, demand));
      if (slots.empty()) return;
      proposal.slots.insert(proposal.slots.end(), slots.begin(), slots.end());
    }
    proposal.cost = proposal.lower_bound = total_cost(victims);
    proposal.victims = std::move(victims);
    best_ = std::move(proposal);
  }

  PoolState& state_;
  Time now_, needed_by_;
  Killing killing_;
  TeamRights rights_;
  ModelId model_;  // being searched
  Cells cells_{cells_per_search};
  NodeProblem problem_;
  CoverSolver solver_;
  Cover cover_;
  std::optional<Proposal> best_;
  std::int64_t lower_ = VictimBounds::infeasible;  // of what was not searched exactly
};

}  // namespace

std::optional<Proposal> find_victims(PoolState& state, const Shape& demand, Time now,
                                     Time needed_by) {
  const PreemptSpec& spec = state.spec.preempt;
  if (!spec.enabled) return std::nullopt;
  auto proposal = VictimSearch(state, demand, now, needed_by, Killing::never).run(demand);
  if (proposal || !spec.break_glass) return proposal;
  return VictimSearch(state, demand, now, needed_by, Killing::break_glass).run(demand);
}

namespace {
// With what looking at the node itself costs.
std::int64_t tenants_on(const PoolState& state, NodeId id) {
  const NodeState& node = state.node(id);
  std::int64_t tenants = 2;
  for (std::int32_t i = 0; i < node.count; ++i) {
    const auto device = node.first.value + static_cast<std::uint32_t>(i);
    tenants += static_cast<std::int64_t>(state.devices[device].tenants.size());
  }
  return tenants;
}
}  // namespace

void settle_victim_bounds(PoolState& state, Time now, std::int64_t tenants) {
  std::int64_t& allowance = state.index->settle_allowance;
  allowance = std::min(allowance + tenants, 4 * tenants);
  while (allowance > 0) {
    const std::int64_t before = allowance;
    state.index->victims.settle(state.nodes.size(), now, 1,
                                [&](const DemandClass& demand, NodeId node) {
                                  allowance -= tenants_on(state, node);
                                  return measure_bound(state, node, demand, now);
                                });
    if (allowance == before) return;  // all is up to date
  }
}

}  // namespace neap
