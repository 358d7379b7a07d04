#include "gateway/haproxy/request_log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace neap::gateway {
namespace {

constexpr Micros latency_slice = seconds(5);
constexpr std::size_t latency_slices = 7;  // the running one too
constexpr Micros burn_step = seconds(10);

}  // namespace

RequestLog::Counts::Counts() : first_bytes(latency_slice, latency_slices) {}

RequestLog::RequestLog(const std::string& folder, SpoolLimits limits, std::function<Time()> now,
                       SloOf slo_of)
    : folder_(folder), limits_(limits), now_(std::move(now)), slo_of_(std::move(slo_of)) {}

Result<void> RequestLog::open() {
  Result<RecordSpool> spool = RecordSpool::open(folder_ + "/requests", limits_);
  if (!spool) return tl::unexpected(spool.error());
  spool_ = std::move(*spool);
  handed_ = read_handed_on(folder_ + "/handed-on");
  return {};
}

std::string RequestLog::read(int pipe_fd) {
  const auto each = [this](std::uint64_t number, const RequestRecord& record) {
    count(number, record);
  };
  const Result<void> taken = spool_->take(pipe_fd);
  spool_->read(each);
  if (taken) return {};
  // A full disk is no reason to forget what was asked and answered.
  std::array<char, 65536> bytes{};
  for (ssize_t got = 0; (got = ::read(pipe_fd, bytes.data(), bytes.size())) > 0;) {
    unwritten_.feed({bytes.data(), static_cast<std::size_t>(got)}, [this](std::string_view line) {
      if (const auto record = parse_record(line)) count(std::nullopt, *record);
    });
  }
  return "the log of requests: " + to_string(taken.error());
}

void RequestLog::count(std::optional<std::uint64_t> number, const RequestRecord& record) {
  const Time now = now_();
  RequestRecord one = record;
  one.ended = std::min(one.ended, now);  // the clock may have been set back since
  Counts& counts = counts_[one.service];
  ++counts.requests;
  if (failed(one)) ++counts.failures;
  if (one.first_byte && !failed(one) && one.ended + latency_span >= now) {
    counts.first_bytes.record(one.ended, *one.first_byte);
  }
  if (seen_ && one.ended + latency_slice >= now) seen_(one);
  book_.add(one.service, seen_of(one));
  const std::optional<Micros> slo = slo_of_(one.service);
  if (!slo || (number && handed_.covers(*number, one.ended))) return;
  tally_.add(one, *slo, one.ended);
}

void RequestLog::hand_on(Time until) {
  handed_ = {spool_->next_number(), until};
  // Not written: the next daemon may count a slice twice. The trouble with the disk is told of.
  std::ignore = write_handed_on(folder_ + "/handed-on", handed_);
}

std::vector<RequestSlice> RequestLog::take_closed() {
  const Time now = now_();
  std::vector<RequestSlice> closed = tally_.take_closed(now);
  if (!closed.empty()) hand_on(measure::slice_start(now, RequestTally::slice));
  return closed;
}

std::vector<RequestSlice> RequestLog::take_all() {
  std::vector<RequestSlice> all = tally_.take_all();
  if (!all.empty()) hand_on(Time::never());
  return all;
}

measure::Objective RequestLog::objective_of(const std::string& service) const {
  return {.first_byte = slo_of_(service).value_or(Micros(0))};
}

void RequestLog::complete(const std::string& service, ServiceSample& sample) {
  const Time now = now_();
  Counts& counts = counts_[service];
  if (counts.burn_at < Time(0) || now - counts.burn_at >= burn_step) {
    counts.burn = book_.burn(service, objective_of(service), now);
    counts.burn_at = now;
  }
  sample.requests = counts.requests;
  sample.failures = counts.failures;
  const auto first_bytes = counts.first_bytes.over(now, latency_span);
  if (!first_bytes.empty()) sample.first_byte_p95 = first_bytes.quantile(Ppm(950'000));
  sample.burn = counts.burn;
  sample.at = now;
}

ServiceLatency RequestLog::latency(const std::string& service) const {
  const Time now = now_();
  const measure::Objective objective = objective_of(service);
  return {.series = book_.report(service, now),
          .burn = book_.burn(service, objective, now),
          .objective = objective,
          .requests = book_.requests(service),
          .at = now};
}

}  // namespace neap::gateway
