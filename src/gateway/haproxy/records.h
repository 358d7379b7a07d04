// The proxy's record of every request, one line each, and their sums by replica and slice.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/gateway.h"
#include "measure/latency_book.h"

namespace neap::gateway {

inline constexpr Micros latency_span = seconds(30);  // latest requests that say how long they take

struct RequestRecord {
  Time ended;  // as the proxy wrote the line
  std::string service;
  AllocationId allocation;  // none: reached no replica
  std::int32_t status = 0;
  bool complete = false;     // the whole response reached the client
  bool replica_cut = false;  // cut off by the replica's end or silence
  Micros queued{0};
  Micros total{0};
  std::optional<Micros> first_byte;           // from the request's arrival; none: no body came
  std::uint64_t bytes_in = 0, bytes_out = 0;  // head and body, as the client sent and got them
  std::int32_t retries = 0;
  std::string priority_class, team, model;  // "" where the proxy found none
  std::string request_id;                   // the client's X-Request-Id
};

// What the proxy is told: the rules of a frontend, before any that may refuse a request, and the
// log-format. The variables txn.class, txn.team and txn.model are whoever's who knows them.
// came_header: see ConfigPaths.
[[nodiscard]] std::string record_rules(std::string_view came_header);
[[nodiscard]] std::string_view record_format();

// One line of that format; none when it is something else.
[[nodiscard]] std::optional<RequestRecord> parse_record(std::string_view line);

[[nodiscard]] bool failed(const RequestRecord& record);
[[nodiscard]] measure::RequestSeen seen_of(const RequestRecord& record);

// Cuts a byte stream into lines. A line over the limit is dropped.
class LineCutter {
 public:
  // Calls `each(std::string_view line)` for every complete line.
  template <class Each>
  void feed(std::string_view bytes, Each each) {
    for (;;) {
      const std::size_t end = bytes.find('\n');
      append(bytes.substr(0, end));
      if (end == std::string_view::npos) return;
      if (!overlong_) each(std::string_view(line_));
      line_.clear();
      overlong_ = false;
      bytes.remove_prefix(end + 1);
    }
  }

  // Of a line that has only begun.
  [[nodiscard]] std::string_view pending() const { return line_; }
  void reset() {
    line_.clear();
    overlong_ = false;
  }

 private:
  void append(std::string_view part);

  std::string line_;
  bool overlong_ = false;
};

class RequestTally {
 public:
  static constexpr Micros slice = seconds(10);

  void add(const RequestRecord& record, Micros slo_first_byte, Time at);
  // Slices that ended before `now`; they are forgotten here.
  [[nodiscard]] std::vector<RequestSlice> take_closed(Time now);
  // Everything, the running slice too.
  [[nodiscard]] std::vector<RequestSlice> take_all();

 private:
  struct Key {
    Time start;
    std::string service;
    AllocationId allocation;
    auto operator<=>(const Key&) const = default;
  };

  std::map<Key, measure::RequestTotals> open_;
};

}  // namespace neap::gateway
