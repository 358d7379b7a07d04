// Three numbers, always together (SPEC F3, S9): effective utilisation, the latency of services and
// the mean wait of tasks, before and after a change, with one verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"

namespace neap::assess {

struct ServiceLatency {
  std::string name;
  std::int64_t p95_us = 0, p99_us = 0;
};

struct ThreeNumbers {
  std::int64_t effective_ppm = 0;  // useful device time alone
  std::int64_t mean_wait_us = 0;
  std::vector<ServiceLatency> services;
  // Of the device time that answered requests, the part beyond their objective, in parts of 10^12:
  // what stands in for latencies where those are not given.
  std::optional<std::int64_t> late_parts;
};

struct CompareSpec {
  Ppm same_within{20'000};  // a smaller change of a number is none
};

enum class Outcome : std::uint8_t {
  all_better,
  isolation_too_weak,  // utilisation is up, and a service is slower
  waits_longer,        // utilisation is up, and tasks wait longer
  no_change,           // the curves are not complementary
  worse,
};
[[nodiscard]] std::string_view name_of(Outcome outcome);

enum class Change : std::uint8_t { better, same, worse };
[[nodiscard]] std::string_view name_of(Change change);

struct Line {
  std::string name;  // "effective utilisation", "chat p99"
  std::int64_t before = 0, after = 0;
  Change change{};
};

struct Comparison {
  std::vector<Line> lines;  // utilisation, each latency, the mean wait
  Outcome outcome{};
  std::string verdict;  // one sentence
};

// Refuses a side without any latency, and services that are not on both.
[[nodiscard]] Result<Comparison> compare(const CompareSpec& spec, const ThreeNumbers& before,
                                         const ThreeNumbers& after);

}  // namespace neap::assess
