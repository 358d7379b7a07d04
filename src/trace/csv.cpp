#include "trace/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "core/model/check.h"

namespace neap::trace {

namespace {

// What stood there, short enough for a line of a terminal.
std::string shown(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::string out = "\"";
  for (const char c : text.substr(0, longest)) {
    out.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c);
  }
  return out + (text.size() > longest ? "…\"" : "\"");
}

std::string from_first_to_last(Range range) {
  return " from " + std::to_string(range.first) + " to " + std::to_string(range.last);
}

// Days since 1970-01-01 of a date of the Gregorian calendar (Hinnant, "chrono-compatible
// low-level date algorithms").
std::int64_t days_of(std::int64_t year, std::int64_t month, std::int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t in_era = year - era * 400;
  const std::int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

std::optional<std::int64_t> digits_at(std::string_view text, std::size_t from, std::size_t count) {
  std::int64_t value = 0;
  for (std::size_t i = from; i < from + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return {};
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

}  // namespace

std::optional<std::int64_t> fixed_point(std::string_view text, int digits) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t point = text.find('.');
  const std::string_view before = text.substr(0, point);
  std::string_view after = point == std::string_view::npos ? "" : text.substr(point + 1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(before.data(), before.data() + before.size(), value);
  if (error != std::errc() || end != before.data() + before.size() || value < 0) return {};
  if (point != std::string_view::npos && after.empty()) return {};
  for (const char c : after) {
    if (c < '0' || c > '9') return {};
  }
  for (int i = 0; i < digits; ++i) {
    const int digit = after.empty() ? 0 : after.front() - '0';
    if (!after.empty()) after.remove_prefix(1);
    if (value > (INT64_MAX - digit) / 10) return {};
    value = value * 10 + digit;
  }
  return negative ? -value : value;
}

std::optional<Time> civil_time(std::string_view text) {
  constexpr std::string_view form = "0000-00-00 00:00:00";
  if (text.size() < form.size()) return {};
  for (const std::size_t i : {4U, 7U, 13U, 16U}) {
    if (text[i] != form[i]) return {};
  }
  if (text[10] != ' ' && text[10] != 'T') return {};
  const auto year = digits_at(text, 0, 4), month = digits_at(text, 5, 2),
             day = digits_at(text, 8, 2);
  const auto hour = digits_at(text, 11, 2), minute = digits_at(text, 14, 2);
  const auto second = fixed_point(text.substr(17), 6);
  if (!year || !month || !day || !hour || !minute || !second || text[17] == '-') return {};
  if (*month < 1 || *month > 12 || *day < 1 || *day > 31 || *hour > 23 || *minute > 59 ||
      *second >= 61'000'000) {
    return {};
  }
  const std::int64_t minutes_in_all = (days_of(*year, *month, *day) * 24 + *hour) * 60 + *minute;
  return Time(minutes_in_all * 60'000'000 + *second);
}

CsvReader::CsvReader(Bytes bytes, std::vector<Column> columns)
    : lines_(std::move(bytes)), columns_(std::move(columns)), places_(columns_.size()) {}

CsvReader::CsvReader(Bytes bytes, std::vector<Column> columns, std::size_t fields)
    : CsvReader(std::move(bytes), std::move(columns)) {
  width_ = fields;
  for (std::size_t i = 0; i < fields; ++i) places_[i] = i;
}

CsvReader CsvReader::without_header(Bytes bytes, std::vector<Column> columns) {
  const std::size_t fields = columns.size();
  return {std::move(bytes), std::move(columns), fields};
}

Result<void> CsvReader::read_header() {
  const auto line = lines_.next();
  if (!line) return tl::unexpected(line.error());
  if (!*line) return fail(ErrorCode::invalid_argument, "expected a header line", lines_.name());
  if (auto done = split(**line); !done) return done;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const auto at = std::find(fields_.begin(), fields_.end(), columns_[c].name);
    if (at != fields_.end()) {
      places_[c] = static_cast<std::size_t>(at - fields_.begin());
    } else if (columns_[c].need == Column::Need::required) {
      return fail(ErrorCode::invalid_argument, "expected this column in the header",
                  lines_.place(columns_[c].name));
    }
  }
  width_ = fields_.size();
  return {};
}

Result<bool> CsvReader::next() {
  NEAP_CHECK(!problem_);
  if (width_ == 0) {
    if (auto header = read_header(); !header) return tl::unexpected(header.error());
  }
  while (true) {
    const auto line = lines_.next();
    if (!line) return tl::unexpected(line.error());
    if (!*line) return false;
    if ((*line)->empty()) continue;
    if (auto done = split(**line); !done) return tl::unexpected(done.error());
    if (fields_.size() == width_) return true;
    return fail(
        ErrorCode::invalid_argument,
        "expected " + std::to_string(width_) + " fields, not " + std::to_string(fields_.size()),
        lines_.place());
  }
}

Result<void> CsvReader::split(std::string_view line) {
  fields_.clear();
  unquoted_.clear();
  if (line.find('"') != std::string_view::npos) return split_quoted(line);
  while (true) {
    const std::size_t comma = line.find(',');
    fields_.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return {};
    line.remove_prefix(comma + 1);
  }
}

// RFC 4180, but for line breaks within quotes, which no known trace has.
Result<void> CsvReader::split_quoted(std::string_view line) {
  std::string field;
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      field.push_back('"');
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields_.push_back(unquoted_.emplace_back(std::move(field)));
      field.clear();
    } else {
      field.push_back(c);
    }
  }
  if (quoted) return fail(ErrorCode::invalid_argument, "a quote is not closed", lines_.place());
  fields_.push_back(unquoted_.emplace_back(std::move(field)));
  return {};
}

Result<void> CsvReader::finish() {
  if (!problem_) return {};
  Error first = std::move(*problem_);
  problem_.reset();
  return tl::unexpected(std::move(first));
}

void CsvReader::reject(std::size_t column, std::string_view expected) {
  if (problem_) return;
  problem_ = Error{ErrorCode::invalid_argument,
                   "expected " + std::string(expected) + ", not " + shown(text(column)),
                   lines_.place(columns_[column].name)};
}

std::string_view CsvReader::text(std::size_t column) const {
  return places_[column] ? fields_[*places_[column]] : std::string_view();
}

std::int64_t CsvReader::whole(std::size_t column, Range range) {
  std::string_view digits = text(column);
  const std::size_t point = digits.find('.');
  if (point != std::string_view::npos && point + 1 < digits.size() &&
      digits.find_first_not_of('0', point + 1) == std::string_view::npos) {
    digits = digits.substr(0, point);
  }
  const auto value = digits.find('.') == std::string_view::npos ? fixed_point(digits, 0)
                                                                : std::optional<std::int64_t>();
  if (value && *value >= range.first && *value <= range.last) return *value;
  reject(column, "a whole number" + from_first_to_last(range));
  return range.first;
}

std::int64_t CsvReader::decimal(std::size_t column, int digits, Range range) {
  const auto value = fixed_point(text(column), digits);
  std::int64_t one = 1;
  for (int i = 0; i < digits; ++i) one *= 10;
  if (value && *value >= range.first * one && *value <= range.last * one) return *value;
  reject(column, "a number" + from_first_to_last(range));
  return range.first;
}

double CsvReader::real(std::size_t column, double first, double last) {
  const std::string_view digits = text(column);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size() && std::isfinite(value) &&
      value >= first && value <= last) {
    return value;
  }
  reject(column, "a number from " + std::to_string(first) + " to " + std::to_string(last));
  return first;
}

Time CsvReader::moment(std::size_t column) {
  if (const auto time = civil_time(text(column))) return *time;
  reject(column, "a time such as 2017-10-09 07:01:55");
  return Time(0);
}

}  // namespace neap::trace
