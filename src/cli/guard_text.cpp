// The figures of a back-test as JSON and in words.
#include <algorithm>
#include <string>

#include "cli/guard.h"
#include "cli/value.h"
#include "simulate/assess/lending.h"

namespace neap::cli {

namespace {

std::int64_t slots_of(const simulate::Backtest& result) {
  return result.scored.last - result.scored.first + 1;
}

std::string truth(std::string_view name, bool value) {
  return json_pair(name, value ? "true" : "false");
}

std::string json_buffer(const GuardStudy& study, const simulate::Backtest& result) {
  return "{" + json_pair("y_per_mille", study.spec.rule.paying_per_mille) + "," +
         json_pair("mean_devices", ratio_text(result.sum_buffer * 1'000'000 / slots_of(result))) +
         "," + json_pair("violated_hours_with_buffer", result.violated_with_buffer) + "}";
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
  std::string out = json_pair("x_per_mille", x) + "," +
                    json_pair("violated_hours", result.violated_hours) + "," +
                    json_pair("scored_hours", result.scored_hours) + "," +
                    json_pair("violation_rate", ratio_text(result.violated_ppm())) + "," +
                    json_pair("idle_ratio", ratio_text(result.idle_ppm())) + "," +
                    json_pair("sum_c", result.sum_c) + "," + json_pair("sum_d", result.sum_d) + ",";
  out += json_pair("first_lend_slot",
                   result.first_lend_slot ? std::to_string(*result.first_lend_slot) : "null");
  out += "," + json_pair("changes_per_day", ratio_text(result.changes_micro_per_day(rule))) + "," +
         json_pair("samples", result.scored_slots) + "," +
         json_pair("unknown_slots", result.unknown_slots) + "," +
         json_pair("violated_slots", result.violated_slots) + "," +
         json_pair("lends_nothing_slots", result.lends_nothing) + "," +
         json_pair("scored", "[" + std::to_string(result.scored.first) + "," +
                                 std::to_string(result.scored.last) + "]");
  out += "," + json_pair("buffer", json_buffer(study, result)) + "," +
         json_pair("rate_interval_95",
                   "[" + ratio_text(interval.low_ppm) + "," + ratio_text(interval.high_ppm) + "]") +
         "," + truth("certified", interval.high_ppm <= std::int64_t{x} * 1'000) + "," +
         truth("drift", simulate::has_drifted(result, x)) + "," +
         json_pair("worst_week_violated_hours", result.worst_week) + "," +
         json_pair("note", json_text(simulate::confidence_note(result, x)));
  const assess::Lending lending = lending_of(study, result);
  out +=
      "," + json_pair("lending", "{" + json_pair("lent_ppm", lending.lent_ppm) + "," +
                                     json_pair("usable_ppm", lending.usable_ppm) + "," +
                                     json_pair("mean_over_peak_ppm", lending.mean_over_peak_ppm) +
                                     "," + truth("gain", lending.gain) + "," +
                                     json_pair("verdict", json_text(lending.verdict)) + "}");
  return out + "," + json_pair("pool", rule.devices) + "," +
         json_pair("lead_seconds", rule.lead_seconds) + "," +
         json_pair("slot_seconds", rule.slot_seconds) + "," +
         json_pair("slots", static_cast<std::int64_t>(study.demand.size()));
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
