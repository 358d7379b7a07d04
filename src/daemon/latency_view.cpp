#include "daemon/latency_view.h"

#include <fmt/format.h>

#include <utility>

namespace neap::daemon {
namespace {

std::int64_t signed_of(std::uint64_t count) { return static_cast<std::int64_t>(count); }

api::TimesRow times_of(const measure::Histogram& times) {
  api::TimesRow row;
  row.count = signed_of(times.count());
  if (times.empty()) return row;
  const measure::Percentiles p = times.percentiles();
  row.p50_us = p.p50.value;
  row.p95_us = p.p95.value;
  row.p99_us = p.p99.value;
  row.max_us = times.max().value;
  return row;
}

api::LatencyWindowRow window_of(Micros length, const measure::WindowTotals& totals) {
  return {.length_us = length.value,
          .requests = signed_of(totals.requests),
          .good = signed_of(totals.good),
          .failed = signed_of(totals.failed),
          .shed = signed_of(totals.shed),
          .bad_requests = signed_of(totals.bad_requests),
          .left = signed_of(totals.left),
          .bytes_in = signed_of(totals.bytes_in),
          .bytes_out = signed_of(totals.bytes_out),
          .queued = times_of(totals.queued),
          .first_byte = times_of(totals.first_byte),
          .total = times_of(totals.total)};
}

api::BurnRow burn_row(const char* name, const measure::BurnRule& rule, const measure::Burn& burn) {
  return {.name = name,
          .long_us = rule.long_window.value,
          .short_us = rule.short_window.value,
          .limit_milli = rule.limit_milli,
          .long_milli = burn.long_milli,
          .short_milli = burn.short_milli,
          .alarm = burn.alarm};
}

std::string one_burn(const char* windows, const measure::Burn& burn) {
  return fmt::format("{} {:.1f} and {:.1f} times", windows,
                     static_cast<double>(burn.long_milli) / 1000,
                     static_cast<double>(burn.short_milli) / 1000);
}

}  // namespace

void view_latency(const gateway::ServiceLatency& latency, api::LatencyReport& into) {
  into.requests = signed_of(latency.requests);
  if (latency.objective.first_byte > Micros(0)) {
    into.slo_first_byte_us = latency.objective.first_byte.value;
  }
  into.objective_ppm = latency.objective.part.value;
  into.burns = {burn_row("fast", measure::fast_burn, latency.burn.fast),
                burn_row("slow", measure::slow_burn, latency.burn.slow)};
  for (const measure::SeriesReport& series : latency.series) {
    api::LatencySeriesRow row{measure::name_of(series.dimension), series.name, {}};
    for (std::size_t i = 0; i < series.windows.size(); ++i) {
      row.windows.push_back(window_of(measure::report_windows[i], series.windows[i]));
    }
    into.series.push_back(std::move(row));
  }
}

std::string burn_text(const measure::BurnReport& burn) {
  std::string text;
  if (burn.fast.alarm) text = one_burn("over 1 h and 5 min", burn.fast);
  if (burn.slow.alarm) {
    text += (text.empty() ? "" : ", ") + one_burn("over 6 h and 30 min", burn.slow);
  }
  return text;
}

}  // namespace neap::daemon
