#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "cli/assess.h"
#include "cli/format.h"

namespace neap::cli {

namespace {

constexpr std::size_t most_bytes = 64 * 1024 * 1024;
constexpr std::size_t most_services = 10'000;
constexpr std::int64_t most_length_us = 366LL * 24 * 3600 * 1'000'000;
constexpr std::int64_t million = 1'000'000;
constexpr std::int64_t late_whole = million * million;  // late_parts of all
__extension__ using Wide = __int128;

Result<Value> read_document(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return fail(ErrorCode::not_found,
                std::string("cannot be read: ") + std::strerror(errno) + "; expected a JSON file",
                path);
  }
  std::string text;
  std::array<char, 64 * 1024> block{};
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_bytes) {
      return fail(ErrorCode::invalid_argument, "is larger than 64 MiB", path);
    }
  }
  auto value = Value::parse(text);
  if (!value) {
    const auto place = json_fault(text);
    return fail(ErrorCode::invalid_argument,
                "is not valid JSON; expected that of neap usage --json",
                path + ":" + std::to_string(place.line) + ":" + std::to_string(place.column));
  }
  return value;
}

// `above` is the place of the row, with its dot: "services[1].".
Result<std::int64_t> number_of(const Value& row, const std::string& above, const char* member,
                               std::int64_t most) {
  const Value& value = row.at(member);
  if (value.kind != Value::Kind::number || value.fraction || value.number < 0 ||
      value.number > most) {
    return fail(ErrorCode::invalid_argument,
                "expected a whole number from 0 to " + std::to_string(most), above + member);
  }
  return value.number;
}

// A decimal amount, which may pass 64 bits.
std::optional<Wide> amount_of(const Value& row, const char* member) {
  const std::string& text = row.text_at(member);
  if (text.empty() || text.size() > 36) return std::nullopt;
  Wide amount = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    amount = amount * 10 + (digit - '0');
  }
  return amount;
}

Result<std::vector<assess::ServiceLatency>> latencies_of(const Value& document,
                                                         const std::string& above) {
  std::vector<assess::ServiceLatency> services;
  const auto& rows = document.list_at("services");
  if (rows.size() > most_services) {
    return fail(ErrorCode::invalid_argument, "expected at most 10000 services", above + "services");
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Value& row = rows[i];
    if (row.at("p99_us").is_null()) continue;  // as of a simulation, which knows no requests
    const std::string place = above + "services[" + std::to_string(i) + "].";
    assess::ServiceLatency service;
    service.name = row.text_at("name");
    if (service.name.empty()) {
      return fail(ErrorCode::invalid_argument, "expected a name for each", place + "name");
    }
    const auto p95 = number_of(row, place, "p95_us", most_length_us);
    if (!p95) return tl::unexpected(p95.error());
    const auto p99 = number_of(row, place, "p99_us", most_length_us);
    if (!p99) return tl::unexpected(p99.error());
    service.p95_us = *p95;
    service.p99_us = *p99;
    services.push_back(std::move(service));
  }
  return services;
}

// What was too late of the device time that answered requests.
std::optional<std::int64_t> late_of(const Value& document) {
  const auto good = amount_of(document.at("categories"), "useful_inference");
  const auto late = amount_of(document.at("categories"), "slo_missed");
  if (good && late) {
    Wide some = *late, all = *good + *late;
    if (all == 0) return std::nullopt;
    for (; all > Wide{INT64_MAX} * million; all /= 2) some /= 2;  // for the product below
    return static_cast<std::int64_t>(some * late_whole / all);
  }
  // Of a simulation: the load that no ready replica could take.
  std::optional<std::int64_t> worst;
  for (const Value& service : document.list_at("services")) {
    const Value& served = service.at("served_ppm");
    if (served.kind != Value::Kind::number || served.number < 0 || served.number > million) {
      continue;
    }
    worst = std::max(worst.value_or(0), (million - served.number) * million);
  }
  return worst;
}

// All digits of it that are not 0, so that what was judged is what is seen.
std::string decimal_text(std::int64_t value, std::int64_t unit) {
  std::string text = std::to_string(value / unit);
  std::string rest = std::to_string(unit + value % unit).substr(1);
  rest.erase(rest.find_last_not_of('0') + 1);
  return rest.empty() ? text : text + "." + rest;
}

std::string exact_text(const assess::Line& line, std::int64_t value) {
  if (line.name == "effective utilisation") return decimal_text(value, million / 100) + " %";
  if (line.name == "requests beyond their objective") {
    return decimal_text(value, late_whole / 100) + " %";
  }
  if (value < million) return decimal_text(value, 1'000) + "ms";
  const std::string text = decimal_text(value, million) + "s";
  return value < 60 * million ? text : text + " (" + length_text(value) + ")";
}

// "+2.0001 %", cut after the fourth digit: against what is taken for no change.
std::string change_text(const assess::Line& line) {
  if (line.before == line.after) return "0 %";
  if (line.before == 0) return "from nothing";
  const Wide size =
      Wide{line.after > line.before ? line.after - line.before : line.before - line.after};
  const Wide parts = size * million / line.before;
  if (parts > INT64_MAX) return line.after > line.before ? "more" : "less";
  return (line.after > line.before ? "+" : "-") +
         decimal_text(static_cast<std::int64_t>(parts), million / 100) + " %";
}

std::string comparison_json(const assess::Comparison& comparison) {
  std::string out = "{\"numbers\":[";
  for (const assess::Line& line : comparison.lines) {
    out += (out.ends_with('[') ? "" : ",") + std::string("{\"name\":") + json_text(line.name) +
           ",\"before\":" + std::to_string(line.before) +
           ",\"after\":" + std::to_string(line.after) + ",\"change\":\"" +
           std::string(name_of(line.change)) + "\"}";
  }
  return out + "],\"outcome\":\"" + std::string(name_of(comparison.outcome)) +
         "\",\"verdict\":" + json_text(comparison.verdict) + "}";
}

Result<assess::ThreeNumbers> read_numbers(const std::string& path) {
  const auto document = read_document(path);
  if (!document) return tl::unexpected(document.error());
  auto numbers = three_numbers(*document);
  if (numbers) return numbers;
  const Error& error = numbers.error();
  return fail(error.code, error.message, path + ": " + error.context);
}

// The comparison is about both files; what is missing is said of the one or the other.
Error of_both(Error error, const CompareOptions& options) {
  error.context = options.before + ", " + options.after + ": " + error.context;
  return error;
}

}  // namespace

Result<assess::ThreeNumbers> three_numbers(const Value& document) {
  const auto& runs = document.list_at("runs");
  const Value& source = runs.size() == 1 ? runs.front() : document;
  if (runs.size() > 1) {
    return fail(ErrorCode::invalid_argument, "expected one run, got " + std::to_string(runs.size()),
                "runs");
  }
  const std::string above = runs.size() == 1 ? "runs[0]." : "";
  assess::ThreeNumbers out;
  const bool simulated = !source.at("use").is_null();
  const auto effective = simulated
                             ? number_of(source.at("use"), above + "use.", "effective_ppm", million)
                             : number_of(source, above, "effective_utilisation_ppm", million);
  if (!effective) return tl::unexpected(effective.error());
  const auto wait =
      simulated ? number_of(source.at("jobs"), above + "jobs.", "mean_waiting_us", INT64_MAX)
                : number_of(source, above, "mean_wait_us", INT64_MAX);
  if (!wait) return tl::unexpected(wait.error());
  out.effective_ppm = *effective;
  out.mean_wait_us = *wait;
  auto services = latencies_of(source, above);
  if (!services) return tl::unexpected(services.error());
  out.services = std::move(*services);
  out.late_parts = late_of(source);
  return out;
}

int compare(const Context& context, const CompareOptions& options) {
  const auto before = read_numbers(options.before);
  if (!before) return context.failed(before.error());
  const auto after = read_numbers(options.after);
  if (!after) return context.failed(after.error());
  const auto found = assess::compare({}, *before, *after);
  if (!found) return context.failed(of_both(found.error(), options));
  Terminal& terminal = context.terminal();
  const bool good = found->outcome == assess::Outcome::all_better;
  if (options.json) {
    terminal.line(comparison_json(*found));
    return good ? 0 : 1;
  }
  Table table({"NUMBER", "BEFORE", "AFTER", "CHANGE", ""});
  for (const assess::Line& line : found->lines) {
    table.add({{line.name},
               {exact_text(line, line.before)},
               {exact_text(line, line.after)},
               {change_text(line)},
               {std::string(name_of(line.change)),
                line.change == assess::Change::better  ? Colour::good
                : line.change == assess::Change::worse ? Colour::bad
                                                       : Colour::plain}});
  }
  table.print(terminal);
  terminal.line(terminal.painted(found->verdict, good ? Colour::good : Colour::bad));
  return good ? 0 : 1;
}

}  // namespace neap::cli
