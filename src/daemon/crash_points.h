// What a test may ask of the daemon by variables, honoured only with NEAP_TESTING=1.
//
// NEAP_CRASH_AT=name[:n] kills it the nth time that it passes a named moment of the loop, or of the
// journal (journal/crash_points.h). NEAP_SNAPSHOT_EVERY (records), NEAP_SEAL_EVERY_MS and
// NEAP_RETENTION_MS make happen in a second what takes a day.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "daemon/loop.h"

namespace neap::daemon {

enum class CrashPoint : std::uint8_t {
  turn_begun,         // awake, nothing taken from the inbox
  applied,            // state changed, nothing handed to the journal
  handed_to_journal,  // queued for the commit thread
  before_actions,     // durable, no action sent
  action_sent,        // after each action
  acknowledged,       // reports acknowledged, callers not answered
  published,          // all of it done
};
inline constexpr int crash_point_count = 7;

using CrashHook = void (*)(CrashPoint);
inline std::atomic<CrashHook> crash_hook{nullptr};
inline void crash_point(CrashPoint point) {
  if (CrashHook hook = crash_hook.load(std::memory_order_relaxed)) [[unlikely]]
    hook(point);
}

[[nodiscard]] std::string_view name_of(CrashPoint point);
// Reads the variables; returns false and says why on stderr when the name is unknown.
bool arm_crash_points();
// The options as they are, or as a test wants them.
[[nodiscard]] Loop::Options paced_for_tests(Loop::Options options);

}  // namespace neap::daemon
