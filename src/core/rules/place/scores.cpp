#include "core/rules/place/scores.h"

#include <vector>

namespace neap::leftover {

namespace {

constexpr std::uint32_t cells_a_model = most_devices + 1;

// Found on five traces at loads from 0.85 to 1.05 of the cluster: 50 to 200 and 20 to 200 do as
// well.
constexpr std::int64_t reserve_weight = 50;
constexpr std::int64_t fuller_when_lasting = 100;
constexpr std::int64_t models_weigh_when_lasting = 10;

std::vector<Scarcity::Want> wants_of(std::span<const TaskKind> kinds) {
  std::vector<Scarcity::Want> wants;
  for (const TaskKind& kind : kinds) {
    const Demand& demand = kind.demand;
    if (demand.count == 0) continue;
    // Shares of several devices are not groups of whole ones.
    const std::int32_t group = demand.each == whole ? demand.count : 1;
    wants.push_back({demand.models, group, demand.milli() * kind.count});
  }
  return wants;
}

Valuation valuation_of(const LeftoverTable& table, Course course, std::span<const TaskKind> kinds,
                       Outlook outlook) {
  if (course == Course::filling) return {table, Reserve(), 1};
  std::vector<Reserve::Want> wants;
  for (const TaskKind& kind : kinds) {
    const Demand& demand = kind.demand;
    const std::int32_t group = demand.each == whole ? demand.count : 1;
    wants.push_back({demand.models, group, demand.cpu, kind.count});
  }
  // Where more is asked for than there is, somebody waits for ever: to reserve for large tasks
  // makes more of the others wait.
  const std::int64_t weight = outlook.load_percent > 100 ? 0 : reserve_weight;
  return {table, Reserve(wants, weight), fuller_when_lasting};
}

}  // namespace

Scores::Scores(const LeftoverTable& table, Course course, std::span<const TaskKind> kinds,
               std::size_t models, Outlook outlook)
    : outlook_(outlook),
      valuation_(valuation_of(table, course, kinds, outlook)),
      scarcity_(wants_of(kinds), models, course == Course::lasting ? models_weigh_when_lasting : 1),
      cells_(static_cast<std::uint32_t>(models) * cells_a_model) {}

Grade Scores::grade(const Supply& node, std::int64_t before, const Demand& demand) const {
  const Placement placement = best_placement(valuation_, node, before, demand);
  const auto unused = static_cast<std::uint32_t>(placement.opened > 0 ? node.count_unused() : 0);
  return {placement.score, node.model * cells_a_model + unused};
}

DeviceMask Scores::devices(const Supply& node, std::int64_t before, const Demand& demand) const {
  return best_placement(valuation_, node, before, demand).devices;
}

std::int64_t Scores::price(const Demand& demand, std::uint32_t cell) const {
  if (demand.count == 0) return 0;
  const auto unused = static_cast<std::int32_t>(cell % cells_a_model);
  const std::int32_t opened = unused > 0 ? demand.count : 0;
  return scarcity_.price(static_cast<std::uint8_t>(cell / cells_a_model), demand.milli(), unused,
                         opened);
}

}  // namespace neap::leftover
