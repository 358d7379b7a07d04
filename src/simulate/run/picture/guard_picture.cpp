#include "simulate/run/picture/guard_picture.h"

#include <algorithm>

#include "simulate/run/picture/chart.h"
#include "simulate/run/picture/page.h"

namespace neap::whatif {

namespace {

constexpr std::int64_t most_columns = 4'000;
constexpr const char* demand_colour = "#64748b";
constexpr const char* guard_colour = "#2563eb";
constexpr const char* buffer_colour = "#f59e0b";
constexpr const char* violation_colour = "#dc2626";

std::int64_t slots_each(const simulate::Backtest& result, std::int64_t most) {
  const std::int64_t slots = result.scored.last - result.scored.first + 1;
  return (slots + most - 1) / most;
}

// One for each run of columns that are known.
std::vector<Line> demand_lines(const std::vector<GuardColumn>& columns, std::int64_t span_us) {
  std::vector<Line> lines;
  bool in_run = false;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].known && !in_run) {
      lines.push_back({"demand", demand_colour, {}, span_us, static_cast<std::int64_t>(c)});
    }
    in_run = columns[c].known;
    if (in_run) lines.back().values.push_back(columns[c].demand);
  }
  return lines;
}

}  // namespace

std::vector<GuardColumn> guard_columns(const simulate::Backtest& result,
                                       const simulate::SlotDemand& demand, std::int64_t most) {
  const std::int64_t each = slots_each(result, most);
  std::vector<GuardColumn> columns;
  for (std::int64_t s = result.scored.first; s <= result.scored.last; ++s) {
    const auto at = static_cast<std::size_t>(s);
    const lead_time::Claim& claim = result.claims[at];
    if ((s - result.scored.first) % each == 0) {
      columns.push_back({0, claim.guard, claim.guard + claim.buffer});
    }
    GuardColumn& column = columns.back();
    column.guard = std::min(column.guard, claim.guard);
    column.with_buffer = std::min(column.with_buffer, claim.guard + claim.buffer);
    if (!demand[at]) continue;
    column.known = true;
    column.demand = std::max(column.demand, *demand[at]);
    column.violated = column.violated || *demand[at] > claim.guard;
  }
  return columns;
}

std::string guard_picture(const lead_time::GuardSpec& spec, const simulate::Backtest& result,
                          const simulate::SlotDemand& demand,
                          const std::vector<std::string>& notes) {
  const auto columns = guard_columns(result, demand, most_columns);
  const std::int64_t span_us = slots_each(result, most_columns) * seconds(spec.slot_seconds).value;
  const TimeAxis time{seconds(spec.slot_seconds).value * result.scored.first,
                      seconds(spec.slot_seconds).value * (result.scored.last + 1)};
  Line guard{"guard", guard_colour, {}, span_us};
  Line buffer{"guard and buffer", buffer_colour, {}, span_us};
  Marks violations{violation_colour, {}};
  std::int64_t highest = 1;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const GuardColumn& column = columns[c];
    guard.values.push_back(column.guard);
    buffer.values.push_back(column.with_buffer);
    highest = std::max({highest, column.demand, column.with_buffer});
    if (column.violated) {
      violations.at_us.push_back(time.begin_us + span_us * static_cast<std::int64_t>(c));
    }
  }
  std::vector<Line> lines = demand_lines(columns, span_us);
  lines.insert(lines.begin(), {buffer, guard});
  std::string out = page_begin("neap guard");
  out += "<h1>Lead-time guard</h1>\n";
  for (const std::string& note : notes) out += "<p>" + escaped(note) + "</p>\n";
  const std::vector<KeyEntry> key = {{"demand (gaps: no metrics)", demand_colour},
                                     {"guard", guard_colour},
                                     {"guard and buffer", buffer_colour},
                                     {"demand above the guard", violation_colour}};
  const ValueAxis devices{highest + highest / 20 + 1, 1, "devices"};
  return out + section("Devices", key_of(key) + marked_chart(lines, violations, time, devices)) +
         std::string(page_end);
}

}  // namespace neap::whatif
