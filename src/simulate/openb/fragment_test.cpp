// D8: the core's fragmentation gradient in integers equals the published one in doubles.
#include "core/rules/place/fragment.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "simulate/openb/fragmentation.h"
#include "simulate/openb/reference_graders.h"
#include "trace/chance.h"

namespace neap::simulate::fragment_test {
namespace {

using leftover::Fragments;
using leftover::TaskKind;

Demand random_demand(trace::Chance& chance) {
  Demand demand;
  demand.cpu = static_cast<std::int32_t>(chance.below(24) * 1'000);
  const std::uint64_t kind = chance.below(10);
  demand.count = kind == 0 ? 0 : kind < 3 ? static_cast<std::int32_t>(1U << chance.below(4)) : 1;
  demand.each = demand.count == 0 ? 0
                : demand.count > 1 || kind % 3 == 0
                    ? whole
                    : static_cast<std::int32_t>(10 * (1 + chance.below(99)));
  if (demand.count > 0 && chance.below(4) == 0) demand.models = 1 + chance.below(3);
  return demand;
}

Node random_node(trace::Chance& chance) {
  Node node;
  node.cpu = static_cast<std::int32_t>(chance.below(97) * 1'000);
  node.devices = static_cast<std::uint8_t>(1U << chance.below(4));
  node.by_role[0] = static_cast<std::uint16_t>((1U << node.devices) - 1);
  node.model = static_cast<std::uint8_t>(chance.below(3));
  node.idle.fill(0);
  for (std::size_t i = 0; i < node.devices; ++i) {
    node.idle[i] = static_cast<std::int16_t>(
        chance.below(3) == 0 ? whole : static_cast<std::int32_t>(10 * chance.below(101)));
    if (node.idle[i] == whole) node.unused = static_cast<std::uint16_t>(node.unused | 1U << i);
    node.free += node.idle[i];
  }
  return node;
}

struct Agreement {
  int compared = 0;
  int on_an_edge = 0;  // where the last bits of doubles decide
  int different = 0;
};

// The published score before it is cut off.
double exact_score(const Fragmentation& fragmentation, const Node& node, const Demand& demand,
                   DeviceMask devices) {
  Node after = node;
  after.cpu -= demand.cpu;
  after.free -= demand.milli();
  for (std::size_t i = 0; i < node.devices; ++i) {
    if ((devices >> i & 1U) == 0) continue;
    after.idle[i] = static_cast<std::int16_t>(after.idle[i] - demand.each);
  }
  const double gained = (fragmentation.of(node) - fragmentation.of(after)) / 1000;
  return 100 / (1 + std::exp(-gained));
}

bool near_an_edge(const Fragmentation& fragmentation, const Node& node, const Demand& demand) {
  for (std::size_t i = 0; i < node.devices; ++i) {
    const DeviceMask devices = demand.shares() ? 1U << i : first_unused(node, demand.count);
    if (demand.shares() && node.idle[i] < demand.each) continue;
    const double score = exact_score(fragmentation, node, demand, devices);
    if (std::abs(score - std::round(score)) < 1e-7) return true;
  }
  return false;
}

Agreement compare(std::uint64_t seed, std::int64_t miscounted) {
  trace::Chance chance(seed);
  Agreement agreement;
  for (int round = 0; round < 200; ++round) {
    std::vector<TaskKind> kinds;
    std::vector<Fragmentation::Weighted> weighted;
    const std::size_t count = 1 + chance.below(10);  // so few that all are typical
    std::int64_t tasks = 0;
    for (std::size_t k = 0; k < count; ++k) {
      kinds.push_back({random_demand(chance), 2 + static_cast<std::int64_t>(chance.below(2))});
      tasks += kinds.back().count;
    }
    // One so rare that it is not typical.
    kinds.push_back({random_demand(chance), 1});
    for (std::size_t k = 0; k < count; ++k) kinds[k].count *= 40;
    tasks *= 40;
    for (std::size_t k = 0; k < count; ++k) {
      weighted.push_back(
          {kinds[k].demand, static_cast<double>(kinds[k].count) / static_cast<double>(tasks)});
    }
    kinds[0].count += miscounted;
    const Fragments fragments(kinds);
    const Fragmentation published(weighted);
    for (int n = 0; n < 20; ++n) {
      const Node node = random_node(chance);
      const Demand demand = random_demand(chance);
      const auto gain = FgdGrader::gain(published, node, published.of(node), demand);
      if (!gain) continue;
      const std::int64_t before = fragments.potential_of(node);
      const std::int64_t score = fragments.grade(node, before, demand).score;
      const DeviceMask devices = fragments.devices(node, before, demand);
      ++agreement.compared;
      const bool equal = score == gain->score && devices == gain->devices;
      if (!equal && near_an_edge(published, node, demand)) {
        ++agreement.on_an_edge;
      } else if (!equal) {
        ++agreement.different;
      }
    }
  }
  return agreement;
}

TEST(Fragments, D8_integers_agree_with_the_published_doubles) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Agreement agreement = compare(seed, 0);
    EXPECT_GT(agreement.compared, 1'000);
    EXPECT_EQ(agreement.different, 0);
    EXPECT_LT(agreement.on_an_edge, agreement.compared / 20);
  }
}

TEST(Fragments, D8_a_miscounted_kind_is_noticed) { EXPECT_GT(compare(1, 40).different, 20); }

TEST(Fragments, D8_nothing_seen_yet_makes_all_nodes_equal) {
  trace::Chance chance(3);
  const Fragments fragments({});
  for (int n = 0; n < 50; ++n) {
    const Node node = random_node(chance);
    const Demand demand{0, 0, 0, 0};
    EXPECT_EQ(fragments.grade(node, fragments.potential_of(node), demand).score, 50);
  }
}

}  // namespace
}  // namespace neap::simulate::fragment_test
