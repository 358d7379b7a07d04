// A burst rehearsed on the pool itself (SPEC F12): a service is given more replicas for a stated
// time, within stated limits, and what that took is kept. All of it is part of the state, so that a
// drill ends by itself whoever asked for it, and goes on after a restart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/units.h"

namespace neap {

struct DrillLimits {
  std::int32_t preemptions = 4;        // tasks asked to yield, at most
  Micros lost{0};                      // work lost by them, in all
  Micros ready_within = minutes(10);   // from the demand to a replica that serves
  Micros resume_within = minutes(10);  // from the end of the demand until all run again
  Micros pause = seconds(2);           // preemption is frozen for so long; 0: not rehearsed
  Micros freeze_within = seconds(1);   // of a pause: nobody is asked and nobody leaves after it
};

// Where a replica found room: what was free, the guard, the buffer, or what others yielded.
enum class RoomSource : std::uint8_t { none, free, guard, buffer, yielded };

struct DrillReplica {
  TaskId task;
  Time asked;
  Time placed = Time::never(), ready = Time::never();
  RoomSource source{};
};

struct DrillVictim {
  TaskId task;
  AllocationId allocation;
  Time asked;
  Time promised;                 // p95 of its release
  Time left = Time::never();     // its devices were free
  Time resumed = Time::never();  // it ran again, or had nothing left to do
  Micros lost_before{0}, lost{0};
  bool withdrawn = false;  // it was told to stay
  bool forced = false;     // it did not leave by itself
};

// demand: the service has its extra replicas. settling: they leave, and who yielded resumes.
enum class DrillPhase : std::uint8_t { none, demand, settling };

struct DrillState {
  DrillPhase phase{};
  ServiceId service;
  std::int32_t replicas = 0;  // the service has at least so many
  std::int32_t before = 0;    // what it had
  DrillLimits limits;
  std::string by;
  Time began, until;
  Time settle_by = Time::never();
  std::string withdrawn;  // why it ended early; empty: in its time
  std::vector<DrillReplica> placed;
  std::vector<DrillVictim> victims;
  std::int64_t idle_reserve = 0;  // devices free in guard and buffer when somebody was first asked
  Time pause_at = Time::never(), paused_at = Time::never(), resumed_at = Time::never();
  bool pausing = false;  // the pool's pause is the drill's
  Micros froze{0};       // from the pause to the last word or departure that it stopped
  std::int32_t asked_in_pause = 0;
  std::int32_t asked_after_pause = 0;
};

// Of the last drill that ended. What gates time sharing (F8) reads this.
struct DrillResult {
  std::string kind;  // empty: there was none
  bool passed = false;
  Time at;
  std::string detail;
};

// ---- facts and decisions ---------------------------------------------------------------------

// `service` is to have at least `replicas` for this long, as if its load had risen.
struct DrillStarted {
  std::string service;
  std::int32_t replicas = 0;
  Micros length{0};
  DrillLimits limits;
  std::string by;
};
struct DrillStopRequested {
  std::string by;
};

// Of a drill: preemption is frozen and released again, the demand ends, and the verdict.
struct DrillPaused {};
struct DrillResumed {};
struct DrillWithdrawn {
  std::string why;  // empty: its time has passed
};
struct DrillEnded {
  std::string kind;
  bool passed = false;
  Time at;
  std::string detail;
};

}  // namespace neap
