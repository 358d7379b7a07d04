// Recorded traffic for tests of the guard; from NEAP_TRACES, absent without it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulate/guard/backtest.h"

namespace neap::simulate::testing {

using Offered = std::vector<std::optional<std::int64_t>>;

struct Recorded {
  Offered offered;  // in slots of 600 s

  [[nodiscard]] static std::optional<Recorded> servegen();
};

// The clients of ServeGen dealt out to so many services; empty without traces.
[[nodiscard]] std::vector<Offered> servegen_parts(std::size_t services);

// Traffic on which the rule was not made: its demand, and a rule that fits its slots.
struct HeldOut {
  std::string name;
  lead_time::GuardSpec rule;
  SlotDemand demand;
};
[[nodiscard]] std::vector<HeldOut> held_out();

// What pools use today, to compare with: the 95th percentile of the demand in the same hour of the
// last 14 days, and 15 % more.
[[nodiscard]] std::vector<std::int64_t> same_hour_guard(const lead_time::GuardSpec& spec,
                                                        const SlotDemand& demand);

struct Held {
  std::int64_t violated_hours = 0;
  std::int64_t idle = 0;  // devices above the demand, over the slots
  std::int64_t demand = 0;
};
[[nodiscard]] Held held_against(const lead_time::GuardSpec& spec, const SlotDemand& demand,
                                const std::vector<std::int64_t>& guard, Slots scored);

}  // namespace neap::simulate::testing
