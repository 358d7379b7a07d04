#include "measure/latency_book.h"

#include <algorithm>

#include "core/model/check.h"

namespace neap::measure {
namespace {

// Bad requests of all that the service had to answer well, in thousandths of what is allowed.
std::int64_t burn_of(const WindowTotals& totals, const Objective& objective) {
  const std::uint64_t counted = totals.good + totals.failed;
  if (counted == 0) return -1;
  std::uint64_t late = 0;
  if (objective.first_byte > Micros(0)) {
    late = totals.first_byte.count() - totals.first_byte.count_at_most(objective.first_byte);
  }
  const std::uint64_t bad = std::min(counted, totals.failed + late);
  const auto allowed =
      static_cast<std::uint64_t>(std::max<std::int64_t>(1, all_ppm.value - objective.part.value));
  return static_cast<std::int64_t>(bad * 1'000'000 / counted * 1000 / allowed);
}

}  // namespace

const char* name_of(Dimension dimension) {
  constexpr std::array<const char*, dimension_count> names{"service", "class", "team", "model"};
  return names[static_cast<std::size_t>(dimension)];
}

void LatencyBook::Slice::add(const RequestSeen& request) {
  using End = RequestSeen::End;
  bytes_in += request.bytes_in;
  bytes_out += request.bytes_out;
  if (request.end == End::shed) {
    ++shed;
    return;
  }
  queued.record(request.queued);
  switch (request.end) {
    case End::failed:
      ++failed;
      return;
    case End::bad_request:
      ++bad_requests;
      return;
    case End::left:
      ++left;
      return;
    default:
      break;
  }
  ++good;
  if (request.first_byte_us >= 0) first_byte.record(Micros(request.first_byte_us));
  total.record(request.total);
}

void LatencyBook::Slice::add_to(WindowTotals& totals) const {
  totals.good += good;
  totals.failed += failed;
  totals.shed += shed;
  totals.bad_requests += bad_requests;
  totals.left += left;
  totals.requests += good + failed + shed + bad_requests + left;
  totals.bytes_in += bytes_in;
  totals.bytes_out += bytes_out;
  queued.add_to(totals.queued);
  first_byte.add_to(totals.first_byte);
  total.add_to(totals.total);
}

// A request that ended before the oldest slice kept is of no window any more.
void LatencyBook::Tier::add(const RequestSeen& request) {
  NEAP_CHECK(request.ended >= Time(0));
  const auto kept = static_cast<std::int64_t>(ring_.size());
  const std::int64_t number = request.ended.us / slice_.value;
  newest_ = std::max(newest_, number);
  if (number <= newest_ - kept) return;
  Slice& slice = ring_[static_cast<std::size_t>(number % kept)];
  if (slice.number != number) {
    slice = Slice();
    slice.number = number;
  }
  slice.add(request);
}

void LatencyBook::Tier::add_to(WindowTotals& totals, Time now, Micros length) const {
  const std::int64_t last = now.us / slice_.value;
  const std::int64_t wanted = (length.value + slice_.value - 1) / slice_.value;
  for (const Slice& slice : ring_) {
    // One slice more than the length: the running one has only begun.
    if (slice.number >= 0 && slice.number <= last && slice.number >= last - wanted) {
      slice.add_to(totals);
    }
  }
}

void LatencyBook::Series::add(const RequestSeen& request) {
  for (Tier& tier : tiers) tier.add(request);
}

void LatencyBook::Service::add_named(Dimension dimension, const std::string& name,
                                     const RequestSeen& request) {
  if (name.empty() && dimension != Dimension::whole) return;
  const auto found = series.find({dimension, name});
  if (found != series.end()) return found->second.add(request);
  std::size_t& known = names[static_cast<std::size_t>(dimension)];
  if (known >= names_max) return series[{dimension, others}].add(request);
  ++known;
  series[{dimension, name}].add(request);
}

void LatencyBook::add(const std::string& service, const RequestSeen& request) {
  Service& into = services_[service];
  ++into.requests;
  into.add_named(Dimension::whole, {}, request);
  into.add_named(Dimension::priority_class, request.priority_class, request);
  into.add_named(Dimension::team, request.team, request);
  into.add_named(Dimension::model, request.model, request);
  into.half_hour.add(request);
  into.six_hours.add(request);
}

std::vector<SeriesReport> LatencyBook::report(const std::string& service, Time now) const {
  std::vector<SeriesReport> all;
  const auto found = services_.find(service);
  if (found == services_.end()) return all;
  for (const auto& [key, series] : found->second.series) {
    SeriesReport one{.dimension = key.first, .name = key.second, .windows = {}};
    for (std::size_t i = 0; i < report_windows.size(); ++i) {
      series.tiers[i].add_to(one.windows[i], now, report_windows[i]);
    }
    all.push_back(std::move(one));
  }
  return all;
}

BurnReport LatencyBook::burn(const std::string& service, const Objective& objective,
                             Time now) const {
  const auto found = services_.find(service);
  if (found == services_.end()) return {{-1, -1, false}, {-1, -1, false}};
  const Service& known = found->second;
  const auto judge = [&](const BurnRule& rule, const Tier& long_tier, const Tier& short_tier) {
    WindowTotals in_long;
    WindowTotals in_short;
    long_tier.add_to(in_long, now, rule.long_window);
    short_tier.add_to(in_short, now, rule.short_window);
    Burn burn{burn_of(in_long, objective), burn_of(in_short, objective), false};
    burn.alarm = burn.long_milli >= rule.limit_milli && burn.short_milli >= rule.limit_milli &&
                 in_short.good + in_short.failed >= burn_requests_min;
    return burn;
  };
  const Series& whole = known.series.at({Dimension::whole, {}});
  return {.fast = judge(fast_burn, whole.tiers[2], whole.tiers[1]),
          .slow = judge(slow_burn, known.six_hours, known.half_hour)};
}

std::uint64_t LatencyBook::requests(const std::string& service) const {
  const auto found = services_.find(service);
  return found == services_.end() ? 0 : found->second.requests;
}

}  // namespace neap::measure
