// neap guard: the lead-time guard and its buffer, from recorded traffic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/context.h"
#include "core/model/result.h"
#include "simulate/assess/lending.h"
#include "simulate/guard/backtest.h"

namespace neap::cli {

// As given; empty where nothing was.
struct GuardOptions {
  std::vector<std::string> traces;  // a service each
  std::string format = "auto";
  std::int64_t pool = 0;
  std::int32_t lead_seconds = 600;
  std::int32_t slot_seconds = 0;  // 0: five minutes, or the trace's own where that is longer
  std::int32_t x_per_mille = 10;
  std::int64_t idle_cost = 1;
  std::int64_t shortage_cost = 199;
  std::vector<std::int64_t> peak_devices;  // of each trace, else the pool
  std::vector<std::string> replica_rates;  // requests a second, of each trace
  std::vector<std::int64_t> replica_gpus;  // of each trace, else 1
  std::string score;                       // FIRST:LAST
  std::vector<std::string> promotions;     // FIRST:LAST:DEVICES
  std::string picture;                     // a file
  bool json = false;
};

// What there is to test, from the files.
struct GuardStudy {
  simulate::BacktestSpec spec;
  simulate::SlotDemand demand;
};
[[nodiscard]] Result<GuardStudy> guard_study(const GuardOptions& options);
// "FIRST:LAST", "FIRST:LAST:DEVICES": whole numbers, with as many colons.
[[nodiscard]] Result<simulate::Slots> parse_slots(const std::string& option,
                                                  const std::string& text);
[[nodiscard]] Result<lead_time::Promotion> parse_promotion(const std::string& text,
                                                           std::int32_t slot_seconds);

int guard_backtest(const Context& context, const GuardOptions& options);
int guard_fit(const Context& context, const GuardOptions& options);
int guard_show(const Context& context, const GuardOptions& options);

// 1234567 ppm as "1.234567", as "1.235" with three digits, and as "123.5 %".
[[nodiscard]] std::string ratio_text(std::int64_t ppm);
[[nodiscard]] std::string short_text(std::int64_t ppm, int digits);
[[nodiscard]] std::string percent_text(std::int64_t ppm);
// The figures of a back-test, without the braces.
[[nodiscard]] std::string json_of(const GuardStudy& study, const simulate::Backtest& result);
// Whether what it lends is a gain.
[[nodiscard]] assess::Lending lending_of(const GuardStudy& study, const simulate::Backtest& result);
// What has to stand beside every rate that is shown.
[[nodiscard]] std::vector<std::string> guard_notes(const GuardStudy& study,
                                                   const simulate::Backtest& result);

}  // namespace neap::cli
