#include "simulate/loaning/nodes.h"

#include <algorithm>

namespace neap::loaning {

namespace {

bool holds(const std::vector<Part>& parts, std::int32_t node) {
  return std::any_of(parts.begin(), parts.end(),
                     [node](const Part& part) { return part.node == node; });
}

}  // namespace

Nodes::Nodes(Size size, PlaceRule rule) : rule_(rule) {
  for (std::int32_t left = size.devices; left > 0; left -= devices_per_node) {
    free_.push_back(std::min(left, devices_per_node));
  }
  first_lendable_ = count();
  for (std::int32_t held = 0; held < size.region && first_lendable_ > 0;) {
    held += free_[static_cast<std::size_t>(--first_lendable_)];
  }
  for (std::int32_t node = 0; node < count(); ++node) {
    const std::int32_t free = free_[static_cast<std::size_t>(node)];
    by_free_[zone_of(node)][static_cast<std::size_t>(free)].insert(node);
    free_in_all_ += free;
  }
}

void Nodes::change(std::int32_t node, std::int32_t by) {
  std::int32_t& free = free_[static_cast<std::size_t>(node)];
  auto& zone = by_free_[zone_of(node)];
  zone[static_cast<std::size_t>(free)].erase(node);
  free += by;
  free_in_all_ += by;
  zone[static_cast<std::size_t>(free)].insert(node);
}

std::vector<Part> Nodes::find(std::int32_t devices) const {
  std::vector<Part> parts = find_even(devices);
  const bool gang = devices > devices_per_node && devices <= free_in_all_;
  return parts.empty() && gang && rule_.gangs == Gangs::uneven ? find_uneven(devices) : parts;
}

// Of few nodes: those with the most.
std::vector<Part> Nodes::find_uneven(std::int32_t devices) const {
  std::vector<Part> parts;
  for (std::int32_t free = devices_per_node; free > 0; --free) {
    for (const auto& zone : by_free_) {
      for (const std::int32_t node : zone[static_cast<std::size_t>(free)]) {
        parts.push_back({node, std::min(free, devices)});
        devices -= parts.back().devices;
        if (devices == 0) return parts;
      }
    }
  }
  return {};
}

std::vector<Part> Nodes::find_even(std::int32_t devices) const {
  std::vector<Part> parts;
  if (devices > free_in_all_) return parts;
  std::int32_t whole = devices > devices_per_node ? devices / devices_per_node : 0;
  const std::int32_t rest = devices - whole * devices_per_node;
  for (const auto& zone : by_free_) {
    for (const std::int32_t node : zone[devices_per_node]) {
      if (whole == 0) break;
      parts.push_back({node, devices_per_node});
      --whole;
    }
  }
  if (whole > 0) return {};
  if (rest == 0) return parts;
  for (const auto& zone : by_free_) {
    for (std::int32_t free = rest; free <= devices_per_node; ++free) {
      for (const std::int32_t node : zone[static_cast<std::size_t>(free)]) {
        if (holds(parts, node)) continue;
        parts.push_back({node, rest});
        return parts;
      }
    }
  }
  return {};
}

std::vector<Part> Nodes::find_in(const std::vector<std::int32_t>& free,
                                 std::int32_t devices) const {
  std::vector<Part> parts;
  std::int32_t whole = devices > devices_per_node ? devices / devices_per_node : 0;
  const std::int32_t rest = devices - whole * devices_per_node;
  for (std::int32_t node = 0; node < count() && whole > 0; ++node) {
    if (free[static_cast<std::size_t>(node)] < devices_per_node) continue;
    parts.push_back({node, devices_per_node});
    --whole;
  }
  if (whole > 0) return {};
  if (rest == 0) return parts;
  Part best{-1, rest};
  std::int32_t best_key = 0;
  for (std::int32_t node = 0; node < count(); ++node) {
    const std::int32_t here = free[static_cast<std::size_t>(node)];
    if (here < rest || holds(parts, node)) continue;
    const auto zone = static_cast<std::int32_t>(zone_of(node));
    const std::int32_t key = zone * (devices_per_node + 1) + here;
    if (best.node < 0 || key < best_key) {
      best.node = node;
      best_key = key;
    }
  }
  if (best.node < 0) return {};
  parts.push_back(best);
  return parts;
}

}  // namespace neap::loaning
