// Pipelines: stages of work that follow one another, such as preprocess, train, evaluate and serve
// (SPEC D9). Each stage but the first enters when those before it are done and its conditions hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/spec.h"
#include "core/model/units.h"

namespace neap {

inline constexpr std::size_t most_stages = 64;
inline constexpr std::size_t most_metrics = 64;  // of one stage

// A number that a stage left behind, in millionths.
struct Metric {
  std::string name;
  std::int64_t value = 0;
};

enum class Comparison : std::uint8_t { at_least, at_most };
struct StageCondition {
  std::int32_t stage = 0;  // whose metric: one of those it comes after
  std::string metric;
  Comparison comparison{};
  std::int64_t bound = 0;  // millionths
};

struct StageSpec {
  std::string name;
  std::vector<std::int32_t> after;   // positions of earlier stages, sorted
  std::vector<StageCondition> when;  // all of them
  std::optional<TaskSpec> task;      // one of the two; a service has no stage after it
  std::optional<ServiceSpec> service;
};

struct PipelineSpec {
  std::string name;
  std::string team;
  Owner owner;
  std::vector<StageSpec> stages;
};

// waiting: for stages before it. reading: its task has finished, its metrics are not known yet.
enum class StagePhase : std::uint8_t { waiting, running, reading, done, failed, stopped };
[[nodiscard]] constexpr bool has_ended(StagePhase phase) { return phase >= StagePhase::done; }

struct StageState {
  std::string name;
  std::vector<std::int32_t> after;
  std::vector<StageCondition> when;
  TaskId task;                         // of a task, from the submission on
  std::optional<ServiceSpec> deploys;  // of a service
  ServiceId service;                   // once it has entered
  StagePhase phase = StagePhase::waiting;
  Time since;
  std::string detail;           // why it failed, or was stopped
  std::vector<Metric> metrics;  // once read
  std::string fault;            // why there are none
};

// The stages of a pipeline are one priority group (rules/chain.h).
struct PipelineState {
  PipelineId id;
  std::string name, team;
  Owner owner;
  Time submitted;
  Time begun = Time::never();  // a stage of it was placed
  Time ended = Time::never();
  TierId group;              // the heaviest tier of its stages
  std::string cancelled_by;  // empty: nobody
  std::vector<StageState> stages;
};

// ---- decisions -------------------------------------------------------------------------------

// Those before the stage are done and its conditions hold: its task is in the queue, or its service
// is submitted, as a new version where one of that name lives.
struct StageEntered {
  PipelineId pipeline;
  std::int32_t stage = 0;
  TaskId task;        // one of the two
  ServiceId service;  // the next id where it is a new one
  std::string team;   // of the service
};
struct StageEnded {
  PipelineId pipeline;
  std::int32_t stage = 0;
  TaskId task;  // none where it is a service
  StagePhase outcome{};
  std::string why;
};
// The new version of a service has taken over; or it did not become healthy, and the version before
// it goes on.
enum class RollOutcome : std::uint8_t { done, rolled_back };
struct ServiceRolled {
  ServiceId service;
  RollOutcome outcome{};
  std::string why;
};

}  // namespace neap
