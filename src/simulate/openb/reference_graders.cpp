#include "simulate/openb/reference_graders.h"

#include <algorithm>
#include <cmath>

namespace neap::simulate {

namespace {

// The largest node of the published cluster: what the scores are measured by.
constexpr double largest_cpu = 128'000;
constexpr double largest_devices = 8'000;
constexpr std::int32_t unknown = -1;
constexpr std::int32_t does_not_fit = -2;

std::int64_t cut_off(double score) { return static_cast<std::int64_t>(score); }

}  // namespace

std::int64_t dot_product_score(const Node& node, const Demand& demand) {
  const double cpu = (node.cpu / largest_cpu) * (demand.cpu / largest_cpu);
  const double devices = (node.free / largest_devices) * (demand.milli() / largest_devices);
  return cut_off(100 * (1 - (cpu + devices) / 2));
}

std::int64_t clustering_score(const Node& node, const Demand& demand) {
  if (demand.count == 0) return 0;
  const std::int64_t used = 25 * (8'000 - node.free) / 8'000;
  const std::uint32_t own = demand.shares() ? 1U : 1U << static_cast<unsigned>(demand.count);
  if ((node.kinds & own) != 0) return used + (node.kinds == own ? 75 : 50);
  return node.kinds == 0 ? used + 25 : used;
}

std::int64_t packing_score(const Node& node, const Demand& demand) {
  if (demand.count == 0) return 0;
  const std::int64_t unused = node.count_unused();
  if (unused == node.devices) return std::max(33 - unused, unused);
  std::array<std::int16_t, most_devices> idle = node.idle;
  std::sort(idle.begin(), idle.begin() + node.devices);
  std::int64_t opened = 0, left = 0;
  std::int32_t wanted = demand.count;
  for (int i = 0; i < node.devices && wanted > 0; ++i) {
    const std::int16_t g = idle[static_cast<std::size_t>(i)];
    if (g < demand.each) continue;
    opened += g == whole ? 1 : 0;
    left += g;
    --wanted;
  }
  if (opened > 0) return std::max<std::int64_t>(50 - opened, 33);
  return std::max<std::int64_t>(100 - (left * 100 / 1000) / 10, 50);
}

std::int64_t best_fit_score(const Node& node, const Demand& demand) {
  const double cpu = (node.cpu - demand.cpu) / largest_cpu;
  const double devices = (node.free - demand.milli()) / largest_devices;
  return cut_off(100 * (1 - 0.5 * cpu - 0.5 * devices));
}

std::size_t FgdGrader::Hash::operator()(const State& state) const {
  std::uint64_t hash = static_cast<std::uint64_t>(state.cpu) << 16U |
                       static_cast<std::uint64_t>(state.model) << 8U | state.devices;
  for (const std::int16_t idle : state.idle) {
    hash = (hash ^ static_cast<std::uint64_t>(idle)) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29U;
  }
  return static_cast<std::size_t>(hash);
}

FgdGrader::FgdGrader(const Workload& workload, const Cluster& cluster)
    : fragmentation_(workload),
      state_of_node_(cluster.nodes().size()),
      gains_(workload.shapes.size()) {
  for (std::uint32_t n = 0; n < cluster.nodes().size(); ++n) changed(cluster.node(n), n);
}

void FgdGrader::changed(const Node& node, std::uint32_t index) {
  const State state{node.cpu, node.model, node.devices, node.idle};
  const auto [at, added] = states_.try_emplace(state, static_cast<std::uint32_t>(before_.size()));
  if (added) before_.push_back(fragmentation_.of(node));
  state_of_node_[index] = at->second;
}

std::optional<FgdGrader::Gain> FgdGrader::gain(const Fragmentation& fragmentation, const Node& node,
                                               double before, const Demand& demand) {
  if (!node.fits(demand)) return {};
  const auto score = [&](const Node& after) {
    const double gained = (before - fragmentation.of(after)) / 1000;
    return static_cast<std::int32_t>(cut_off(100 * (1 / (1 + std::exp(-gained)))));
  };
  Node after = node;
  after.cpu -= demand.cpu;
  after.free -= demand.milli();
  if (!demand.shares()) {
    const DeviceMask devices = first_unused(node, demand.count);
    for (DeviceMask left = devices; left != 0; left &= left - 1) {
      after.idle[static_cast<std::size_t>(std::countr_zero(left))] = 0;
    }
    return Gain{score(after), devices};
  }
  Gain best{-1, 0};
  for (std::size_t i = 0; i < node.devices; ++i) {
    // A device as free as an earlier one gives the same score, and the first one wins.
    const auto same =
        std::find(node.idle.begin(), node.idle.begin() + static_cast<long>(i), node.idle[i]);
    if (node.idle[i] < demand.each || same != node.idle.begin() + static_cast<long>(i)) continue;
    after.idle[i] = static_cast<std::int16_t>(after.idle[i] - demand.each);
    if (const std::int32_t s = score(after); s > best.score) best = {s, 1U << i};
    after.idle[i] = node.idle[i];
  }
  return best;
}

const FgdGrader::Gain& FgdGrader::remembered(const Node& node, std::uint32_t index,
                                             ShapeRef shape) {
  const std::uint32_t state = state_of_node_[index];
  std::vector<Gain>& gains = gains_[shape.id];
  if (gains.size() <= state) gains.resize(std::max(before_.size(), gains.size() * 2), {unknown, 0});
  Gain& known = gains[state];
  if (known.score == unknown) {
    const auto fresh = gain(fragmentation_, node, before_[state], shape.demand);
    known = fresh ? *fresh : Gain{does_not_fit, 0};
  }
  return known;
}

std::optional<Grade> FgdGrader::grade(const Node& node, std::uint32_t index, ShapeRef shape) {
  const Gain& known = remembered(node, index, shape);
  if (known.score == does_not_fit) return {};
  return Grade{known.score, 0};
}

DeviceMask FgdGrader::devices(const Node& node, std::uint32_t index, ShapeRef shape) {
  return remembered(node, index, shape).devices;
}

}  // namespace neap::simulate
