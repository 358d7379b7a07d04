#include "simulate/guard/backtest.h"

#include <algorithm>
#include <cmath>

#include "core/model/check.h"
#include "core/model/lead_time/whole.h"

namespace neap::simulate {

namespace {

constexpr std::int64_t million = 1'000'000;
constexpr std::int64_t week_hours = 168;

template <class ToDevices>
SlotDemand demand_of(const lead_time::GuardSpec& spec,
                     std::span<const std::optional<std::int64_t>> offered, ToDevices to_devices) {
  lead_time::OutageState outages;
  SlotDemand demand;
  demand.reserve(offered.size());
  for (const auto& slot : offered) {
    const auto known = lead_time::unless_outage(spec, outages, slot);
    demand.push_back(known ? std::optional(to_devices(*known)) : std::nullopt);
  }
  return demand;
}

// Hours by what became of them, for the scored slots.
class Hours {
 public:
  void add(std::int64_t hour, std::int64_t demand, const lead_time::Claim& claim) {
    if (hour != current_) {
      close();
      current_ = hour;
    }
    open_ = true;
    violated_ = violated_ || demand > claim.guard;
    with_buffer_ = with_buffer_ || demand > claim.guard + claim.buffer;
  }
  void close() {
    if (open_) {
      outcomes_.push_back(violated_);
      beyond_buffer_ += with_buffer_ ? 1 : 0;
    }
    open_ = violated_ = with_buffer_ = false;
  }
  void report(Backtest& into) const {
    into.scored_hours = static_cast<std::int64_t>(outcomes_.size());
    into.violated_with_buffer = beyond_buffer_;
    std::int64_t week = 0;
    for (std::size_t h = 0; h < outcomes_.size(); ++h) {
      into.violated_hours += outcomes_[h] ? 1 : 0;
      week += outcomes_[h] ? 1 : 0;
      if (h >= week_hours && outcomes_[h - week_hours]) --week;
      into.worst_week = std::max(into.worst_week, week);
    }
  }

 private:
  std::vector<bool> outcomes_;
  std::int64_t beyond_buffer_ = 0;
  std::int64_t current_ = -1;
  bool open_ = false, violated_ = false, with_buffer_ = false;
};

std::vector<lead_time::Claim> claims_of(const BacktestSpec& spec, const SlotDemand& demand) {
  const auto floor_at = [&](std::int64_t slot) {
    return lead_time::floor_of(spec.calendar, spec.rule.guard,
                               Time(0) + seconds(spec.rule.guard.slot_seconds) * slot);
  };
  std::vector<lead_time::Claim> claims;
  claims.reserve(demand.size());
  lead_time::ElasticState state = lead_time::begin(spec.rule, floor_at(0));
  for (const auto& slot : demand) {
    claims.push_back(lead_time::claim_of(spec.rule, state));
    lead_time::advance(spec.rule, state,
                       {slot, floor_at(static_cast<std::int64_t>(claims.size()))});
  }
  return claims;
}

Result<Slots> scored_slots(const BacktestSpec& spec, const Backtest& result) {
  const auto slots = static_cast<std::int64_t>(result.claims.size());
  if (spec.scored) {
    if (spec.scored->first >= 0 && spec.scored->first <= spec.scored->last &&
        spec.scored->last < slots) {
      return *spec.scored;
    }
    return fail(
        ErrorCode::invalid_argument,
        "expected FIRST:LAST within the slots of the traffic, 0 to " + std::to_string(slots - 1),
        "score");
  }
  for (std::int64_t s = 0; s < slots; ++s) {
    if (result.claims[static_cast<std::size_t>(s)].ready) return Slots{s, slots - 1};
  }
  return fail(ErrorCode::invalid_argument,
              "expected more than 27 hours of known traffic: before that nothing is lent",
              "traffic");
}

void score_slot(const BacktestSpec& spec, const SlotDemand& demand, std::int64_t slot,
                Backtest& into) {
  const auto at = static_cast<std::size_t>(slot);
  const lead_time::Claim& claim = into.claims[at];
  into.sum_c += claim.guard;
  into.sum_buffer += claim.buffer;
  into.lends_nothing += claim.guard == spec.rule.guard.devices ? 1 : 0;
  into.changes += at > 0 && into.claims[at - 1].guard != claim.guard ? 1 : 0;
  if (!demand[at]) return;
  ++into.scored_slots;
  into.scored_d += *demand[at];
  into.idle += std::max<std::int64_t>(0, claim.guard - *demand[at]);
  into.violated_slots += *demand[at] > claim.guard ? 1 : 0;
}

}  // namespace

SlotDemand scaled_demand(const lead_time::GuardSpec& spec,
                         std::span<const std::optional<std::int64_t>> offered,
                         std::int64_t peak_devices) {
  std::int64_t most = 1;
  for (const auto& slot : offered) most = std::max(most, slot.value_or(0));
  return demand_of(spec, offered,
                   [&](std::int64_t known) { return scaled_up(known, peak_devices, most); });
}

SlotDemand calibrated_demand(const lead_time::GuardSpec& spec,
                             std::span<const std::optional<std::int64_t>> offered,
                             const lead_time::Capacity& capacity) {
  return demand_of(spec, offered,
                   [&](std::int64_t known) { return lead_time::devices_for(known, capacity); });
}

SlotDemand summed_demand(std::span<const SlotDemand> services) {
  NEAP_CHECK(!services.empty());
  std::size_t slots = services.front().size();
  for (const SlotDemand& service : services) slots = std::min(slots, service.size());
  SlotDemand sum;
  std::vector<std::optional<std::int64_t>> each(services.size());
  for (std::size_t s = 0; s < slots; ++s) {
    for (std::size_t i = 0; i < services.size(); ++i) each[i] = services[i][s];
    sum.push_back(lead_time::sum_of(each));
  }
  return sum;
}

std::int64_t Backtest::idle_ppm() const { return scored_d == 0 ? 0 : idle * million / scored_d; }

std::int64_t Backtest::violated_ppm() const {
  return scored_hours == 0 ? 0 : violated_hours * million / scored_hours;
}

std::int64_t Backtest::changes_micro_per_day(const lead_time::GuardSpec& spec) const {
  const std::int64_t slots = scored.last - scored.first + 1;
  return changes * million * 24 * spec.slots_per_hour() / slots;
}

Result<Backtest> backtest(const BacktestSpec& spec, const SlotDemand& demand) {
  if (auto done = lead_time::check(spec.rule); !done) return tl::unexpected(done.error());
  Backtest result;
  result.claims = claims_of(spec, demand);
  const auto scored = scored_slots(spec, result);
  if (!scored) return tl::unexpected(scored.error());
  result.scored = *scored;
  Hours hours;
  for (std::int64_t s = 0; s < static_cast<std::int64_t>(demand.size()); ++s) {
    const auto at = static_cast<std::size_t>(s);
    const lead_time::Claim& claim = result.claims[at];
    const bool lends = claim.ready && claim.guard < spec.rule.guard.devices;
    if (lends && !result.first_lend_slot) result.first_lend_slot = s;
    result.unknown_slots += demand[at] ? 0 : 1;
    result.sum_d += demand[at].value_or(0);
    if (s < scored->first || s > scored->last) continue;
    score_slot(spec, demand, s, result);
    if (demand[at]) hours.add(s / spec.rule.guard.slots_per_hour(), *demand[at], claim);
  }
  hours.close();
  hours.report(result);
  return result;
}

std::int64_t violations_by_chance(std::int64_t hours, std::int32_t per_mille) {
  // n·(x + 2·sqrt(x(1 - x) / n)), x in thousandths, rounded down.
  const std::int64_t x = per_mille;
  return (hours * x + 2 * square_root(hours * x * (1'000 - x))) / 1'000;
}

bool has_drifted(const Backtest& result, std::int32_t per_mille) {
  const std::int64_t x = per_mille;
  const std::int64_t most =
      (week_hours * x + 3 * square_root(week_hours * x * (1'000 - x))) / 1'000;
  return result.worst_week > most;
}

Interval rate_interval(std::int64_t violated, std::int64_t hours) {
  if (hours == 0) return {};
  constexpr double z = 1.959964;
  const auto n = static_cast<double>(hours);
  const double rate = static_cast<double>(violated) / n;
  const double middle = (rate + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(rate * (1 - rate) / n + z * z / (4 * n * n));
  return {std::max<std::int64_t>(0, std::llround((middle - half) * 1e6)),
          std::min(million, static_cast<std::int64_t>(std::llround((middle + half) * 1e6)))};
}

std::string confidence_note(const Backtest& result, std::int32_t per_mille) {
  const Interval interval = rate_interval(result.violated_hours, result.scored_hours);
  const auto percent = [](std::int64_t ppm) {
    ppm += 500;  // to the nearest tenth
    return std::to_string(ppm / 10'000) + "." + std::to_string(ppm / 1'000 % 10) + " %";
  };
  const bool shown = interval.high_ppm <= std::int64_t{per_mille} * 1'000;
  return std::to_string(result.scored_hours) + " hours " + (shown ? "show" : "cannot certify") +
         " a rate of " + percent(std::int64_t{per_mille} * 1'000) + ": " +
         std::to_string(result.violated_hours) + " were violated, so that the true rate lies " +
         "between " + percent(interval.low_ppm) + " and " + percent(interval.high_ppm) +
         " (95 % confidence, hours taken as independent)";
}

}  // namespace neap::simulate
