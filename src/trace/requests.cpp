#include "trace/requests.h"

#include <utility>

#include "trace/json_line.h"

namespace neap::trace {

namespace {

constexpr Range tokens{0, 1'000'000'000};
constexpr Range longest_ms{0, std::int64_t{100} * 365 * 86'400'000};

namespace azure {
enum : std::size_t { timestamp, context, generated };
}
namespace arrival {
enum : std::size_t { at, input, output };
}

}  // namespace

AzureReader::AzureReader(Bytes bytes)
    : rows_(std::move(bytes), {{"TIMESTAMP"}, {"ContextTokens"}, {"GeneratedTokens"}}) {}

Result<bool> AzureReader::next(Request& into) {
  const auto more = rows_.next();
  if (!more || !*more) return more;
  into.at = rows_.moment(azure::timestamp);
  into.input_tokens = rows_.whole(azure::context, tokens);
  into.output_tokens = rows_.whole(azure::generated, tokens);
  into.prefix.clear();
  if (auto row = rows_.finish(); !row) return tl::unexpected(row.error());
  return true;
}

ArrivalReader::ArrivalReader(Bytes bytes)
    : rows_(std::move(bytes), {{"arrival_s"},
                               {"input_tokens", Column::Need::optional},
                               {"output_tokens", Column::Need::optional}}) {}

Result<bool> ArrivalReader::next(Request& into) {
  const auto more = rows_.next();
  if (!more || !*more) return more;
  const auto known = [this](std::size_t column) {
    return rows_.has(column) && !rows_.text(column).empty() ? rows_.whole(column, tokens) : -1;
  };
  into.at = Time(rows_.decimal(arrival::at, 6, {0, longest_s}));
  into.input_tokens = known(arrival::input);
  into.output_tokens = known(arrival::output);
  into.prefix.clear();
  if (auto row = rows_.finish(); !row) return tl::unexpected(row.error());
  return true;
}

MooncakeReader::MooncakeReader(Bytes bytes) : lines_(std::move(bytes)) {}

Result<bool> MooncakeReader::next(Request& into) {
  auto line = JsonLine::next(lines_);
  if (!line) return tl::unexpected(line.error());
  if (!*line) return false;
  JsonLine& object = **line;
  into.at = Time(object.whole("timestamp", longest_ms) * 1'000);
  into.input_tokens = object.whole("input_length", tokens);
  into.output_tokens = object.whole("output_length", tokens);
  into.prefix = object.list("hash_ids", {0, INT64_MAX});
  if (auto done = object.finish(); !done) return tl::unexpected(done.error());
  return true;
}

}  // namespace neap::trace
