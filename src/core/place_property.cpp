// Placement in arbitrary small pools against an oracle that looks at everything: what is chosen
// obeys every constraint, and nothing that fits somewhere is refused (D7, C1, C2, A6). Each
// property is shown to see planted faults.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>
#include <sstream>

#include "core/engine.h"
#include "core/model/pool_index.h"
#include "core/rules/place.h"
#include "core/rules/preempt.h"
#include "core/testing/any_below.h"
#include "core/testing/place_oracle.h"
#include "core/testing/pool_builder.h"

namespace neap::place_property {
namespace {

using testing::any_below;
using testing::can_be_placed;
using testing::demand_of;
using testing::fault_of;
using testing::one_in;
using testing::pool_now;
using testing::pool_of;

std::string nearness(int nodes) {
  constexpr const char* cells[] = {"device", "pair", "node", "rack", "domain"};
  std::string text;
  if (one_in(2)) text += " group=" + std::string(one_in(2) ? "g" : "h");
  if (!text.empty() && one_in(2)) text += std::string(" apart=") + cells[any_below(5)];
  if (!text.empty() && one_in(4)) text += " per_domain=" + std::to_string(1 + any_below(2));
  if (one_in(4)) text += " exclude=n" + std::to_string(any_below(nodes));
  if (one_in(5)) text += " exclude=n0+n" + std::to_string(any_below(nodes));
  if (one_in(4)) text += " weights=w" + std::to_string(any_below(2));
  return text;
}

std::string host() {
  std::string text;
  // Small numbers, so that parts do not come out even.
  if (one_in(2)) text += " cpu=" + std::to_string(1 + any_below(14));
  if (one_in(3)) text += " mem=" + std::to_string(100 + 150 * any_below(6));
  return text;
}

// Pools of up to six nodes in up to three racks of up to two fault domains.
class Draw {
 public:
  PoolState pool() {
    std::string text = nodes();
    for (int i = any_below(9); i > 0; --i) text += task(i);
    PoolState state = pool_of(text);
    for (DeviceState& device : state.devices) {
      if (one_in(20)) device.health = DeviceHealth::failed;
      if (one_in(12)) device.foreign = MiB(100 * any_below(8));
    }
    rebuild_index(state);
    return state;
  }

  Shape demand(const PoolState& state) const {
    constexpr const char* cells[] = {"device", "pair", "node", "rack", "domain"};
    std::string text = one_in(2) ? "infer" : "normal";
    const int count = one_in(2) ? 1 : 1 + any_below(one_in(2) ? 3 : 9);
    text += " count=" + std::to_string(count);
    if (one_in(3)) {
      text += " share=" + std::to_string(100 * (1 + any_below(9)));
      text += " memory=" + std::to_string(100 * (1 + any_below(8)));
      if (one_in(6)) text += " trust=other";
    }
    if (one_in(4)) text += " memory=" + std::to_string(100 * any_below(10));
    if (one_in(3)) text += std::string(" within=") + cells[any_below(5)];
    if (one_in(3)) text += " releasable";
    if (one_in(8)) text += " models=H100";
    return demand_of(state, text + host() + nearness(static_cast<int>(free_.size())));
  }

 private:
  struct Device {
    int share = 1000, memory = 1000;
  };

  std::string nodes() {
    std::string text;
    const int count = 1 + any_below(6);
    const int size = 1 + any_below(4);
    const bool hosts = !one_in(3);
    for (int n = 0; n < count; ++n) {
      const int devices = one_in(4) ? 1 + any_below(size) : size;
      free_.emplace_back(devices);
      const int rack = any_below(3);
      std::string roles;
      for (int d = 0; d < devices; ++d) roles += !one_in(6) ? 'c' : one_in(2) ? 'b' : 'g';
      text += "node n" + std::to_string(n) + " d" + std::to_string(rack / 2) + " " +
              std::to_string(devices) + (one_in(6) ? " H100" : " A100") + " 1000 rack=r" +
              std::to_string(rack) + " roles=" + roles;
      if (one_in(2)) text += " linked=" + std::to_string(2 + any_below(2));
      if (hosts) text += " cpu=" + std::to_string(2 + any_below(9));
      if (hosts && one_in(2)) text += " mem=" + std::to_string(500 + 300 * any_below(8));
      text += "\n";
    }
    return text;
  }

  std::string task(int number) {
    const bool whole = one_in(2);
    const int share = whole ? 1000 : 100 * (1 + any_below(6));
    const int memory = whole ? 1000 : 50 * any_below(10);
    const int count = one_in(2) ? 1 : 1 + any_below(4);
    std::string on;
    int taken = 0;
    const int start = any_below(static_cast<int>(free_.size()));
    for (std::size_t i = 0; i < free_.size() && taken < count; ++i) {
      const std::size_t n = (static_cast<std::size_t>(start) + i) % free_.size();
      for (std::size_t d = 0; d < free_[n].size() && taken < count; ++d) {
        Device& device = free_[n][d];
        if (device.share < share || device.memory < memory || one_in(4)) continue;
        device.share -= share;
        device.memory -= memory;
        on += (on.empty() ? "" : ",") + ("n" + std::to_string(n)) + ":" + std::to_string(d);
        ++taken;
      }
      if (taken > 0 && !one_in(3)) break;
    }
    if (taken == 0) return {};
    std::string text = "task t" + std::to_string(number) + (one_in(4) ? " infer" : " normal");
    text += " on=" + on + " share=" + std::to_string(share) + " memory=" + std::to_string(memory);
    if (one_in(2)) text += " cpu=" + std::to_string(any_below(5));
    if (one_in(4)) text += " mem=" + std::to_string(100 * any_below(4));
    if (one_in(8)) text += " trust=other";
    return text + nearness(static_cast<int>(free_.size())) + "\n";
  }

  std::vector<std::vector<Device>> free_;
};

struct Case {
  PoolState state;
  Shape demand;
};

// Now and then somebody else has claimed a part.
void claim(PoolState& state, const Shape& demand) {
  const auto proposal = find_victims(state, demand, pool_now, pool_now + minutes(11));
  if (!proposal || proposal->victims.empty()) return;
  TaskState& task = state.tasks.add();
  task.spec.name = "claims";
  task.spec.request = demand.request;
  task.spec.request.near.group = demand.request.near.group.empty() ? "" : "g";
  task.submitted = pool_now;
  state.index->task_names[task.spec.name] = task.id;
  task.tier = demand.tier;
  task.purpose = demand.purpose;
  apply(state, pool_now,
        Decision(PreemptionPlanned{task.id, proposal->slots, proposal->victims,
                                   pool_now + minutes(11), 0}));
}

Case any_case() {
  Draw draw;
  Case out;
  out.state = draw.pool();
  if (one_in(3)) claim(out.state, draw.demand(out.state));
  out.demand = draw.demand(out.state);
  return out;
}

std::string describe(const Case& c) {
  const Request& r = c.demand.request;
  std::ostringstream out;
  out << r.count << " x " << r.share.value << " milli, " << r.memory.value << " MiB, cpu "
      << r.cpu_milli << ", mem " << r.host_memory.value << ", within "
      << static_cast<int>(r.near.within) << ", group " << r.near.group << " apart "
      << static_cast<int>(r.near.apart) << " per domain " << r.near.per_domain << ", not on";
  for (const std::string& node : r.near.exclude) out << " " << node;
  for (const DeviceState& device : c.state.devices) {
    const NodeState& node = c.state.node(device.node);
    out << "\n  " << device.uuid << " " << c.state.models[device.model.value].name << " "
        << name_of(device.role) << " pair " << device.pair << " rack " << node.rack.value << " cpu "
        << free_host(node).cpu << " mem " << free_host(node).memory.value << " free "
        << free_share(device).value << "/" << free_memory(c.state, device).value;
    for (const Tenant& tenant : device.tenants) {
      out << " " << c.state.tasks.at(tenant.task).spec.name;
    }
  }
  return out.str();
}

using Placer = std::function<std::vector<Slot>(const PoolState&, const Shape&)>;
std::vector<Slot> real(const PoolState& state, const Shape& shape) {
  return place(state, shape).slots;
}

// ---- the properties, each empty when it holds ------------------------------------------------

std::string obeys(const Placer& placer, const Case& c) {
  const auto slots = placer(c.state, c.demand);
  return slots.empty() ? "" : fault_of(c.state, c.demand, slots);
}

std::string refuses_nothing(const Placer& placer, const Case& c) {
  if (!placer(c.state, c.demand).empty() || !can_be_placed(c.state, c.demand)) return {};
  return "there is room for it";
}

std::string keeps_its_books(const Placer& /*unused*/, const Case& c) {
  return index_is_current(c.state) ? "" : "the index is another one than a rebuilt one";
}

using Property = std::string (*)(const Placer&, const Case&);

rc::detail::TestResult run(Property property, const Placer& placer, int cases,
                           rc::detail::TestParams params) {
  params.maxSuccess = cases;
  return rc::detail::checkTestable(
      [&] {
        const Case c = any_case();
        const std::string fault = property(placer, c);
        RC_LOG() << describe(c) << ": " << fault << "\n";
        RC_ASSERT(fault.empty());
      },
      rc::detail::TestMetadata{}, params);
}

void expect_holds(Property property, int cases) {
  const auto result = run(property, real, cases, rc::detail::configuration().testParams);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  EXPECT_TRUE(result.template is<rc::detail::SuccessResult>()) << message.str();
}

TEST(PlaceProperty, D7_C1_WhatIsChosenObeysEveryConstraint) { expect_holds(obeys, 6'000); }
TEST(PlaceProperty, D7_NothingThatFitsSomewhereIsRefused) { expect_holds(refuses_nothing, 6'000); }
TEST(PlaceProperty, ClaimsAndGroupsAreKeptAsTheyAreRebuilt) { expect_holds(keeps_its_books, 600); }

// ---- planted faults --------------------------------------------------------------------------

Placer without(std::function<void(Request&)> lift) {
  return [lift](const PoolState& state, const Shape& shape) {
    Shape lifted = shape;
    lift(lifted.request);
    auto slots = place(state, lifted).slots;
    if (slots.size() != static_cast<std::size_t>(shape.request.count)) slots.clear();
    return slots;
  };
}

// Refuses what is not as a lesser search would have it.
Placer only(std::function<bool(const PoolState&, const Shape&, const std::vector<Slot>&)> likes) {
  return [likes](const PoolState& state, const Shape& shape) {
    auto slots = place(state, shape).slots;
    if (!slots.empty() && !likes(state, shape, slots)) slots.clear();
    return slots;
  };
}

bool holds(Property property, const Placer& placer) {
  rc::detail::TestParams params;
  params.seed = 1;
  params.disableShrinking = true;
  return run(property, placer, 4'000, params).template is<rc::detail::SuccessResult>();
}

TEST(PlaceProperty, EachSeesPlantedFaults) {
  EXPECT_FALSE(holds(obeys, without([](Request& r) { r.cpu_milli = 0; })));
  EXPECT_FALSE(holds(obeys, without([](Request& r) { r.host_memory = MiB(0); })));
  // Rounded down, each node of a gang gives a little less than its part.
  EXPECT_FALSE(holds(obeys, without([](Request& r) { r.cpu_milli -= r.cpu_milli % r.count; })));
  EXPECT_FALSE(holds(obeys, without([](Request& r) { r.near.exclude.clear(); })));
  EXPECT_FALSE(holds(obeys, without([](Request& r) { r.near.apart = Cell::any; })));
  EXPECT_FALSE(holds(obeys, without([](Request& r) { r.near.per_domain = 0; })));
  EXPECT_FALSE(holds(obeys, without([](Request& r) { r.near.within = Cell::any; })));
  EXPECT_FALSE(holds(obeys, without([](Request& r) { r.trust_domain.clear(); })));
  EXPECT_FALSE(holds(obeys, without([](Request& r) { r.memory = MiB(0); })));

  const auto parts = [](const PoolState& s, const std::vector<Slot>& slots) {
    return parts_of(s, slots);
  };
  EXPECT_FALSE(holds(refuses_nothing, only([&](const auto& s, const auto&, const auto& slots) {
                       return parts(s, slots).size() < 2;  // no gangs
                     })));
  EXPECT_FALSE(holds(refuses_nothing, only([&](const auto& s, const auto&, const auto& slots) {
                       // Equal parts or none.
                       const auto p = parts(s, slots);
                       return p.size() < 3 || p[0].devices == p[1].devices;
                     })));
  EXPECT_FALSE(holds(refuses_nothing, only([&](const auto& s, const auto&, const auto& slots) {
                       return s.device(slots.front().device).node == NodeId(0);  // tries one node
                     })));
  EXPECT_FALSE(holds(refuses_nothing, only([&](const auto& s, const Shape& shape, const auto&) {
                       // Keeps off whom it need not.
                       return shape.request.near.group.empty() || s.index->groups.empty();
                     })));
}

// Cases in which nothing is ever in the way would prove little.
TEST(PlaceProperty, EachConstraintIsInTheWayNowAndThen) {
  std::map<WaitCode, int> reasons;
  int placed = 0, gangs = 0;
  rc::detail::TestParams params;
  params.maxSuccess = 4'000;
  params.seed = 1;
  (void)rc::detail::checkTestable(
      [&] {
        const Case c = any_case();
        const Placement placement = place(c.state, c.demand);
        ++reasons[placement.why];
        placed += placement.slots.empty() ? 0 : 1;
        gangs += parts_of(c.state, placement.slots).size() > 1 ? 1 : 0;
      },
      rc::detail::TestMetadata{}, params);
  EXPECT_GT(placed, 800);
  EXPECT_GT(gangs, 40);
  for (const WaitCode code :
       {WaitCode::host, WaitCode::apart, WaitCode::excluded, WaitCode::cell}) {
    EXPECT_GT(reasons[code], 20) << name_of(code);
  }
}

}  // namespace
}  // namespace neap::place_property
