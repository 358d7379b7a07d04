// Rows of comma separated values, read by column name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "trace/lines.h"

namespace neap::trace {

struct Column {
  enum class Need : std::uint8_t { required, optional };
  std::string_view name;
  Need need = Need::required;
};

struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

inline constexpr std::int64_t longest_s = std::int64_t{100} * 365 * 86'400;  // of any trace

// Columns are asked for by their index in the list that the constructor was given. The first
// wrong field of a row is kept: `finish` returns it, so that a reader of rows is a plain list.
class CsvReader {
 public:
  // With a header line that names the columns, in any order, among others.
  CsvReader(Bytes bytes, std::vector<Column> columns);
  // Without a header line: the columns are these, in this order, and no others.
  [[nodiscard]] static CsvReader without_header(Bytes bytes, std::vector<Column> columns);

  // The next row that is not empty; false after the last.
  [[nodiscard]] Result<bool> next();
  // The row's first problem.
  [[nodiscard]] Result<void> finish();

  [[nodiscard]] bool has(std::size_t column) const { return places_[column].has_value(); }
  // "" for an optional column that is not there.
  [[nodiscard]] std::string_view text(std::size_t column) const;
  // Whole numbers, written as 12 or 12.0.
  std::int64_t whole(std::size_t column, Range range);
  // 1.25 read with 6 digits is 1'250'000; further digits are cut off.
  std::int64_t decimal(std::size_t column, int digits, Range range);
  double real(std::size_t column, double first, double last);
  // "2017-10-09 07:01:55", with or without a fraction, as UTC.
  Time moment(std::size_t column);
  // A problem of the row that the reader of rows finds itself.
  void reject(std::size_t column, std::string_view expected);

  [[nodiscard]] const LineReader& lines() const { return lines_; }

 private:
  CsvReader(Bytes bytes, std::vector<Column> columns, std::size_t fields);

  [[nodiscard]] Result<void> read_header();
  [[nodiscard]] Result<void> split(std::string_view line);
  [[nodiscard]] Result<void> split_quoted(std::string_view line);

  LineReader lines_;
  std::vector<Column> columns_;
  std::vector<std::optional<std::size_t>> places_;  // of each column in a row
  std::size_t width_ = 0;                           // fields of a row; 0 before the header
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;
  std::optional<Error> problem_;
};

// Digits with at most one point, as a count of 10^-digits; nothing where it is no such number.
[[nodiscard]] std::optional<std::int64_t> fixed_point(std::string_view text, int digits);
// "2017-10-09 07:01:55[.fraction]" in UTC.
[[nodiscard]] std::optional<Time> civil_time(std::string_view text);

}  // namespace neap::trace
