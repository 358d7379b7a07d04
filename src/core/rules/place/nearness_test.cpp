// Where tasks may be beside what they need: hosts, cells, groups, weights (D7, C1, C2, S14).
#include "core/rules/place/nearness.h"

#include <gtest/gtest.h>

#include "core/model/pool_index.h"
#include "core/rules/admit.h"
#include "core/rules/explain.h"
#include "core/rules/place.h"
#include "core/rules/preempt.h"
#include "core/testing/pool_builder.h"

namespace neap {
namespace {

using testing::demand_of;
using testing::pool_of;

// "a:0,1 b:0", or the code of what is short.
std::string text_of(const PoolState& state, const std::vector<Slot>& slots) {
  std::string text;
  NodeId last;
  for (const Slot& slot : slots) {
    const DeviceState& device = state.device(slot.device);
    if (device.node != last) {
      text += (text.empty() ? "" : " ") + state.node(device.node).name + ":";
    } else {
      text += ",";
    }
    text += std::to_string(device.index);
    last = device.node;
  }
  return text;
}

std::string join(std::initializer_list<std::string_view> lines) {
  std::string text;
  for (const std::string_view line : lines) text += line;
  return text;
}

std::string placed(const PoolState& state, std::string_view demand) {
  const Placement placement = place(state, demand_of(state, demand));
  if (placement.slots.empty()) return std::string(name_of(placement.why));
  return text_of(state, placement.slots);
}

std::string planned(PoolState& state, std::string_view demand) {
  const auto found = find_victims(state, demand_of(state, demand), testing::pool_now,
                                  testing::pool_now + minutes(11));
  if (!found) return "none";
  std::string text = text_of(state, found->slots) + " from";
  for (const Victim& victim : found->victims) {
    text += " " + state.tasks.at(victim.task).spec.name;
  }
  return text;
}

// ---- hosts -----------------------------------------------------------------------------------

TEST(Host, C1_DevicesWithoutCpuOrMemoryBesideThemDoNotServe) {
  const PoolState state = pool_of(
      "node a d 4 A100 1000 cpu=16000 mem=64000\n"
      "node b d 4 A100 1000 cpu=32000 mem=32000\n"
      "task t normal on=a:0 cpu=12000 mem=1000\n");
  EXPECT_EQ(placed(state, "normal cpu=4000"), "a:1");
  EXPECT_EQ(placed(state, "normal cpu=4001"), "b:0");
  EXPECT_EQ(placed(state, "normal cpu=5000 mem=40000"), "host");
  EXPECT_EQ(placed(state, "normal mem=63000"), "a:1");
  EXPECT_EQ(placed(state, "normal mem=63001"), "host");
}

TEST(Host, C1_ANodeThatDoesNotSayIsNeverShort) {
  const PoolState state = pool_of(
      "node a d 2 A100 1000\n"
      "task t normal on=a:0 cpu=900000\n");
  EXPECT_EQ(placed(state, "normal cpu=900000 mem=900000"), "a:1");
}

TEST(Host, C1_EachNodeOfAGangGivesItsPartRoundedUp) {
  const char* pool =
      "node a d 4 A100 1000 rack=r cpu=8000\n"
      "node b d 4 A100 1000 rack=r cpu=8000\n";
  EXPECT_EQ(placed(pool_of(pool), "normal count=6 cpu=12000"), "a:0,1,2,3 b:0,1");
  EXPECT_EQ(placed(pool_of(pool), "normal count=6 cpu=12001"), "a:0,1,2 b:0,1,2");
  EXPECT_EQ(placed(pool_of(pool), "normal count=8 cpu=16001"), "host");
}

TEST(Host, D2_VictimsAreCountedWithTheCpuThatTheyLeave) {
  // t1 is cheaper than t2 and has a device, but not the CPU.
  PoolState state = pool_of(
      "node a d 3 A100 1000 cpu=8000\n"
      "task t1 normal on=a:0 cpu=1000 captured=-5\n"
      "task t2 normal on=a:1 cpu=6000 captured=-300\n");
  EXPECT_EQ(planned(state, "infer count=1 cpu=2500"), "a:1 from t2");
  EXPECT_EQ(planned(state, "infer count=1 cpu=1000"), "a:2 from");
  EXPECT_EQ(planned(state, "infer count=2 cpu=7500"), "a:0,1 from t1 t2");
  EXPECT_EQ(planned(state, "infer count=2 cpu=8001"), "none");
}

TEST(Host, D2_AGangsVictimsLeaveCpuOnEachOfItsNodes) {
  PoolState state = pool_of(
      "node a d 2 A100 1000 cpu=4000\n"
      "node b d 2 A100 1000 cpu=4000\n"
      "node c d 2 A100 1000 cpu=4000\n"
      "task keep infer on=a:0 cpu=100\n"
      "task t1 normal on=b:0-1 cpu=4000\n"
      "task t2 normal on=c:0-1 cpu=4000\n");
  EXPECT_EQ(planned(state, "infer count=4 cpu=8000"), "b:0,1 c:0,1 from t1 t2");
  EXPECT_EQ(planned(state, "infer count=4 cpu=8001"), "none");
}

TEST(Host, G5_MoreThanAnyNodeHasIsRefusedAtSubmission) {
  const PoolState state = pool_of(
      "node a d 4 A100 1000 cpu=16000 mem=64000\n"
      "node b d 4 A100 1000 cpu=32000 mem=32000\n"
      "node c d 4 H100 1000 cpu=64000 mem=32000\n");
  const auto field = [&](std::string_view demand) -> std::string {
    const auto checked = check_request(state, demand_of(state, demand).request);
    return checked ? "" : checked.error().context;
  };
  EXPECT_EQ(field("normal cpu=64000"), "");
  EXPECT_EQ(field("normal cpu=64001"), "cpu");
  EXPECT_EQ(field("normal cpu=32001 models=A100"), "cpu");
  EXPECT_EQ(field("normal cpu=16001 exclude=b+c"), "cpu");
  EXPECT_EQ(field("normal mem=64001"), "host_memory");
  EXPECT_EQ(field("normal count=8 cpu=64000"), "");
  EXPECT_EQ(field("normal count=8 models=A100 cpu=256008"), "cpu");
}

// ---- cells -----------------------------------------------------------------------------------

constexpr const char* linked_pool =
    "node a d 4 A100 1000 rack=r1 linked=2\n"
    "node b d 4 A100 1000 rack=r1 linked=2\n"
    "node c e 4 A100 1000 rack=r2 linked=2\n";

TEST(Cells, D7_ExcludedNodesAreNeverUsed) {
  const PoolState state = pool_of(linked_pool);
  EXPECT_EQ(placed(state, "normal exclude=a"), "b:0");
  EXPECT_EQ(placed(state, "normal exclude=a+b count=4"), "c:0,1,2,3");
  EXPECT_EQ(placed(state, "normal exclude=a+b count=8"), "excluded");
  EXPECT_EQ(placed(state, "normal exclude=a count=8"), "b:0,1,2,3 c:0,1,2,3");
}

TEST(Cells, D7_OneDeviceTakesTheRestOfABrokenPairAndTwoTakeAPair) {
  const PoolState state =
      pool_of(join({"node a d 6 A100 1000 linked=2\n", "task t normal on=a:3\n"}));
  EXPECT_EQ(placed(state, "normal"), "a:2");
  EXPECT_EQ(placed(state, "normal count=2"), "a:0,1");
  EXPECT_EQ(placed(state, "normal count=3"), "a:0,1,2");
  EXPECT_EQ(placed(state, "normal count=4"), "a:0,1,4,5");
}

TEST(Cells, D7_WithinAPairIsHard) {
  const PoolState state = pool_of(join({linked_pool,
                                        "task t1 normal on=a:0,a:2\n"
                                        "task t2 normal on=b:1,b:3\n"
                                        "task t3 normal on=c:1\n"}));
  EXPECT_EQ(placed(state, "normal count=2"), "a:1,3");
  EXPECT_EQ(placed(state, "normal count=2 within=pair"), "c:2,3");
  EXPECT_EQ(placed(state, "normal count=2 within=pair exclude=c"), "excluded");
  EXPECT_EQ(placed(pool_of("node a d 4 A100 1000 linked=2\n"
                           "task t normal on=a:0,a:2\n"),
                   "normal count=2 within=pair"),
            "cell");
  EXPECT_EQ(placed(state, "normal count=2 share=500 within=pair"), "c:2,3");
}

TEST(Cells, D2_VictimsForAPairAreOfOnePair) {
  PoolState state = pool_of(
      "node a d 4 A100 1000 linked=2\n"
      "task t0 normal on=a:0 captured=-300\n"
      "task t1 infer on=a:1\n"
      "task t2 normal on=a:2 captured=-300\n"
      "task t3 normal on=a:3 captured=-500\n");
  EXPECT_EQ(planned(state, "infer count=2"), "a:0,2 from t0 t2");
  EXPECT_EQ(planned(state, "infer count=2 within=pair"), "a:2,3 from t2 t3");
}

TEST(Cells, G5_WithinACellThatIsTooSmallIsRefusedAtSubmission) {
  const PoolState state = pool_of(linked_pool);
  const auto field = [&](std::string_view demand) -> std::string {
    const auto checked = check_request(state, demand_of(state, demand).request);
    return checked ? "" : checked.error().context;
  };
  EXPECT_EQ(field("normal within=device"), "");
  EXPECT_EQ(field("normal count=2 within=device"), "placement.within");
  EXPECT_EQ(field("normal count=2 within=pair"), "");
  EXPECT_EQ(field("normal count=3 within=pair"), "placement.within");
  EXPECT_EQ(field("normal count=4 within=node"), "");
  EXPECT_EQ(field("normal count=5 within=node"), "placement.within");
  EXPECT_EQ(field("normal count=8 within=rack"), "");
  EXPECT_EQ(field("normal count=9 within=rack"), "placement.within");
  EXPECT_EQ(field("normal count=9 within=domain"), "placement.within");
}

// ---- groups ----------------------------------------------------------------------------------

constexpr const char* domains_pool =
    "node a0 a 2 A100 1000\n"
    "node a1 a 2 A100 1000\n"
    "node b0 b 2 A100 1000\n";

TEST(Groups, D7_NoTwoOfAGroupInOneCell) {
  const PoolState state =
      pool_of(join({domains_pool, "task m normal on=a0:0 share=500 group=g\n"}));
  EXPECT_EQ(placed(state, "normal share=500 group=g"), "a0:0");
  EXPECT_EQ(placed(state, "normal share=500 group=g apart=device"), "a0:1");
  EXPECT_EQ(placed(state, "normal share=500 group=g apart=node"), "a1:0");
  EXPECT_EQ(placed(state, "normal share=500 group=g apart=domain"), "b0:0");
  EXPECT_EQ(placed(state, "normal share=500 group=other apart=domain"), "a0:0");
  EXPECT_EQ(placed(state, "normal share=500 group=g apart=domain exclude=b0"), "apart");
}

TEST(Groups, D7_WhoWantsToBeApartKeepsLaterOnesOff) {
  const PoolState state =
      pool_of(join({domains_pool, "task m normal on=a0:0 share=500 group=g apart=domain\n"}));
  EXPECT_EQ(placed(state, "normal share=500 group=g"), "b0:0");
  EXPECT_EQ(placed(state, "normal share=500 group=g apart=device exclude=b0"), "apart");
}

TEST(Groups, D7_SoManyInAFaultDomain) {
  const PoolState state = pool_of(join({domains_pool,
                                        "task m normal on=a0:0 group=g\n"
                                        "task n normal on=a1:0 group=g\n"}));
  EXPECT_EQ(placed(state, "normal group=g per_domain=3"), "a0:1");
  EXPECT_EQ(placed(state, "normal group=g per_domain=2"), "b0:0");
  EXPECT_EQ(placed(state, "normal group=g per_domain=2 exclude=b0"), "apart");
}

TEST(Groups, D7_AGangCountsOnceInEachCell) {
  const PoolState state = pool_of(join({domains_pool, "task m normal on=a0:0-1,a1:0-1 group=g\n"}));
  EXPECT_EQ(state.index->groups.at("/g").members(Cell::domain, 0), 1);
  EXPECT_EQ(state.index->groups.at("/g").members(Cell::node, 0), 1);
}

TEST(Groups, D7_TeamsHaveNamesOfTheirOwn) {
  TaskSpec spec;
  spec.team = "vision";
  EXPECT_EQ(group_of(spec), "");
  spec.request.near.group = "g";
  EXPECT_EQ(group_of(spec), "vision/g");
}

TEST(Groups, S14_ReplicasAreTriedWhereFewOfThemAre) {
  const PoolState state = pool_of(join({domains_pool,
                                        "node c0 c 2 A100 1000\n"
                                        "task r0 infer on=a0:0 group=chat\n"
                                        "task r1 infer on=b0:0 group=chat\n"}));
  const auto nodes = preferred_nodes(state, demand_of(state, "infer group=chat"));
  ASSERT_FALSE(nodes.empty());
  EXPECT_EQ(state.node(nodes.front()).name, "c0");
  EXPECT_TRUE(preferred_nodes(state, demand_of(state, "normal group=chat")).empty());
  EXPECT_TRUE(preferred_nodes(state, demand_of(state, "infer group=new")).empty());
}

// An eighth of a group in one domain is no loss that hurts: up to there they stay together.
TEST(Groups, S14_ReplicasAreTogetherAsFarAsALossMayGo) {
  std::string pool;
  for (const char* node : {"a", "b", "c"}) {
    pool += std::string("node ") + node + " d" + node + " 40 A100 1000\n";
  }
  const auto first_for = [&](std::vector<std::pair<const char*, int>> members) {
    std::string text = pool;
    int n = 0;
    for (const auto& [node, count] : members) {
      for (int i = 0; i < count; ++i) {
        text += "task r" + std::to_string(n++) + " infer on=" + node + ":" + std::to_string(i) +
                " group=chat\n";
      }
    }
    const PoolState state = pool_of(text);
    return state.node(preferred_nodes(state, demand_of(state, "infer group=chat")).front()).name;
  };
  EXPECT_EQ(first_for({{"a", 1}, {"b", 1}}), "c");
  EXPECT_EQ(first_for({{"a", 3}, {"b", 1}}), "c") << "five: one in each";
  EXPECT_EQ(first_for({{"a", 1}, {"b", 30}, {"c", 2}}), "c") << "34: five in each, c has most";
  EXPECT_EQ(first_for({{"a", 3}, {"b", 30}, {"c", 2}}), "a");
  EXPECT_EQ(first_for({{"a", 20}, {"b", 19}, {"c", 21}}), "b") << "all are full: the emptiest";
}

// ---- weights ---------------------------------------------------------------------------------

TEST(Weights, C2_DevicesThatHoldThemComeFirst) {
  const PoolState state =
      pool_of(join({domains_pool,
                    "task x infer on=a0:0 share=700 memory=100\n"
                    "task m infer on=b0:1 share=300 memory=100 weights=llama\n"}));
  const auto nodes =
      preferred_nodes(state, demand_of(state, "infer share=300 memory=100 weights=llama"));
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(state.node(nodes.front()).name, "b0");
  const Shape shape = demand_of(state, "infer share=300 memory=100 weights=llama");
  const auto slots = place_on_node(state, room_of(state, nodes.front(), shape), shape, 1,
                                   allowed_roles(state, shape));
  EXPECT_EQ(text_of(state, slots), "b0:1");
}

// ---- what people are told --------------------------------------------------------------------

TEST(Nearness, F6_ReasonsNameWhatIsInTheWay) {
  PoolState state = pool_of(
      "node a d 4 A100 1000 linked=2 cpu=16000\n"
      "task t normal on=a:0,a:2 cpu=12000 group=g\n"
      "task w normal count=1 cpu=8000\n");
  TaskState& task = state.tasks.at(testing::task_named(state, "w"));
  const auto told = [&](std::string_view demand) {
    const Shape shape = demand_of(state, demand);
    task.spec.request = shape.request;
    task.shape = intern_shape(state, shape);
    state.wait_codes[task.shape.value] = place(state, shape).why;
    return explain_wait(state, task);
  };
  EXPECT_NE(told("normal cpu=8000").find("not 8 cores beside them"), std::string::npos);
  EXPECT_NE(told("normal cpu=8000").find("at most 4 cores left"), std::string::npos);
  EXPECT_NE(told("normal count=2 within=pair").find("one pair of linked devices"),
            std::string::npos);
  EXPECT_NE(told("normal exclude=a").find("1 nodes that it excludes"), std::string::npos);
  EXPECT_NE(told("normal group=g apart=node").find("others of the group g are"), std::string::npos);
  EXPECT_NE(told("normal group=g per_domain=1").find("1 of the group g"), std::string::npos);
}

}  // namespace
}  // namespace neap
