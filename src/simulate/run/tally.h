// Counts while a run goes by: jobs with their waits, devices over time, services and their load.
// Work per record is proportional to the devices it touches. A job that has ended leaves its times
// and its part of the sums behind, no more: a year of jobs fits in memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "core/model/events.h"
#include "core/model/state.h"
#include "simulate/run/outcome.h"
#include "simulate/run/series.h"

namespace neap::whatif {

class Tally {
 public:
  Tally(const PoolSpec& pool, const std::vector<NodeSpec>& nodes, Time begin);

  // Around each step, in this order.
  void before(const PoolState& state, Time now, const Event& event);
  void after(const PoolState& state, Time now, const Event& event, const StepResult& result);
  // A job that was not even taken.
  void refused(const PoolState& state, const TaskSpec& spec, Time now, const Error& error);
  // Its deadline, for the next job that is submitted.
  void expect_deadline(std::optional<Time> deadline) { deadline_ = deadline; }
  void load_changed(const PoolState& state, Time now, ServiceId id, std::int64_t in_use_milli);

  // The name of the job that the last event ended for good, if it did.
  [[nodiscard]] const std::string* ended_job(const PoolState& state) const;
  [[nodiscard]] std::int64_t arrived() const { return arrived_; }
  [[nodiscard]] std::int64_t ended() const { return ended_; }
  [[nodiscard]] std::int64_t running() const { return running_; }  // jobs that hold devices
  [[nodiscard]] std::int64_t waiting() const;
  // The last moment at which a job came, started or ended.
  [[nodiscard]] Time last_change() const { return last_change_; }

  // Fills in all but what the ledger knows. `end` is not before the last record.
  void finish(const PoolState& state, Time end, Outcome& into);

 private:
  enum class Fate : std::uint8_t { open, finished, failed, refused };
  struct Job {
    Time submitted;
    Time started = Time::never();  // devices were given to it
    Time holding_since = Time::never();
    std::optional<Time> deadline;
    std::int64_t waited_us = 0, lost_us = 0, held = 0;  // held: milli-GPU·µs
    std::int64_t milli = 0;                             // asked for
    std::int32_t preemptions = 0;
    std::uint32_t tier = 0, team = 0;
  };
  // What is summed up of the jobs of one tier and one team.
  struct Group {
    JobFigures figures;
    Series::Wide waiting = 0, held = 0, lost = 0;
    std::vector<std::int64_t> waits, completions;  // until the start, of a finished job
    void add(const Group& other);
    void sum_up(JobFigures& into);
  };
  struct Service {
    std::string name;
    std::int64_t load_milli = 0, capacity_milli = 0, replicas = 0, most_replicas = 0;
    Time mark;
    Series::Wide load = 0, served = 0, held = 0;
    std::int64_t short_us = 0;
  };

  Job* job_of(TaskId task);
  void submitted(const PoolState& state, Time now, const TaskSpec& spec);
  void occupy(const PoolState& state, Time now, const std::vector<Slot>& slots, TierId tier,
              std::int64_t sign);
  void change_queue(Time now, const Job& job, std::int64_t sign);
  void started(const PoolState& state, Time now, const TaskPlaced& placed);
  void allocation_ended(const PoolState& state, Time now);
  void end(const Job& job, Fate fate, Time now);
  void count(const Job& job, Fate fate, Time ended);
  void settle(Service& service, Time now);
  Service& service_at(const PoolState& state, ServiceId id, Time now);
  void refresh_capacity(const PoolState& state, ServiceId id, Time now);
  void add_reason(const std::string& reason, const std::string& detail, const std::string& name);
  std::uint32_t team_of(const std::string& name);
  void look_at_open_jobs(const PoolState& state, Time end);
  void fill_jobs(Outcome& into);
  void fill_curves(Time end, Outcome& into);

  struct NodeUse {
    std::int64_t total = 0, used = 0;
  };
  [[nodiscard]] std::size_t fragmented_channel() const { return tier_names_.size(); }
  [[nodiscard]] std::size_t jobs_channel() const { return tier_names_.size() + 1; }
  [[nodiscard]] std::size_t milli_channel() const { return tier_names_.size() + 2; }

  std::vector<std::string> tier_names_;
  std::vector<std::string> team_names_;
  std::unordered_map<std::string, std::uint32_t> team_ids_;
  std::unordered_map<TaskId, Job> open_jobs_;  // order of no loop over it matters
  std::map<std::pair<std::uint32_t, std::uint32_t>, Group> groups_;  // by tier and team
  std::vector<NodeUse> nodes_;
  std::vector<Service> services_;
  std::optional<Time> deadline_;
  TaskId subject_;  // of the event between before() and after()
  Series series_;
  std::map<std::string, NeverStarted> reasons_;
  std::int64_t arrived_ = 0, running_ = 0, ended_ = 0, events_ = 0, decisions_ = 0;
  Series::Wide held_while_arriving_ = 0;
  Time last_change_, last_arrival_;  // of a job
};

}  // namespace neap::whatif
