// Scores a run of the engine from its records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/engine.h"
#include "core/model/events.h"
#include "simulate/loaning/score.h"
#include "simulate/loaning/workload.h"
#include "simulate/run/loaning/engine_run.h"

namespace neap::whatif {

class Witness {
 public:
  Witness(const loaning::Workload& workload, const EngineRun& run);
  void note(Time now, const Event& event, const StepResult& result);
  [[nodiscard]] loaning::Outcome outcome() { return score_.outcome(); }

 private:
  struct Job {
    double queued_at_s = 0, waited_s = 0, first_start_s = -1;
    double work_from_s = -1, kept_to_s = 0;  // of this start; -1: it does not work yet
  };
  struct Held {
    enum class By : std::uint8_t { job, replica } by{};
    std::size_t job = 0;
    enum class Replica : std::uint8_t { loading, ready, leaving } replica{};
    double asked_at_s = -1;  // to leave
  };

  void note(const TaskPlaced& placed);
  void exited(AllocationId allocation, const TaskExited* exit);
  void started(AllocationId allocation);
  void captured(const CheckpointDurable& checkpoint);
  void asked(AllocationId allocation);
  void replica_is(Held& held, Held::Replica state);
  void tell_replicas() { score_.replicas(now_s_, {held_replicas_, ready_replicas_}); }
  Held* find(AllocationId allocation);

  const loaning::Workload& workload_;
  EngineRun::Saves saves_;
  loaning::Score score_;
  double now_s_ = 0;
  std::vector<Job> jobs_;
  std::vector<std::int32_t> job_of_task_;  // -1: a replica
  std::int32_t submitted_ = -1;            // between a submission and its decision
  std::unordered_map<AllocationId, Held> held_;
  std::int32_t held_replicas_ = 0, ready_replicas_ = 0;
};

}  // namespace neap::whatif
