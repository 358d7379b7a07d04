#include "gateway/haproxy/records.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "gateway/haproxy/config.h"

namespace neap::gateway {
namespace {

constexpr std::size_t line_max = 4096;

bool number(std::string_view text, std::int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::optional<RequestRecord> parse_record(std::string_view line) {
  // R1 backend server status termination queue_ms total_us first_byte_us
  std::array<std::string_view, 8> fields;
  std::size_t count = 0;
  for (; count < fields.size(); ++count) {
    const std::size_t space = line.find(' ');
    fields[count] = line.substr(0, space);
    if (space == std::string_view::npos) break;
    line.remove_prefix(space + 1);
  }
  if (count != fields.size() - 1 || fields[0] != "R1" || fields[4].size() < 2) return {};
  RequestRecord record;
  record.service = fields[1];
  record.allocation = allocation_of_server(fields[2]);
  std::int64_t status = 0;
  std::int64_t queued_ms = 0;
  std::int64_t total_us = 0;
  if (!number(fields[3], status) || !number(fields[5], queued_ms)) return {};
  if (!number(fields[6], total_us)) total_us = 0;  // ended before the request was read
  record.status = static_cast<std::int32_t>(status);
  const char cause = fields[4][0];
  record.complete = cause == '-';
  record.replica_cut = cause == 'S' || cause == 's';
  record.queued = milliseconds(std::max<std::int64_t>(0, queued_ms));
  record.total = Micros(std::max<std::int64_t>(0, total_us));
  std::int64_t first_byte_us = 0;
  if (number(fields[7], first_byte_us)) record.first_byte = Micros(first_byte_us);
  return record;
}

bool failed(const RequestRecord& record) { return record.status >= 500 || record.replica_cut; }

void LineCutter::append(std::string_view part) {
  if (line_.size() + part.size() > line_max) overlong_ = true;
  if (!overlong_) line_ += part;
}

void RequestTally::add(const RequestRecord& record, Micros slo_first_byte, Time at) {
  measure::RequestTotals one;
  if (failed(record)) one.failures = 1;
  if (record.complete) {
    const bool in_time =
        slo_first_byte == Micros(0) || record.first_byte.value_or(record.total) <= slo_first_byte;
    const bool good = record.status >= 200 && record.status < 400;
    one.responses = 1;
    one.busy = std::max(Micros(0), record.total - record.queued);
    if (in_time && good) {
      one.within_slo = 1;
      one.busy_within_slo = one.busy;
    }
  }
  if (one == measure::RequestTotals()) return;
  const Key key{measure::slice_start(at, slice), record.service, record.allocation};
  open_[key] += one;
}

std::vector<RequestSlice> RequestTally::take_closed(Time now) {
  std::vector<RequestSlice> closed;
  while (!open_.empty() && open_.begin()->first.start + slice <= now) {
    const auto& [key, totals] = *open_.begin();
    closed.push_back({key.service, key.allocation, key.start, totals});
    open_.erase(open_.begin());
  }
  return closed;
}

std::vector<RequestSlice> RequestTally::take_all() { return take_closed(Time::never()); }

}  // namespace neap::gateway
