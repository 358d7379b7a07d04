// The figures of a back-test as JSON and in words.
#include <algorithm>
#include <string>

#include "cli/guard.h"
#include "cli/value.h"
#include "simulate/assess/lending.h"

namespace neap::cli {

namespace {

std::string member(std::string_view name, std::string_view value) {
  return json_text(name) + ":" + std::string(value);
}

std::string member(std::string_view name, std::int64_t value) {
  return member(name, std::to_string(value));
}

std::int64_t slots_of(const simulate::Backtest& result) {
  return result.scored.last - result.scored.first + 1;
}

std::string truth(std::string_view name, bool value) {
  return member(name, value ? "true" : "false");
}

std::string json_buffer(const GuardStudy& study, const simulate::Backtest& result) {
  return "{" + member("y_per_mille", study.spec.rule.paying_per_mille) + "," +
         member("mean_devices", ratio_text(result.sum_buffer * 1'000'000 / slots_of(result))) +
         "," + member("violated_hours_with_buffer", result.violated_with_buffer) + "}";
}

}  // namespace

assess::Lending lending_of(const GuardStudy& study, const simulate::Backtest& result) {
  return assess::lending_of({}, study.spec, study.demand, result);
}

std::string ratio_text(std::int64_t ppm) {
  std::string digits = std::to_string(ppm % 1'000'000);
  digits.insert(0, 6 - digits.size(), '0');
  return std::to_string(ppm / 1'000'000) + "." + digits;
}

std::string short_text(std::int64_t ppm, int digits) {
  std::int64_t half = 500'000;
  for (int i = 0; i < digits; ++i) half /= 10;
  const std::string text = ratio_text(ppm + half);
  return text.substr(0, text.size() - static_cast<std::size_t>(6 - digits));
}

std::string percent_text(std::int64_t ppm) { return short_text(ppm * 100, 1) + " %"; }

std::string json_of(const GuardStudy& study, const simulate::Backtest& result) {
  const lead_time::GuardSpec& rule = study.spec.rule.guard;
  const std::int32_t x = rule.violations_per_mille;
  const simulate::Interval interval =
      simulate::rate_interval(result.violated_hours, result.scored_hours);
  std::string out = member("x_per_mille", x) + "," +
                    member("violated_hours", result.violated_hours) + "," +
                    member("scored_hours", result.scored_hours) + "," +
                    member("violation_rate", ratio_text(result.violated_ppm())) + "," +
                    member("idle_ratio", ratio_text(result.idle_ppm())) + "," +
                    member("sum_c", result.sum_c) + "," + member("sum_d", result.sum_d) + ",";
  out += member("first_lend_slot",
                result.first_lend_slot ? std::to_string(*result.first_lend_slot) : "null");
  out += "," + member("changes_per_day", ratio_text(result.changes_micro_per_day(rule))) + "," +
         member("samples", result.scored_slots) + "," +
         member("unknown_slots", result.unknown_slots) + "," +
         member("violated_slots", result.violated_slots) + "," +
         member("lends_nothing_slots", result.lends_nothing) + "," +
         member("scored", "[" + std::to_string(result.scored.first) + "," +
                              std::to_string(result.scored.last) + "]");
  out += "," + member("buffer", json_buffer(study, result)) + "," +
         member("rate_interval_95",
                "[" + ratio_text(interval.low_ppm) + "," + ratio_text(interval.high_ppm) + "]") +
         "," + truth("certified", interval.high_ppm <= std::int64_t{x} * 1'000) + "," +
         truth("drift", simulate::has_drifted(result, x)) + "," +
         member("worst_week_violated_hours", result.worst_week) + "," +
         member("note", json_text(simulate::confidence_note(result, x)));
  const assess::Lending lending = lending_of(study, result);
  out += "," + member("lending", "{" + member("lent_ppm", lending.lent_ppm) + "," +
                                     member("usable_ppm", lending.usable_ppm) + "," +
                                     member("mean_over_peak_ppm", lending.mean_over_peak_ppm) +
                                     "," + truth("gain", lending.gain) + "," +
                                     member("verdict", json_text(lending.verdict)) + "}");
  return out + "," + member("pool", rule.devices) + "," +
         member("lead_seconds", rule.lead_seconds) + "," +
         member("slot_seconds", rule.slot_seconds) + "," +
         member("slots", static_cast<std::int64_t>(study.demand.size()));
}

std::vector<std::string> guard_notes(const GuardStudy& study, const simulate::Backtest& result) {
  const std::int32_t x = study.spec.rule.guard.violations_per_mille;
  std::vector<std::string> notes = {
      "Back-test, each slot from what was before it: " + std::to_string(result.scored_slots) +
          " slots in " + std::to_string(result.scored_hours) + " hours.",
      simulate::confidence_note(result, x) + ".",
      "Lending: " + lending_of(study, result).verdict + "."};
  if (simulate::has_drifted(result, x)) {
    notes.push_back("Drift: " + std::to_string(result.worst_week) +
                    " violated hours in the worst 168; the traffic changed faster than the guard "
                    "learned.");
  }
  return notes;
}

}  // namespace neap::cli
