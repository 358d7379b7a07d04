#include "cli/guard.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "cli/value.h"
#include "config/values.h"
#include "simulate/run/traffic.h"

namespace neap::cli {

namespace {

constexpr std::size_t most_traces = 64;
constexpr std::int64_t highest_slot = whatif::most_slots;
constexpr std::int32_t usual_slot_seconds = 300;
constexpr std::int32_t servegen_slot_seconds = 600;

// "5:10:7" as three numbers; nothing where it is anything else.
std::optional<std::vector<std::int64_t>> numbers_of(const std::string& text) {
  std::vector<std::int64_t> numbers;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (numbers.size() < 4) {
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0) return {};
    numbers.push_back(number);
    if (rest == end) return numbers;
    if (*rest != ':') return {};
    at = rest + 1;
  }
  return {};
}

Result<std::vector<whatif::Format>> formats_of(const GuardOptions& options) {
  std::vector<whatif::Format> formats;
  for (const std::string& path : options.traces) {
    auto format = *whatif::format_named(options.format);
    if (format == whatif::Format::automatic) {
      const auto found = whatif::detect_format(path);
      if (!found) return tl::unexpected(found.error());
      format = *found;
    }
    formats.push_back(format);
  }
  return formats;
}

std::int32_t slot_of(const GuardOptions& options, const std::vector<whatif::Format>& formats) {
  if (options.slot_seconds != 0) return options.slot_seconds;
  const bool coarse =
      std::find(formats.begin(), formats.end(), whatif::Format::servegen) != formats.end();
  return coarse ? servegen_slot_seconds : usual_slot_seconds;
}

Result<void> check_counts(const GuardOptions& options) {
  if (options.traces.empty() || options.traces.size() > most_traces) {
    return wrong_option("--trace", "expected 1 to " + std::to_string(most_traces) + " files");
  }
  const std::size_t traces = options.traces.size();
  const std::pair<const char*, std::size_t> lists[] = {
      {"--peak-devices", options.peak_devices.size()},
      {"--replica-rate", options.replica_rates.size()},
      {"--replica-gpus", options.replica_gpus.size()}};
  for (const auto& [option, count] : lists) {
    if (count != 0 && count != traces) return wrong_option(option, "expected one for each --trace");
  }
  if (!options.peak_devices.empty() && !options.replica_rates.empty()) {
    return wrong_option("--peak-devices", "expected this or --replica-rate, not both");
  }
  if (traces > 1 && options.peak_devices.empty() && options.replica_rates.empty()) {
    return wrong_option("--peak-devices",
                        "is needed for each of several traces, or --replica-rate");
  }
  return {};
}

Result<lead_time::Capacity> capacity_of(const GuardOptions& options, std::size_t trace) {
  lead_time::Capacity capacity;
  // A rate as a length of time: millionths of a request a second.
  const auto rate = config::parse_duration(options.replica_rates[trace] + "s");
  if (!rate || rate->value <= 0) {
    return wrong_option("--replica-rate", "expected requests a second, such as 10 or 0.5");
  }
  capacity.micro_per_second = rate->value;
  if (!options.replica_gpus.empty()) capacity.devices = options.replica_gpus[trace];
  return capacity;
}

Result<simulate::SlotDemand> demand_of(const GuardOptions& options,
                                       const lead_time::GuardSpec& rule, std::size_t trace,
                                       whatif::Format format) {
  const auto traffic =
      whatif::read_traffic(options.traces[trace], format, seconds(rule.slot_seconds));
  if (!traffic) return tl::unexpected(traffic.error());
  if (!options.replica_rates.empty()) {
    const auto capacity = capacity_of(options, trace);
    if (!capacity) return tl::unexpected(capacity.error());
    return simulate::calibrated_demand(rule, traffic->offered, *capacity);
  }
  // Jobs tell their devices themselves.
  if (traffic->of == whatif::Traffic::Of::devices && options.peak_devices.empty()) {
    return simulate::calibrated_demand(rule, traffic->offered, {});
  }
  const std::int64_t peak =
      options.peak_devices.empty() ? rule.devices : options.peak_devices[trace];
  return simulate::scaled_demand(rule, traffic->offered, peak);
}

Result<simulate::BacktestSpec> backtest_of(const GuardOptions& options, std::int32_t slot_seconds) {
  const lead_time::Costs costs{options.idle_cost, options.shortage_cost};
  if (auto done = lead_time::check(costs); !done) return tl::unexpected(done.error());
  simulate::BacktestSpec spec;
  spec.rule = {{options.pool, slot_seconds, options.lead_seconds, options.x_per_mille},
               lead_time::paying_violations(costs)};
  if (options.pool < 1 || options.pool > lead_time::most_devices) {
    return wrong_option("--pool", "expected 1 to " + std::to_string(lead_time::most_devices));
  }
  if (auto done = lead_time::check(spec.rule); !done) return tl::unexpected(done.error());
  if (slot_seconds % 60 != 0) return wrong_option("--slot-seconds", "expected whole minutes");
  if (options.promotions.size() > lead_time::most_promotions) {
    return wrong_option("--promotion",
                        "expected at most " + std::to_string(lead_time::most_promotions));
  }
  for (const std::string& text : options.promotions) {
    const auto promotion = parse_promotion(text, slot_seconds);
    if (!promotion) return tl::unexpected(promotion.error());
    spec.calendar.push_back(*promotion);
  }
  if (!options.score.empty()) {
    const auto scored = parse_slots("--score", options.score);
    if (!scored) return tl::unexpected(scored.error());
    spec.scored = *scored;
  }
  return spec;
}

}  // namespace

Result<simulate::Slots> parse_slots(const std::string& option, const std::string& text) {
  const auto numbers = numbers_of(text);
  if (!numbers || numbers->size() != 2 || numbers->back() > highest_slot ||
      numbers->front() > numbers->back()) {
    return wrong_option(option, "expected slots FIRST:LAST, such as 1008:2015");
  }
  return simulate::Slots{numbers->front(), numbers->back()};
}

Result<lead_time::Promotion> parse_promotion(const std::string& text, std::int32_t slot_seconds) {
  const auto numbers = numbers_of(text);
  if (!numbers || numbers->size() != 3 || (*numbers)[1] > highest_slot ||
      (*numbers)[0] > (*numbers)[1]) {
    return wrong_option("--promotion",
                        "expected slots and devices FIRST:LAST:DEVICES, such as 90:120:64");
  }
  const Micros slot = seconds(slot_seconds);
  const lead_time::Promotion promotion{Time(0) + slot * (*numbers)[0],
                                       Time(0) + slot * ((*numbers)[1] + 1), (*numbers)[2]};
  if (auto done = lead_time::check(promotion); !done) {
    return wrong_option("--promotion", done.error().context + ": " + done.error().message);
  }
  return promotion;
}

Result<GuardStudy> guard_study(const GuardOptions& options) {
  if (auto done = check_counts(options); !done) return tl::unexpected(done.error());
  const auto formats = formats_of(options);
  if (!formats) return tl::unexpected(formats.error());
  auto spec = backtest_of(options, slot_of(options, *formats));
  if (!spec) return tl::unexpected(spec.error());
  std::vector<simulate::SlotDemand> services;
  for (std::size_t i = 0; i < options.traces.size(); ++i) {
    auto demand = demand_of(options, spec->rule.guard, i, (*formats)[i]);
    if (!demand) return tl::unexpected(demand.error());
    services.push_back(std::move(*demand));
  }
  return GuardStudy{std::move(*spec), simulate::summed_demand(services)};
}

}  // namespace neap::cli
