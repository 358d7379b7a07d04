#include "daemon/crash_points.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "journal/crash_points.h"

namespace neap::daemon {

namespace {

constexpr std::array<std::string_view, crash_point_count> point_names{
    "turn_begun",  "applied",      "handed_to_journal", "before_actions",
    "action_sent", "acknowledged", "published"};

std::atomic<int> armed_point{-1};
std::atomic<std::uint64_t> passes_left{0};

void on_point(CrashPoint point) {
  if (static_cast<int>(point) != armed_point.load(std::memory_order_relaxed)) return;
  if (passes_left.fetch_sub(1) == 1) ::kill(::getpid(), SIGKILL);
}

bool is_tested() {
  const char* testing = std::getenv("NEAP_TESTING");
  return testing != nullptr && std::string_view(testing) == "1";
}

std::int64_t number_in(const char* variable, std::int64_t otherwise) {
  const char* text = std::getenv(variable);
  const std::int64_t value = text == nullptr ? 0 : std::strtoll(text, nullptr, 10);
  return value > 0 ? value : otherwise;
}

}  // namespace

std::string_view name_of(CrashPoint point) { return point_names[static_cast<std::size_t>(point)]; }

bool arm_crash_points() {
  const char* at = std::getenv("NEAP_CRASH_AT");
  if (!is_tested() || at == nullptr) return true;
  std::string name = at;
  std::uint64_t nth = 1;
  if (const auto colon = name.find(':'); colon != std::string::npos) {
    nth = std::strtoull(name.c_str() + colon + 1, nullptr, 10);
    name.resize(colon);
  }
  for (std::size_t i = 0; i < point_names.size(); ++i) {
    if (point_names[i] != name) continue;
    armed_point = static_cast<int>(i);
    passes_left = nth;
    crash_hook = on_point;
    return true;
  }
  if (const auto point = journal::crash_point_named(name)) {
    journal::kill_at(*point, nth);
    return true;
  }
  std::fprintf(stderr, "neap: NEAP_CRASH_AT point_names no moment of the loop or the journal: %s\n",
               name.c_str());
  return false;
}

Loop::Options paced_for_tests(Loop::Options options) {
  if (!is_tested()) return options;
  options.snapshot_every = static_cast<std::uint64_t>(
      number_in("NEAP_SNAPSHOT_EVERY", static_cast<std::int64_t>(options.snapshot_every)));
  options.seal_every =
      Micros(number_in("NEAP_SEAL_EVERY_MS", options.seal_every.value / 1'000) * 1'000);
  options.retention =
      Micros(number_in("NEAP_RETENTION_MS", options.retention.value / 1'000) * 1'000);
  return options;
}

}  // namespace neap::daemon
