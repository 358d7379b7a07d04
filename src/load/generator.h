// Open-loop load on a streaming HTTP service. Requests start when the curve says, whatever
// became of those before, and every latency counts from the moment at which the request was to
// start: a slow service cannot make its own figures look better by slowing the generator down.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "load/arrivals.h"
#include "measure/histogram.h"

namespace neap::load {

struct Target {
  std::string address = "127.0.0.1";  // numeric, IPv4 or IPv6
  std::uint16_t port = 0;
  std::string path = "/v1/completions";
  // {n} becomes the request's number, {input_tokens} and {output_tokens} what a trace says of it,
  // {input_text} so many words. Empty: GET instead of POST.
  std::string body;
  std::vector<std::string> headers;  // "Name: value"
  std::string host;                  // in the header Host; empty: the address
};

// A recorded request: when it came, and its size where that is known (-1: not).
struct TraceArrival {
  Micros at;
  std::int64_t input_tokens = -1;
  std::int64_t output_tokens = -1;
};

// Requests are of one class or another by chance, in these proportions.
struct LoadClass {
  std::string name;
  std::uint32_t weight = 1;
};

// What a good answer has to keep to; 0: anything.
struct LoadObjective {
  Micros first_byte{0};
  Micros total{0};
};

struct LoadOptions {
  RateCurve curve;
  Target target;
  std::uint64_t seed = 1;
  Micros timeout = seconds(60);       // from the scheduled start to the last byte
  std::uint32_t in_flight_max = 256;  // more are dropped and counted, never delayed
  Micros progress_every = milliseconds(500);
  Spacing spacing = Spacing::poisson;
  std::vector<TraceArrival> trace;  // in order of time; not empty: instead of the curve
  std::vector<LoadClass> classes;   // empty: all are of one
  std::string class_header = "X-Priority";
  // Connections are used again when they were idle for less than this; 0: each request has its
  // own. One that the server closed meanwhile is no failure: what was sent into it, and of whose
  // answer no byte came, is sent once more on a new one.
  Micros keep_idle{0};
  std::string request_ids;  // not empty: X-Request-Id is this, a dash and the request's number
  LoadObjective objective;
};

enum class Outcome : std::uint8_t {
  ok,          // status 2xx, whole
  refused,     // no connection
  bad_status,  // any other status
  cut,         // ended in the middle, or not HTTP
  timed_out,
  dropped,      // in_flight_max was reached
  interrupted,  // the run was stopped
};
inline constexpr std::size_t outcome_count = 7;
[[nodiscard]] std::string_view name_of(Outcome outcome);

// Times since the start of the run.
struct RequestResult {
  std::uint64_t number = 0;  // from 1, in order of schedule
  Micros scheduled;
  Micros started;  // its connection was begun
  std::optional<Micros> first_byte;
  Micros finished;
  std::int32_t tokens = 0;
  std::int32_t status = 0;  // 0: none came
  Outcome outcome{};
  std::uint32_t load_class = 0;             // index into LoadOptions::classes
  std::optional<std::int32_t> retry_after;  // seconds
  bool sent_again = false;                  // its first connection was stale
};

struct LoadTotals {
  std::uint64_t scheduled = 0;
  std::uint64_t by_outcome[outcome_count] = {};
  std::map<std::int32_t, std::uint64_t> by_status;
  std::uint64_t retry_after = 0;  // of those with status 429: that said when to come again
  std::uint64_t sent_again = 0;
  std::uint64_t within_objective = 0;  // of the good ones
  std::uint64_t tokens = 0;
  // Of the good ones, from the scheduled start.
  measure::Histogram first_byte;
  measure::Histogram total;
  measure::Histogram inter_token;

  [[nodiscard]] std::uint64_t count(Outcome outcome) const {
    return by_outcome[static_cast<std::size_t>(outcome)];
  }
  // Neither good nor interrupted by our own stop.
  [[nodiscard]] std::uint64_t failed() const;
};

struct LoadSummary : LoadTotals {
  std::vector<LoadTotals> classes;  // as in LoadOptions::classes
  Micros length{0};                 // to the end of the last request
  std::uint64_t connections = 0;
  // Of the generator itself: how much later than scheduled it started requests.
  measure::Histogram lateness;
};

struct LoadProgress {
  Micros elapsed;
  double rate = 0;  // that the curve asks for now
  std::uint32_t in_flight = 0;
  std::optional<Micros> oldest_wait;  // of the requests without a first byte
  const LoadSummary* so_far = nullptr;
};

struct LoadObserver {
  std::function<void(const RequestResult&)> result;
  std::function<void(const LoadProgress&)> progress;
};

// Runs to the end of the curve and of the last request, in the calling thread. Errors are about
// the options or the system; what happens to requests is in the summary. `stop` ends it early.
[[nodiscard]] Result<LoadSummary> run_load(const LoadOptions& options, const LoadObserver& observer,
                                           std::stop_token stop);

}  // namespace neap::load
