#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>

#include "cli/assess.h"
#include "cli/format.h"
#include "cli/guard.h"

namespace neap::cli {

namespace {

constexpr std::size_t most_bytes = 64 * 1024 * 1024;
constexpr std::size_t most_services = 10'000;
constexpr std::int64_t most_length_us = 366LL * 24 * 3600 * 1'000'000;
constexpr std::int64_t million = 1'000'000;

Result<Value> read_document(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::not_found, "cannot be read", path);
  std::string text;
  std::array<char, 64 * 1024> block{};
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_bytes) {
      return fail(ErrorCode::invalid_argument, "is larger than 64 MiB", path);
    }
  }
  auto value = Value::parse(text);
  if (!value) return fail(ErrorCode::invalid_argument, "is not valid JSON", path);
  return value;
}

Result<std::int64_t> number_of(const Value& row, const char* member, std::int64_t most) {
  const Value& value = row.at(member);
  if (value.kind != Value::Kind::number || value.number < 0 || value.number > most) {
    return fail(ErrorCode::invalid_argument,
                "expected a whole number from 0 to " + std::to_string(most), member);
  }
  return value.number;
}

// A decimal amount that may pass 64 bits, in thousandths of its unit.
std::optional<std::int64_t> amount_of(const Value& row, const char* member) {
  std::string_view text = row.text_at(member);
  if (text.empty()) return std::nullopt;
  if (text.size() <= 3) return 0;
  text.remove_suffix(3);
  std::int64_t amount = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  if (error != std::errc() || end != text.data() + text.size() || amount < 0) return std::nullopt;
  return amount;
}

Result<std::vector<assess::ServiceLatency>> latencies_of(const Value& document) {
  std::vector<assess::ServiceLatency> services;
  const auto& rows = document.list_at("services");
  if (rows.size() > most_services) {
    return fail(ErrorCode::invalid_argument, "expected at most 10000 services", "services");
  }
  for (const Value& row : rows) {
    if (row.at("p99_us").is_null()) continue;  // as of a simulation, which knows no requests
    assess::ServiceLatency service;
    service.name = row.text_at("name");
    if (service.name.empty()) {
      return fail(ErrorCode::invalid_argument, "expected a name for each", "services");
    }
    const auto p95 = number_of(row, "p95_us", most_length_us);
    if (!p95) return tl::unexpected(p95.error());
    const auto p99 = number_of(row, "p99_us", most_length_us);
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
    if (*good > INT64_MAX / 2 || *late > INT64_MAX / 2 || *good + *late == 0) return std::nullopt;
    return static_cast<std::int64_t>(static_cast<long double>(*late) /
                                     static_cast<long double>(*good + *late) *
                                     static_cast<long double>(million));
  }
  // Of a simulation: the load that no ready replica could take.
  std::optional<std::int64_t> worst;
  for (const Value& service : document.list_at("services")) {
    const Value& served = service.at("served_ppm");
    if (served.kind != Value::Kind::number || served.number < 0 || served.number > million) {
      continue;
    }
    worst = std::max(worst.value_or(0), million - served.number);
  }
  return worst;
}

std::string number_text(const assess::Line& line, std::int64_t value) {
  const bool is_part =
      line.name == "effective utilisation" || line.name == "requests beyond their objective";
  return is_part ? percent_text(value) : length_text(value);
}

std::string json_of(const assess::Comparison& comparison) {
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

}  // namespace

Result<assess::ThreeNumbers> three_numbers(const Value& document) {
  const auto& runs = document.list_at("runs");
  const Value& source = runs.size() == 1 ? runs.front() : document;
  if (runs.size() > 1) {
    return fail(ErrorCode::invalid_argument, "expected one run, got " + std::to_string(runs.size()),
                "runs");
  }
  assess::ThreeNumbers out;
  const bool simulated = !source.at("use").is_null();
  const auto effective = simulated ? number_of(source.at("use"), "effective_ppm", million)
                                   : number_of(source, "effective_utilisation_ppm", million);
  if (!effective) return tl::unexpected(effective.error());
  const auto wait = simulated ? number_of(source.at("jobs"), "mean_waiting_us", INT64_MAX)
                              : number_of(source, "mean_wait_us", INT64_MAX);
  if (!wait) return tl::unexpected(wait.error());
  out.effective_ppm = *effective;
  out.mean_wait_us = *wait;
  auto services = latencies_of(source);
  if (!services) return tl::unexpected(services.error());
  out.services = std::move(*services);
  out.late_ppm = late_of(source);
  return out;
}

int compare(const Context& context, const CompareOptions& options) {
  const auto before = read_numbers(options.before);
  if (!before) return context.failed(before.error());
  const auto after = read_numbers(options.after);
  if (!after) return context.failed(after.error());
  const auto found = assess::compare({}, *before, *after);
  if (!found) return context.failed(found.error());
  Terminal& terminal = context.terminal();
  const bool good = found->outcome == assess::Outcome::all_better;
  if (options.json) {
    terminal.line(json_of(*found));
    return good ? 0 : 1;
  }
  Table table({"NUMBER", "BEFORE", "AFTER", ""});
  for (const assess::Line& line : found->lines) {
    table.add({{line.name},
               {number_text(line, line.before)},
               {number_text(line, line.after)},
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
