// The policies that neap is compared with when devices are lent between inference and training.
// All have the same queue: first come first served with EASY backfill.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/loaning/nodes.h"

namespace neap::loaning {

struct Policy {
  // How many devices inference shall have.
  enum class Target : std::uint8_t { peak, fixed, tracked, whole_nodes, planned, exact };
  enum class Victims : std::uint8_t { youngest, cheapest_node, cheapest };
  // How a victim leaves: killed, with a checkpoint of what it has done, or at once without a loss.
  enum class Leave : std::uint8_t { killed, on_demand, free };

  // Who waits behind the first: those that do not delay it, by the estimates, or all that fit.
  enum class Queue : std::uint8_t { easy, greedy };

  std::string name;
  Target target = Target::peak;
  Victims victims = Victims::cheapest;
  Leave leave = Leave::on_demand;
  Queue queue = Queue::easy;
  PlaceRule place;
  double headroom = 1.05;             // of the demand
  std::int64_t every_s = 30;          // between two looks
  std::int64_t dwell_s = 0;           // a target that falls is held for so long
  std::int32_t plan_per_mille = 500;  // of the same hour of the last 7 days; 0: no plan
  double buffer = 0;                  // of the peak, beside the target
  std::int64_t fixed_cost_s = 3'600;  // device-seconds charged for each preemption
};

// "A" two clusters, "A greedy" the same with the queue and the gangs of neap's engine without
// reservations, "B" a fixed split, "C2" kills the youngest, "D" lends whole nodes as Lyra does,
// "E*" the hourly plan with a reactive floor, "O" sees the demand and switches for free.
[[nodiscard]] std::optional<Policy> policy_named(std::string_view name);
// E* with one rule left out or changed.
[[nodiscard]] std::vector<Policy> ablations();

}  // namespace neap::loaning
