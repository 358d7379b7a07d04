// E2: whatever requests come in whatever order, windows hold those of their slices and no others;
// classes add up to the whole. A window that forgets the running slice is noticed.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "measure/latency_book.h"

namespace neap::measure {
namespace {

constexpr std::int64_t day_s = 86'400;

std::vector<RequestSeen> drawn_requests() {
  const auto one = rc::gen::map(
      rc::gen::tuple(rc::gen::inRange<std::int64_t>(0, 7'200'000),
                     rc::gen::inRange<std::int64_t>(0, 5'000'000), rc::gen::inRange(0, 5)),
      [](const auto& drawn) {
        RequestSeen request;
        request.ended = Time(0) + seconds(day_s) + milliseconds(std::get<0>(drawn));
        request.first_byte_us = std::get<1>(drawn);
        request.total = Micros(std::get<1>(drawn) * 2);
        request.end = static_cast<RequestSeen::End>(std::get<2>(drawn));
        request.priority_class = std::get<2>(drawn) % 2 == 0 ? "high" : "low";
        return request;
      });
  return *rc::gen::container<std::vector<RequestSeen>>(one);
}

// In order of their ends, but for a few that come late: as records do.
void disorder(std::vector<RequestSeen>& requests) {
  std::ranges::stable_sort(requests, {}, &RequestSeen::ended);
  for (std::size_t i = 1; i < requests.size(); i += 5) std::swap(requests[i - 1], requests[i]);
}

std::uint64_t expected_in(const std::vector<RequestSeen>& requests, Time now, Micros slice,
                          Micros window, std::int64_t newest_counts) {
  const std::int64_t last = now.us / slice.value;
  std::uint64_t count = 0;
  for (const RequestSeen& one : requests) {
    const std::int64_t number = one.ended.us / slice.value;
    const bool inside = number >= last - window.value / slice.value && number <= last;
    if (inside && (newest_counts == 1 || number < last)) ++count;
  }
  return count;
}

RC_GTEST_PROP(LatencyBookProperty, E2_WindowsHoldTheirSlices, ()) {
  std::vector<RequestSeen> requests = drawn_requests();
  RC_PRE(!requests.empty());
  disorder(requests);
  const Time now = std::ranges::max_element(requests, {}, &RequestSeen::ended)->ended;
  LatencyBook book;
  for (const RequestSeen& one : requests) book.add("chat", one);
  const auto report = book.report("chat", now);
  const std::array<Micros, 3> slices{seconds(5), seconds(30), minutes(5)};
  bool forgetful_differs = false;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::uint64_t expected = expected_in(requests, now, slices[i], report_windows[i], 1);
    RC_ASSERT(report[0].windows[i].requests == expected);
    forgetful_differs = forgetful_differs ||
                        expected_in(requests, now, slices[i], report_windows[i], 0) != expected;
    std::uint64_t sum = 0;
    std::uint64_t first_bytes = 0;
    for (const SeriesReport& one : report) {
      if (one.dimension != Dimension::priority_class) continue;
      sum += one.windows[i].requests;
      first_bytes += one.windows[i].first_byte.count();
    }
    RC_ASSERT(sum == expected);
    RC_ASSERT(first_bytes == report[0].windows[i].first_byte.count());
  }
  RC_ASSERT(forgetful_differs);  // the newest request is in the running slice
}

RC_GTEST_PROP(LatencyBookProperty, E2_SparseEqualsDense, ()) {
  SparseHistogram sparse;
  Histogram dense;
  for (const std::int64_t value : *rc::gen::container<std::vector<std::int64_t>>(
           rc::gen::inRange<std::int64_t>(-10, std::int64_t{1} << 41))) {
    sparse.record(Micros(value));
    dense.record(Micros(value));
  }
  Histogram into;
  into.record(Micros(77));
  sparse.add_to(into);
  dense.record(Micros(77));
  RC_ASSERT(into == dense);
}

}  // namespace
}  // namespace neap::measure
