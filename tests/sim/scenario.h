// Building blocks of the named scenarios: pools, tasks and services that behave well, and words
// for what to wait for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/site.h"
#include "tests/sim/work.h"

namespace neap::sim {

// `devices` A100-80G in nodes of `per_node`, taken in turn from `domains` fault domains.
[[nodiscard]] std::vector<NodeSpec> nodes_of(std::int32_t devices, std::int32_t per_node,
                                             std::int32_t domains = 1);
[[nodiscard]] PoolSpec pool_with(std::int32_t guard, std::int32_t buffer);

// A batch job of whole devices with the SDK's contract, checkpointing every 10 minutes.
struct Job {
  std::string name;
  Micros length = hours(2);
  std::int32_t devices = 1;
  std::string tier = "train_normal";
  simulated::Behaviour behaviour;  // steps are set from the length
};
[[nodiscard]] TaskSpec task_of(Job job);
[[nodiscard]] TaskSpec share_of(TaskSpec task, MiB memory, MilliGpu share);
[[nodiscard]] ServiceSpec service_of(const std::string& name, std::int32_t least,
                                     std::int32_t most);
[[nodiscard]] Load constant(std::int64_t in_use);

// One site that is quiet but for what the test does; a broken invariant fails the test.
class Stage {
 public:
  Stage(const PoolSpec& pool, const std::vector<NodeSpec>& nodes, Site::Options options = {});
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  Site* operator->() { return &site_; }
  [[nodiscard]] const PoolState& state() const { return site_.state(); }
  void run_for(Micros span) { site_.run_for(span); }
  // False: `reached` did not hold within `limit`.
  [[nodiscard]] bool wait_for(const std::function<bool()>& reached, Micros limit = hours(1));

  [[nodiscard]] const TaskState& task(const std::string& name) const;
  [[nodiscard]] Phase phase(const std::string& name) const { return task(name).phase; }
  [[nodiscard]] bool runs(const std::string& name) const { return phase(name) == Phase::running; }
  [[nodiscard]] std::string reason(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> roles_of(const std::string& name) const;
  [[nodiscard]] std::int64_t ready(const std::string& service) const;
  [[nodiscard]] std::int64_t replicas(const std::string& service) const;  // that stay
  // Tasks that hold devices and whose names begin so.
  [[nodiscard]] std::int64_t holding(const std::string& prefix) const;
  [[nodiscard]] bool has_condition(const std::string& name) const;
  [[nodiscard]] std::int64_t executed(const std::string& task) const;
  [[nodiscard]] std::int64_t used_milli() const;  // of all devices, as the engine counts
  [[nodiscard]] std::int64_t occupied_milli();    // and as they are

 private:
  Site site_;
};

}  // namespace neap::sim
