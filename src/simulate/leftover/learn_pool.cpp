#include "simulate/leftover/learn_pool.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/rules/place/placement_index.h"
#include "simulate/leftover/learn.h"

namespace neap::simulate {

namespace {

// A table is about single devices: it needs no more nodes than show every mixture, and no more
// pods than show every share of the demand.
constexpr std::size_t most_nodes = 300;
constexpr std::int64_t most_pods = 4'000;

void add_nodes(const PoolState& state, Workload& into) {
  std::vector<leftover::Supply> supplies = empty_supplies(state);
  const std::size_t step = std::max<std::size_t>(1, supplies.size() / most_nodes);
  for (std::size_t i = 0; i < supplies.size(); i += step) {
    static_cast<leftover::Supply&>(into.nodes.emplace_back()) = supplies[i];
  }
  for (const ModelState& model : state.models) into.models.push_back(model.name);
}

void add_pods(const std::vector<leftover::TaskKind>& kinds, Workload& into) {
  std::int64_t tasks = 0;
  for (const leftover::TaskKind& kind : kinds) tasks += kind.count;
  for (const leftover::TaskKind& kind : kinds) {
    const auto shape = static_cast<std::uint32_t>(into.shapes.size());
    into.shapes.push_back(kind.demand);
    const std::int64_t pods =
        tasks <= most_pods ? kind.count : std::max<std::int64_t>(1, kind.count * most_pods / tasks);
    const Pod pod{kind.demand, MiB(0), shape};
    into.pods.insert(into.pods.end(), static_cast<std::size_t>(pods), pod);
    into.classes.push_back({kind.demand, {}, pods});
  }
  std::stable_sort(into.classes.begin(), into.classes.end(),
                   [](const TaskClass& a, const TaskClass& b) { return a.count > b.count; });
  std::int64_t covered = 0;
  const auto all = static_cast<std::int64_t>(into.pods.size());
  while (covered * 100 < all * 95) covered += into.classes[into.typical++].count;
}

}  // namespace

std::optional<Lesson> lesson_of(const PoolState& state) {
  Lesson lesson{state.demand.seen, state.demand.kinds, {}};
  add_nodes(state, lesson.workload);
  const auto kinds = task_kinds(state, lesson.kinds);
  const bool any_devices = std::any_of(kinds.begin(), kinds.end(),
                                       [](const auto& kind) { return kind.demand.count > 0; });
  if (lesson.workload.nodes.empty() || !any_devices) return std::nullopt;
  add_pods(kinds, lesson.workload);
  return lesson;
}

std::optional<PlacementLearned> learn(const Lesson& lesson, const std::stop_token& stop) {
  const leftover::LeftoverTable table = learn_lasting(lesson.workload, {.stop = stop});
  if (stop.stop_requested()) return std::nullopt;
  return PlacementLearned{lesson.seen, lesson.kinds, leftover::values_of(table)};
}

}  // namespace neap::simulate
