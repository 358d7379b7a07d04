// How far two kinds of work share the pool: the steps in which sharing is taken up (SPEC F8), and
// the presets of their ratio (D10).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/units.h"

namespace neap {

// physical: each kind of work has devices of its own, and each task has its devices alone.
// memory: tasks share devices by quota; nothing moves between the kinds of work over time.
// time: devices are lent and given back too.
enum class AdoptionStage : std::uint8_t { physical, memory, time };

// What a stage has to show before the next one is begun, measured since it was begun itself.
struct AdoptionSpec {
  AdoptionStage begin = AdoptionStage::time;  // of a pool that is new
  Micros stabilise = hours(7 * 24);
  std::int32_t least_starts = 10;  // of tasks: nothing is shown where nothing ran
  std::int32_t most_faults = 0;    // of devices and nodes
  std::int32_t most_breaches = 0;  // of the checkpoint contract and of memory
  Ppm most_failed{50'000};         // starts that ended by themselves, of all
  Ppm most_short{500};             // of the time for which services were measured
  Ppm least_kept{950'000};         // of those asked to yield, who left with their work saved
};

// inference_led: three devices for inference to one for training; balanced: one to one;
// training_led: one to three.
enum class Preset : std::uint8_t { none, inference_led, balanced, training_led };
// What the ratio is kept by, where a preset says it.
enum class Isolation : std::uint8_t {
  unsaid,
  dedicated_windows,  // devices of inference alone, training in their idle windows
  shares,             // parts of devices, with memory that is a hard boundary
  time_slices         // training first, inference in slices
};
// A value that the preset gave, as the pool file would have it.
struct DerivedValue {
  std::string key;
  std::string value;
};

struct AdoptionFigures {
  std::int64_t starts = 0, failures = 0;
  std::int64_t faults = 0;           // devices that failed, nodes that were lost
  std::int64_t breaches = 0;         // of the checkpoint contract
  std::int64_t memory_breaches = 0;  // tasks that took more memory than they may
  std::int64_t yields = 0, kept = 0;
  Micros measured{0}, shortage{0};  // of services, each by itself
  Micros lost{0};                   // work of those asked to yield, as device-holding time
};

struct AdoptionChange {
  Time at;
  AdoptionStage from{}, to{};
  bool forced = false;
  std::string by, why;
  std::string missing;  // what its check missed, where it was forced
};
inline constexpr std::size_t adoption_changes_kept = 64;

struct AdoptionBook {
  AdoptionStage stage = AdoptionStage::time;
  Time since;
  AdoptionFigures seen;  // since then
  std::vector<AdoptionChange> changes;
};

}  // namespace neap
