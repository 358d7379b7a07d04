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

constexpr std::array<std::string_view, crash_point_count> names{
    "turn_begun",  "applied",      "handed_to_journal", "before_actions",
    "action_sent", "acknowledged", "published"};

std::atomic<int> armed_point{-1};
std::atomic<std::uint64_t> passes_left{0};

void on_point(CrashPoint point) {
  if (static_cast<int>(point) != armed_point.load(std::memory_order_relaxed)) return;
  if (passes_left.fetch_sub(1) == 1) ::kill(::getpid(), SIGKILL);
}

}  // namespace

std::string_view name_of(CrashPoint point) { return names[static_cast<std::size_t>(point)]; }

bool arm_crash_points() {
  const char* testing = std::getenv("NEAP_TESTING");
  const char* at = std::getenv("NEAP_CRASH_AT");
  if (testing == nullptr || std::string_view(testing) != "1" || at == nullptr) return true;
  std::string name = at;
  std::uint64_t nth = 1;
  if (const auto colon = name.find(':'); colon != std::string::npos) {
    nth = std::strtoull(name.c_str() + colon + 1, nullptr, 10);
    name.resize(colon);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != name) continue;
    armed_point = static_cast<int>(i);
    passes_left = nth;
    crash_hook = on_point;
    return true;
  }
  if (const auto point = journal::crash_point_named(name)) {
    journal::kill_at(*point, nth);
    return true;
  }
  std::fprintf(stderr, "neap: NEAP_CRASH_AT names no moment of the loop or the journal: %s\n",
               name.c_str());
  return false;
}

}  // namespace neap::daemon
