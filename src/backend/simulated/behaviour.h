// How a simulated task really behaves, well or badly. It travels in the `launch` text of a task or
// service, which is for backends alone: "steps=200 step=30000000 fault=2 ...".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/model/fields.h"
#include "core/model/result.h"
#include "core/model/units.h"

namespace neap::simulated {

// What the task does wrong. Values are written in launch texts: never renumber.
enum class Fault : std::uint8_t {
  none = 0,
  crashes = 1,            // ends with code 1 at step `fault_at` (a replica: that many seconds in)
  fails_to_start = 2,     // its process cannot be started
  ignores_yield = 3,      // goes on; SIGTERM ends it
  ignores_term = 4,       // goes on; SIGKILL ends it
  yields_unasked = 5,     // code 75 at step `fault_at`, though nobody asked
  yields_unsaved = 6,     // says that it yields, and ends with 75 without a checkpoint
  skips_checkpoints = 7,  // takes none, asked or not
  breaks_protocol = 8,    // sends nonsense at step `fault_at`, which its supervisor reports
  reports_backwards = 9,  // its step numbers and checkpoints fall behind what it said before
};

struct Behaviour {
  Micros spawn = seconds(1);  // from the start order to the running process
  Micros load = seconds(20);  // model and data, each time; of a replica: until healthy
  // Training.
  std::int64_t steps = 100;
  Micros step = seconds(30);
  Micros interval = minutes(10);  // between boundaries; they fall on ends of steps
  Micros save = seconds(10);      // from the boundary to the durable checkpoint
  Micros stall = seconds(10);     // of it, how long no step runs
  Micros restore = seconds(40);   // on top of `load` when it resumes
  Micros release = seconds(5);    // from the decision to yield to the end of the process
  Micros report = seconds(10);    // least time between reports of steps
  std::int64_t peak_mib = 0;      // highest use of one device, told once it has loaded; 0: nothing
  // Replicas.
  Micros drain = seconds(10);
  Micros sick_every{0};  // fails its health check about this often; 0 = never
  Micros sick_for = seconds(30);

  Fault fault = Fault::none;
  std::int64_t fault_at = 0;
  std::int64_t devices = 0;  // that `step` is the time of; with others it takes as much longer
  std::int64_t fault_times = 1'000'000;  // starts that show the fault; later ones are good
};

NEAP_FIELDS_BEGIN(Behaviour)
NEAP_ROW(spawn, load, steps, step, interval, save, stall, restore)
NEAP_ROW(release, drain, sick_every, sick_for, fault, fault_at, fault_times, report)
NEAP_ROW(peak_mib, devices)
NEAP_FIELDS_END

[[nodiscard]] std::string launch_text(const Behaviour& behaviour);
// Absent keys keep their defaults; unknown keys and malformed numbers are refused.
[[nodiscard]] Result<Behaviour> parse_launch_text(std::string_view text);

// Device-holding time that the whole work takes when nothing interrupts it.
[[nodiscard]] Micros undisturbed_work(const Behaviour& behaviour);

}  // namespace neap::simulated
