// The set of victims against brute force over all sets that the predicate accepts (D2, D3, D7;
// POLICIES 1, "Oracle in tests"). Each property is shown to see a planted fault.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <sstream>

#include "core/model/pool_index.h"
#include "core/rules/place.h"
#include "core/rules/preempt.h"
#include "core/rules/preempt_cover.h"
#include "core/testing/any_below.h"
#include "core/testing/any_pool.h"
#include "core/testing/victim_oracle.h"

namespace neap::preempt_property {
namespace {

using testing::accepts;
using testing::any_below;
using testing::least_cost;
using testing::pool_now;

struct Case {
  PoolState state;
  Shape demand;
  Time needed_by;
};

enum class Kind : std::uint8_t { any, gang, host };
struct Drawn {
  int most_tasks = 0, cases = 0;
  Kind kind = Kind::any;
};

// Whole devices, more than a node has.
void make_gang(PoolState& state, Shape& demand) {
  const std::int32_t per_node = state.models.front().per_node;
  const auto devices = static_cast<std::int32_t>(state.devices.size());
  demand.request.share = whole_device;
  demand.request.memory = MiB(0);
  demand.request.trust_domain.clear();
  demand.request.count = per_node + 1 + any_below(std::max(1, devices - per_node));
}

// Hosts that are short now and then, and linked devices; on one node.
void make_hosts(PoolState& state, Shape& demand) {
  for (std::uint32_t t = 0; t < state.tasks.next_id().value; ++t) {
    TaskState* task = state.tasks.find(TaskId(t));
    if (task != nullptr) task->spec.request.cpu_milli = any_below(5);
  }
  for (DeviceState& device : state.devices) device.pair = device.index / 2;
  rebuild_index(state);
  for (NodeState& node : state.nodes) node.cpu_milli = 1 + node.used_cpu + any_below(4);
  rebuild_index(state);
  std::int32_t most = state.models.front().per_node;
  for (const ModelState& model : state.models) most = std::min(most, model.per_node);
  demand.request.count = std::min(demand.request.count, most);
  demand.request.cpu_milli = any_below(12);
  if (demand.request.count == 2 && any_below(2) == 0) demand.request.near.within = Cell::pair;
}

Case any_case(Drawn drawn) {
  auto any = any_below;
  testing::PoolDraw draw(any);
  Case out;
  out.state = draw.pool(drawn.most_tasks);
  out.demand = draw.demand(out.state);
  if (drawn.kind == Kind::gang) make_gang(out.state, out.demand);
  if (drawn.kind == Kind::host) make_hosts(out.state, out.demand);
  out.needed_by = pool_now + draw.wait();
  return out;
}

std::vector<TaskId> tasks_of(const std::vector<Victim>& victims) {
  std::vector<TaskId> out;
  for (const Victim& victim : victims) out.push_back(victim.task);
  return out;
}

std::string describe(const Case& c) {
  std::ostringstream out;
  out << c.demand.request.count << " x " << c.demand.request.share.value << " milli, "
      << c.demand.request.memory.value << " MiB for " << c.state.tier(c.demand.tier).name
      << " within " << (c.needed_by - pool_now).value / 1'000'000 << " s";
  for (std::size_t d = 0; d < c.state.devices.size(); ++d) {
    const DeviceState& device = c.state.devices[d];
    out << "\n  " << device.uuid << " " << name_of(device.role) << ":";
    for (const Tenant& tenant : device.tenants) {
      const TaskState& task = c.state.tasks.at(tenant.task);
      out << " " << task.spec.name << "/" << tenant.share.value << "/" << tenant.memory.value;
      if (!is_candidate(c.state, task, c.demand)) out << "!";
      const auto offer = cheapest_offer(c.state, task, pool_now, c.needed_by);
      if (offer) out << "=" << offer->cost;
    }
  }
  return out.str();
}

using Search = std::optional<Proposal> (*)(PoolState&, const Shape&, Time, Time);

// ---- the properties, each empty when it holds ------------------------------------------------

std::string costs_the_least(Search search, Case& c) {
  const auto found = search(c.state, c.demand, pool_now, c.needed_by);
  const auto least = least_cost(c.state, c.demand, pool_now, c.needed_by);
  if (found.has_value() != least.has_value()) {
    return found ? "found what there is not" : "found nothing, where there is something";
  }
  if (!found) return {};
  std::int64_t sum = 0;
  for (const Victim& victim : found->victims) sum = add_saturated(sum, victim.cost);
  if (sum != found->cost) return "the cost is not that of the victims";
  if (found->cost != *least) return "not the cheapest";
  if (found->lower_bound != found->cost) return "exact, and does not say so";
  return {};
}

std::string victims_may_be_taken(Search search, Case& c) {
  const auto found = search(c.state, c.demand, pool_now, c.needed_by);
  if (!found) return {};
  for (const Victim& victim : found->victims) {
    const TaskState& task = c.state.tasks.at(victim.task);
    if (!is_candidate(c.state, task, c.demand)) return "not a candidate";
    if (victim.release_by > c.needed_by) return "too late";
    if (victim.mode == ReleaseMode::finish) continue;
    const ReleaseTimes times = release_times(c.state, task, pool_now);
    if (times.remaining && *times.remaining <= times.restore) return "W <= R";
    if (is_protected(c.state, task, pool_now)) return "inside its window";
    if (victim.mode == ReleaseMode::kill && !c.state.spec.preempt.break_glass) return "killed";
  }
  return {};
}

std::string none_is_to_spare(Search search, Case& c) {
  const auto found = search(c.state, c.demand, pool_now, c.needed_by);
  if (!found) return {};
  const std::vector<TaskId> gone = tasks_of(found->victims);
  if (!accepts(c.state, c.demand, gone)) return "does not cover";
  for (const TaskId spared : gone) {
    std::vector<TaskId> fewer = gone;
    std::erase(fewer, spared);
    if (accepts(c.state, c.demand, fewer)) return "one victim is to spare";
  }
  return {};
}

std::string slots_are_free_then(Search search, Case& c) {
  const auto found = search(c.state, c.demand, pool_now, c.needed_by);
  if (!found) return {};
  if (found->slots.size() != static_cast<std::size_t>(c.demand.request.count)) return "too few";
  std::set<DeviceId> devices;
  for (const Slot& slot : found->slots) {
    if (!devices.insert(slot.device).second) return "one device twice";
    NodeRoom room = room_of(c.state, c.state.device(slot.device).node, c.demand);
    for (const Victim& victim : found->victims) {
      take_away(c.state, c.state.tasks.at(victim.task), c.demand, room);
    }
    for (const DeviceRoom& device : room.devices) {
      if (device.device != slot.device) continue;
      if (!device.allowed || device.strangers > 0) return "a device it may not use";
      if (device.share < slot.share || device.memory < slot.memory) return "a device too full";
    }
  }
  return {};
}

// Killing is left out: it is turned to only when nothing else serves, and may then cost less.
std::string more_costs_no_less(Search search, Case& c) {
  c.state.spec.preempt.break_glass = false;
  std::optional<std::int64_t> before = 0;
  for (c.demand.request.count = 1; c.demand.request.count < 9; ++c.demand.request.count) {
    const auto found = search(c.state, c.demand, pool_now, c.needed_by);
    if (found && (!before || found->cost < *before)) return "more devices for less";
    before = found ? std::optional(found->cost) : std::nullopt;
  }
  return {};
}

using Property = std::string (*)(Search, Case&);

rc::detail::TestResult run(Property property, Search search, Drawn drawn,
                           rc::detail::TestParams params) {
  params.maxSuccess = drawn.cases;
  return rc::detail::checkTestable(
      [=] {
        Case c = any_case(drawn);
        const std::string fault = property(search, c);
        RC_LOG() << describe(c) << ": " << fault << "\n";
        RC_ASSERT(fault.empty());
      },
      rc::detail::TestMetadata{}, params);
}

// With the seed of the environment (RC_PARAMS), or a new one each time.
void expect_holds(Property property, Drawn drawn) {
  const auto result = run(property, find_victims, drawn, rc::detail::configuration().testParams);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  EXPECT_TRUE(result.template is<rc::detail::SuccessResult>()) << message.str();
}

TEST(PreemptProperty, D2_CostsTheLeast) { expect_holds(costs_the_least, {10, 4'000}); }
TEST(PreemptProperty, D2_CostsTheLeastOfManyTasks) { expect_holds(costs_the_least, {16, 1'000}); }
TEST(PreemptProperty, D7_GangsCostTheLeast) {
  expect_holds(costs_the_least, {16, 1'000, Kind::gang});
}
TEST(PreemptProperty, D7_NoneOfAGangIsToSpare) {
  expect_holds(none_is_to_spare, {16, 1'000, Kind::gang});
}
TEST(PreemptProperty, D2_C1_WithHostsAndPairsTheLeastToo) {
  expect_holds(costs_the_least, {10, 2'000, Kind::host});
}
TEST(PreemptProperty, D2_C1_NoneIsToSpareForAHost) {
  expect_holds(none_is_to_spare, {12, 1'000, Kind::host});
}
TEST(PreemptProperty, D2_D3_VictimsMayBeTaken) { expect_holds(victims_may_be_taken, {16, 1'000}); }
TEST(PreemptProperty, D2_NoneIsToSpare) { expect_holds(none_is_to_spare, {16, 2'000}); }
TEST(PreemptProperty, D2_SlotsAreFreeThen) { expect_holds(slots_are_free_then, {16, 1'000}); }
TEST(PreemptProperty, D2_MoreCostsNoLess) { expect_holds(more_costs_no_less, {16, 500}); }

// An oracle that rarely has anything to say would prove little.
TEST(PreemptProperty, CasesAskForSeveralVictims) {
  int found = 0, several = 0, gangs = 0;
  rc::detail::TestParams params;
  params.maxSuccess = 1'000;
  params.seed = 1;
  (void)rc::detail::checkTestable(
      [&] {
        Case c = any_case({16, 0});
        const auto proposal = find_victims(c.state, c.demand, pool_now, c.needed_by);
        if (!proposal) return;
        found += proposal->victims.empty() ? 0 : 1;
        several += proposal->victims.size() > 1 ? 1 : 0;
        std::set<NodeId> nodes;
        for (const Slot& slot : proposal->slots) nodes.insert(c.state.device(slot.device).node);
        gangs += nodes.size() > 1 && !proposal->victims.empty() ? 1 : 0;
      },
      rc::detail::TestMetadata{}, params);
  EXPECT_GT(found, 200);
  EXPECT_GT(several, 40);
  EXPECT_GT(gangs, 10);
}

// ---- planted faults --------------------------------------------------------------------------

// Counts the free share of the pool, not that of devices: what peers got wrong most often.
std::optional<Proposal> by_totals(PoolState& state, const Shape& demand, Time now, Time needed_by) {
  std::vector<Victim> offers;
  state.tasks.for_each([&](const TaskState& task) {
    if (!is_candidate(state, task, demand)) return;
    const auto offer = cheapest_offer(state, task, now, needed_by);
    if (offer) offers.push_back({task.id, offer->mode, offer->release_by, offer->cost});
  });
  std::stable_sort(offers.begin(), offers.end(),
                   [](const Victim& a, const Victim& b) { return a.cost < b.cost; });
  std::int64_t lacking = demand.request.count * demand.request.share.value;
  for (const DeviceState& device : state.devices) lacking -= free_share(device).value;
  Proposal out;
  for (const Victim& offer : offers) {
    if (lacking <= 0) break;
    lacking -= held_milli(state.tasks.at(offer.task));
    out.victims.push_back(offer);
    out.cost += offer.cost;
  }
  out.lower_bound = out.cost;
  if (lacking > 0) return std::nullopt;
  return out;
}

std::optional<Proposal> takes_one_more(PoolState& state, const Shape& demand, Time now,
                                       Time needed_by) {
  auto found = find_victims(state, demand, now, needed_by);
  if (!found) return found;
  state.tasks.for_each([&](const TaskState& task) {
    if (found->victims.size() != 1 || task.id == found->victims.front().task) return;
    if (!is_candidate(state, task, demand)) return;
    const auto offer = cheapest_offer(state, task, now, needed_by);
    if (offer) found->victims.push_back({task.id, offer->mode, offer->release_by, offer->cost});
  });
  return found;
}

// Runs the search in a pool where the rule does not hold.
template <auto Lift>
std::optional<Proposal> without_rule(PoolState& state, const Shape& demand, Time now,
                                     Time needed_by) {
  PoolState lifted = state;
  for (std::uint32_t t = 0; t < lifted.tasks.next_id().value; ++t) {
    if (TaskState* task = lifted.tasks.find(TaskId(t))) Lift(lifted, *task);
  }
  return find_victims(lifted, demand, now, needed_by);
}
constexpr auto protection = [](PoolState& state, TaskState& task) {
  state.spec.preempt.protect_min = Micros(0);
  state.spec.preempt.budget_per_day = 1'000;
  task.spec.windows.clear();
  task.started_at = Time(0);
  task.spec.work.reset();
};
constexpr auto nearly_done = [](PoolState&, TaskState& task) { task.spec.work.reset(); };
constexpr auto own_cost = [](PoolState&, TaskState& task) { task.preemptions = 0; };
constexpr auto other_tenants = [](PoolState& state, TaskState& task) {
  if (task.spec.request.share == whole_device) return;
  for (const Slot& slot : task.slots) state.devices[slot.device.value].used_share = MilliGpu(0);
};

std::optional<Proposal> discount_for_many(PoolState& state, const Shape& demand, Time now,
                                          Time needed_by) {
  auto found = find_victims(state, demand, now, needed_by);
  if (found && demand.request.count > 1) found->cost /= 2;
  return found;
}

// Finds who leaves the devices, and forgets the rest.
template <auto Lift>
std::optional<Proposal> unasked(PoolState& state, const Shape& demand, Time now, Time needed_by) {
  Shape less = demand;
  Lift(less.request);
  return find_victims(state, less, now, needed_by);
}
constexpr auto host = [](Request& request) { request.cpu_milli = 0; };
constexpr auto cell = [](Request& request) { request.near.within = Cell::any; };

bool holds(Property property, Search search, Kind kind = Kind::any) {
  rc::detail::TestParams params;
  params.seed = 1;
  params.disableShrinking = true;
  return run(property, search, {10, 1'000, kind}, params).template is<rc::detail::SuccessResult>();
}

TEST(PreemptProperty, EachSeesAPlantedFault) {
  EXPECT_FALSE(holds(costs_the_least, by_totals));
  EXPECT_FALSE(holds(costs_the_least, takes_one_more));
  EXPECT_FALSE(holds(costs_the_least, without_rule<own_cost>));
  EXPECT_FALSE(holds(victims_may_be_taken, without_rule<protection>));
  EXPECT_FALSE(holds(victims_may_be_taken, without_rule<nearly_done>));
  EXPECT_FALSE(holds(costs_the_least, unasked<host>, Kind::host));
  EXPECT_FALSE(holds(costs_the_least, unasked<cell>, Kind::host));
  EXPECT_FALSE(holds(none_is_to_spare, by_totals));
  EXPECT_FALSE(holds(none_is_to_spare, takes_one_more));
  EXPECT_FALSE(holds(slots_are_free_then, without_rule<other_tenants>));
  EXPECT_FALSE(holds(more_costs_no_less, discount_for_many));
}

}  // namespace
}  // namespace neap::preempt_property
