// A pool driven step by step, for tests: submits, starts and ends tasks as a backend would, and
// says in text what the engine decided.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/engine.h"
#include "core/model/state.h"

namespace neap::testing {

class Script {
 public:
  // Tiers infer_core 100, interactive 90, train_deadline_near 80, train_normal 40.
  Script();

  PoolSpec spec;  // applied by configure()
  void configure();
  void node(const std::string& name, const std::string& domain, int devices,
            MiB memory = MiB(81920), const std::string& model = "A100-80G");

  // A training task with the SDK contract, ten-minute interval, on-demand checkpoints.
  [[nodiscard]] static TaskSpec training(const std::string& name, int gpus = 1);
  [[nodiscard]] static ServiceSpec service(const std::string& name, int min, int max);
  Result<void> submit(TaskSpec task);
  Result<void> submit(ServiceSpec service);

  // Refused events are returned, applied ones are decided upon.
  Result<void> event(Event event);
  void pass(Micros time);  // timers fire on the way
  // As pass(), and what runs saves a checkpoint every five minutes, as its contract says.
  void work(Micros time);

  // What a backend would report of the task's current allocation.
  void started(const std::string& task);
  void healthy(const std::string& task);
  void checkpoint(const std::string& task);
  void exited(const std::string& task, int code, int signal = 0);

  [[nodiscard]] const TaskState& task(const std::string& name) const;
  // "running n0:0,1", "waiting whole_devices", "finished"
  [[nodiscard]] std::string where(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> decisions_of_last_event() const;
  [[nodiscard]] bool decided(std::string_view decision) const;  // in the last event, by name

  PoolState state;
  Time now{hours(24 * 100).value};
  StepResult last;

 private:
  ReportStamp next_stamp(const std::string& task) const;
};

}  // namespace neap::testing
