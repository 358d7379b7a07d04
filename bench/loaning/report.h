// What the lending bench prints: a run as a line of JSON, and the comparison over seeds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulate/loaning/compare.h"
#include "simulate/loaning/requests.h"
#include "simulate/loaning/score.h"

namespace neap::bench {

struct Row {
  std::string policy;
  std::int32_t devices = 0;
  std::uint64_t seed = 0;
  loaning::Outcome outcome;
  double took_s = 0;
  std::optional<loaning::Replayed> requests;
};

inline void print(const Row& row) {
  const loaning::Outcome& o = row.outcome;
  std::printf(
      "{\"policy\":\"%s\",\"devices\":%d,\"seed\":%llu,\"jobs\":%lld,\"unfinished\":%lld,"
      "\"wait_s\":%.1f,\"first_wait_s\":%.1f,\"wait_p50_s\":%.1f,\"wait_p99_s\":%.1f,"
      "\"completion_s\":%.1f,\"effective\":%.5f,\"held\":%.1f,\"preemptions\":%.0f,"
      "\"lost_device_h\":%.2f,\"short_slots\":%.7f,\"short_requests\":%.9f,\"switches\":%.0f,"
      "\"overhead\":%.6f}\n",
      row.policy.c_str(), row.devices, static_cast<unsigned long long>(row.seed),
      static_cast<long long>(o.jobs), static_cast<long long>(o.unfinished), o.wait_s,
      o.first_wait_s, o.wait_p50_s, o.wait_p99_s, o.completion_s, o.effective, o.held_replicas,
      o.preemptions, o.lost_device_h, o.short_slots, o.short_requests, o.switches, o.overhead);
  std::fflush(stdout);
}

using Figure = double (*)(const loaning::Outcome&);

inline std::vector<double> values(const std::vector<const Row*>& rows, Figure figure) {
  std::vector<double> found;
  for (const Row* row : rows) found.push_back(figure(row->outcome));
  return found;
}

inline double mean(const std::vector<const Row*>& rows, Figure figure) {
  double sum = 0;
  for (const double each : values(rows, figure)) sum += each;
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

inline double took_s(const std::vector<const Row*>& rows) {
  double sum = 0;
  for (const Row* row : rows) sum += row->took_s;
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

// Of the minutes that another case saves on the first, so many are saved by this one.
inline double part_saved(const std::vector<const Row*>& first, const std::vector<const Row*>& each,
                         const std::vector<const Row*>& other, Figure figure) {
  const double possible = mean(first, figure) - mean(other, figure);
  return possible > 0 ? (mean(first, figure) - mean(each, figure)) / possible : 0;
}

// Waits below a second are a second: no wait at all has no ratio.
inline loaning::Ratio ratio(const std::vector<const Row*>& above,
                            const std::vector<const Row*>& below, Figure figure) {
  const auto upper = values(above, figure);
  const auto lower = values(below, figure);
  return loaning::ratio_of({upper, lower, 1e-9});
}

inline double at_least_a_second(double value_s) { return std::max(1.0, value_s); }

// Cases in the order of their first rows; seeds in one order in all.
inline std::vector<std::vector<const Row*>> by_case(const std::vector<Row>& rows) {
  std::vector<std::vector<const Row*>> cases;
  for (const Row& row : rows) {
    const auto same = std::find_if(cases.begin(), cases.end(), [&](const auto& each) {
      return each.front()->policy == row.policy && each.front()->devices == row.devices;
    });
    if (same == cases.end()) {
      cases.push_back({&row});
    } else {
      same->push_back(&row);
    }
  }
  return cases;
}

inline void compare(const std::vector<Row>& rows) {
  const auto cases = by_case(rows);
  if (cases.empty()) return;
  const auto& first = cases.front();
  const Figure wait = [](const loaning::Outcome& o) { return at_least_a_second(o.wait_s); };
  const Figure p99 = [](const loaning::Outcome& o) { return at_least_a_second(o.wait_p99_s); };
  const Figure completion = [](const loaning::Outcome& o) { return o.completion_s; };
  const Figure effective = [](const loaning::Outcome& o) { return o.effective; };
  std::printf("\n%-38s %7s %5s %8s %8s %8s %6s %6s %8s %8s %9s %9s %8s %8s\n", "mean over seeds",
              "devices", "seeds", "wait min", "p99 min", "compl.", "EU", "held", "preempt.",
              "lost h", "slots %", "requ. %", "switch %", "s a run");
  for (const auto& each : cases) {
    const auto of = [&](Figure figure) { return mean(each, figure); };
    std::printf(
        "%-38s %7d %5zu %8.1f %8.1f %8.1f %6.3f %6.1f %8.0f %8.1f %9.4f %9.5f %8.3f %8.2f\n",
        each.front()->policy.c_str(), each.front()->devices, each.size(),
        of([](const loaning::Outcome& o) { return o.wait_s / 60; }),
        of([](const loaning::Outcome& o) { return o.wait_p99_s / 60; }),
        of([](const loaning::Outcome& o) { return o.completion_s / 60; }), of(effective),
        of([](const loaning::Outcome& o) { return o.held_replicas; }),
        of([](const loaning::Outcome& o) { return o.preemptions; }),
        of([](const loaning::Outcome& o) { return o.lost_device_h; }),
        of([](const loaning::Outcome& o) { return 100 * o.short_slots; }),
        of([](const loaning::Outcome& o) { return 100 * o.short_requests; }),
        of([](const loaning::Outcome& o) { return 100 * o.overhead; }), took_s(each));
  }
  std::printf("\n%s on %d over each, geometric mean [95 %%]; effective: each over it\n",
              first.front()->policy.c_str(), first.front()->devices);
  for (const auto& each : cases) {
    if (&each == &first) continue;
    std::printf("%-38s %7d", each.front()->policy.c_str(), each.front()->devices);
    const auto show = [](const char* what, const loaning::Ratio& r) {
      std::printf("  %s %.3g [%.3g, %.3g]", what, r.mean, r.low, r.high);
    };
    show("wait", ratio(first, each, wait));
    show("p99", ratio(first, each, p99));
    show("completion", ratio(first, each, completion));
    show("effective", ratio(each, first, effective));
    for (const auto& other : cases) {
      if (other.front()->policy != "O" || other.front()->devices != each.front()->devices) continue;
      std::printf("  of O's gain: wait %.3f completion %.3f", part_saved(first, each, other, wait),
                  part_saved(first, each, other, completion));
    }
    const loaning::Ratio gain = ratio(first, each, wait);
    std::printf("  %s\n", gain.low > 1 ? "gain" : "no gain");
  }
}

// What requests felt, over the seeds together.
inline void print_requests(const std::vector<Row>& rows) {
  if (rows.empty() || !rows.front().requests) return;
  std::printf("\n%-38s %7s %9s %10s %8s %8s %8s %8s %8s %12s %9s\n", "requests", "devices",
              "requests", "failed %", "ttft p50", "p95", "p99 ms", "tot. p50", "p99 ms",
              "worst window", "p99 / A's");
  double first_p99 = 0;
  for (const auto& each : by_case(rows)) {
    loaning::Latencies all;
    double worst_ms = 0;
    const auto ms = [](Micros length) { return static_cast<double>(length.value) / 1e3; };
    for (const Row* row : each) {
      all.merge(row->requests->all);
      worst_ms = std::max(worst_ms, ms(row->requests->worst.first_byte.percentiles().p99));
    }
    const auto first_byte = all.first_byte.percentiles(), total = all.total.percentiles();
    if (first_p99 == 0) first_p99 = ms(first_byte.p99);
    std::printf(
        "%-38s %7d %9llu %10.6f %8.1f %8.1f %8.1f %8.0f %8.0f %12.1f %9.3f\n",
        each.front()->policy.c_str(), each.front()->devices,
        static_cast<unsigned long long>(all.requests),
        100 * static_cast<double>(all.expired) / std::max(1.0, static_cast<double>(all.requests)),
        ms(first_byte.p50), ms(first_byte.p95), ms(first_byte.p99), ms(total.p50), ms(total.p99),
        worst_ms, ms(first_byte.p99) / first_p99);
  }
}

}  // namespace neap::bench
