#include "simulate/assess/lending.h"

#include <algorithm>
#include <vector>

#include "simulate/assess/ppm.h"

namespace neap::assess {

namespace {

// Device slots in stretches of `least` slots and more: the k-th device is lent while k or more are.
Wide usable_slots(const std::vector<std::int64_t>& lent, std::int64_t least) {
  struct Open {
    std::int64_t from, devices;  // lent since, so many of them
  };
  std::vector<Open> open;
  std::int64_t now = 0;
  Wide usable = 0;
  const auto slots = static_cast<std::int64_t>(lent.size());
  for (std::int64_t s = 0; s <= slots; ++s) {
    const std::int64_t next = s < slots ? lent[static_cast<std::size_t>(s)] : 0;
    // The newest of them go back first.
    for (std::int64_t back = now - next; back > 0;) {
      Open& newest = open.back();
      const std::int64_t part = std::min(back, newest.devices);
      if (s - newest.from >= least) usable += Wide{part} * (s - newest.from);
      newest.devices -= part;
      back -= part;
      if (newest.devices == 0) open.pop_back();
    }
    if (next > now) open.push_back({s, next - now});
    now = next;
  }
  return usable;
}

}  // namespace

Lending lending_of(const LendingSpec& spec, const simulate::BacktestSpec& tested,
                   const simulate::SlotDemand& demand, const simulate::Backtest& result) {
  std::int64_t peak = 0, known = 0;
  Wide demand_sum = 0;
  for (std::int64_t s = result.scored.first; s <= result.scored.last; ++s) {
    const auto& slot = demand[static_cast<std::size_t>(s)];
    if (!slot) continue;
    ++known;
    demand_sum += *slot;
    peak = std::max(peak, *slot);
  }
  const std::int64_t apart = std::min(peak, tested.rule.guard.devices);
  std::vector<std::int64_t> lent;
  Wide lent_sum = 0;
  for (std::int64_t s = result.scored.first; s <= result.scored.last; ++s) {
    const lead_time::Claim& claim = result.claims[static_cast<std::size_t>(s)];
    lent.push_back(std::max<std::int64_t>(0, apart - claim.guard - claim.buffer));
    lent_sum += lent.back();
  }
  const std::int64_t slot = seconds(tested.rule.guard.slot_seconds).value;
  const std::int64_t least = (spec.shortest.value + slot - 1) / slot;
  const Wide all = Wide{apart} * static_cast<std::int64_t>(lent.size());
  Lending out;
  out.lent_ppm = ppm_of(lent_sum, all);
  out.usable_ppm = ppm_of(usable_slots(lent, least), all);
  out.mean_over_peak_ppm = ppm_of(demand_sum, Wide{peak} * known);
  out.gain = out.usable_ppm >= spec.least_ppm;
  out.verdict = std::string(out.gain ? "gain: " : "no gain: ") + percent(out.usable_ppm) +
                " of the devices that the peak needs can be lent in stretches of " +
                std::to_string(spec.shortest.value / minutes(1).value) + " min and more (" +
                percent(out.lent_ppm) + " in all; at least " + percent(spec.least_ppm) +
                " would be a gain)";
  if (out.gain) return out;
  out.verdict +=
      out.mean_over_peak_ppm >= flat_from_ppm
          ? ": the demand is flat, its mean is " + percent(out.mean_over_peak_ppm) + " of its peak"
          : ": the guard needs nearly all of them, mean over peak " +
                percent(out.mean_over_peak_ppm);
  return out;
}

}  // namespace neap::assess
