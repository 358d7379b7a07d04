#include "gateway/haproxy/records.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "gateway/haproxy/config.h"

namespace neap::gateway {
namespace {

constexpr std::size_t line_max = 4096;
constexpr std::size_t word_max = 128;
// R2 ended_us backend server status termination queue_ms,held_us total_us first_byte_us bytes_in
// bytes_out retries class team model request_id, of which the last two may be cut off.
constexpr std::size_t field_count = 16;
constexpr std::size_t fields_min = 14;
constexpr std::int64_t day_ms = 86'400'000;

bool number(std::string_view text, std::int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

std::uint64_t count_of(std::string_view text) {
  std::int64_t value = 0;
  return number(text, value) && value > 0 ? static_cast<std::uint64_t>(value) : 0;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// %41 is A. What is no printable ASCII becomes '?', for these words reach terminals.
std::string word(std::string_view text) {
  std::string out;
  if (text == "-") return out;
  for (std::size_t i = 0; i < text.size() && out.size() < word_max; ++i) {
    char c = text[i];
    if (c == '%' && i + 2 < text.size()) {
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high >= 0 && low >= 0) {
        c = static_cast<char>(high * 16 + low);
        i += 2;
      }
    }
    out += c > ' ' && c < '\x7f' ? c : '?';
  }
  return out;
}

}  // namespace

std::string record_rules(std::string_view came_header) {
  std::string came;
  if (const std::string header(came_header); !header.empty()) {
    came = "    http-request set-var(txn.came) req.hdr(" + header +
           "),add(0)\n"
           "    http-request set-var(txn.t0) var(txn.came) if { var(txn.came) -m found }\n"
           "    http-request del-header " +
           header + "\n";
  }
  // The time to the first byte of the body, queue included: servers that send their headers
  // early would fool the proxy's own response timer.
  return "    http-request set-var(txn.t0) date(0,us)\n" + came +
         "    http-request set-var(txn.rid) req.hdr(x-request-id)\n"
         "    http-response wait-for-body time 300s at-least 1\n"
         "    http-response set-var(txn.ttft) date(0,us),sub(txn.t0)\n";
}

std::string_view record_format() {
  // Words of clients come last: a line that is cut for its length still tells all the rest.
  return "R2 %[date(0,us)] %b %s %ST %ts %Tw,%[var(txn.held)] %[date(0,us),sub(txn.t0)] "
         "%[var(txn.ttft)] %U %B %rc "
         "%[var(txn.class),url_enc] %[var(txn.team),url_enc] %[var(txn.model),url_enc] "
         "%[var(txn.rid),url_enc]";
}

std::optional<RequestRecord> parse_record(std::string_view line) {
  std::array<std::string_view, field_count> fields{};
  std::size_t count = 0;
  for (; count < fields.size(); ++count) {
    const std::size_t space = line.find(' ');
    fields[count] = line.substr(0, space);
    if (space == std::string_view::npos) break;
    line.remove_prefix(space + 1);
  }
  if (count == field_count || count < fields_min - 1 || fields[0] != "R2" || fields[5].size() < 2) {
    return {};
  }
  std::int64_t ended_us = 0;
  std::int64_t status = 0;
  std::int64_t queued_ms = 0;
  std::int64_t total_us = 0;
  // Waiting for a place (us) begins before the proxy's own queue (ms).
  const std::string_view in_queue = fields[6].substr(0, fields[6].find(','));
  std::int64_t held_us = 0;
  if (in_queue.size() < fields[6].size()) {
    number(fields[6].substr(in_queue.size() + 1), held_us);
  }
  if (!number(fields[1], ended_us) || ended_us < 0 || !number(fields[4], status) ||
      !number(in_queue, queued_ms)) {
    return {};
  }
  RequestRecord record;
  record.ended = Time(ended_us);
  // A request that was answered by the frontend itself reached no backend.
  record.service = fields[2].starts_with("f:") ? fields[2].substr(2) : fields[2];
  record.allocation = allocation_of_server(fields[3]);
  if (!number(fields[7], total_us)) total_us = 0;  // ended before the request was read
  record.status = static_cast<std::int32_t>(std::clamp<std::int64_t>(status, -1, 999));
  const char cause = fields[5][0];
  // P: the proxy's own answer, such as a refusal. It is whole.
  record.complete = cause == '-' || cause == 'L' || (cause == 'P' && status >= 400);
  record.replica_cut = cause == 'S' || cause == 's';
  record.queued = milliseconds(std::clamp<std::int64_t>(queued_ms, 0, day_ms)) +
                  Micros(std::clamp<std::int64_t>(held_us, 0, day_ms * 1000));
  record.total = Micros(std::max<std::int64_t>(0, total_us));
  std::int64_t first_byte_us = 0;
  if (number(fields[8], first_byte_us)) record.first_byte = Micros(first_byte_us);
  record.bytes_in = count_of(fields[9]);
  record.bytes_out = count_of(fields[10]);
  record.retries = static_cast<std::int32_t>(std::min<std::uint64_t>(count_of(fields[11]), 1000));
  record.priority_class = word(fields[12]);
  record.team = word(fields[13]);
  record.model = word(fields[14]);
  record.request_id = word(fields[15]);
  return record;
}

measure::RequestSeen seen_of(const RequestRecord& record) {
  using End = measure::RequestSeen::End;
  measure::RequestSeen seen{.ended = record.ended,
                            .priority_class = record.priority_class,
                            .team = record.team,
                            .model = record.model,
                            .queued = record.queued,
                            .total = record.total,
                            .bytes_in = record.bytes_in,
                            .bytes_out = record.bytes_out};
  if (record.first_byte) seen.first_byte_us = std::max<std::int64_t>(0, record.first_byte->value);
  if (record.status == 429) {
    seen.end = End::shed;
  } else if (failed(record)) {
    seen.end = End::failed;
  } else if (!record.complete) {
    seen.end = End::left;
  } else {
    seen.end = record.status < 400 ? End::good : End::bad_request;
  }
  return seen;
}

bool failed(const RequestRecord& record) {
  // 429: refused by a limit, or waited too long for a replica; nothing broke.
  return record.status != 429 && (record.status >= 500 || record.replica_cut);
}

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
