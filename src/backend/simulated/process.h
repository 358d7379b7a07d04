// One allocation's processes and their supervisor, as one thing: what it is told, what it does,
// what it reports.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "backend/simulated/behaviour.h"
#include "backend/simulated/machines.h"
#include "backend/simulated/random.h"
#include "backend/simulated/reports.h"
#include "backend/simulated/timeline.h"
#include "core/model/events.h"

namespace neap::simulated {

// What outlives a process: its checkpoints, and how often it was started.
struct Record {
  std::int64_t starts = 0;
  std::int64_t durable_step = 0;
  std::int64_t executed_steps = 0;  // in all lives; more than its steps means work was replayed
  bool finished = false;
};

// What a process lives in.
struct Surroundings {
  Timeline& timeline;
  Machines& machines;
  Reports& reports;
  Random& random;
  std::map<std::string, Record>& records;  // by task name
};

class Process : public std::enable_shared_from_this<Process> {
 public:
  Process(Surroundings& surroundings, std::shared_ptr<const StartTask> order, Behaviour behaviour);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  virtual ~Process() = default;

  void start();
  virtual void ask_yield(ReleaseMode mode) = 0;
  virtual void withdraw_yield() = 0;
  virtual void ask_checkpoint() = 0;
  void stop(Time kill_at);  // SIGTERM now, SIGKILL then
  void kill();

  // Faults from outside.
  void crash(const std::string& why);       // it ends with code 1
  void hang();                              // it does and says nothing any more; SIGKILL ends it
  void lose_node(const std::string& name);  // which is down already in `machines`
  [[nodiscard]] bool is_gone() const { return gone_; }
  [[nodiscard]] const StartTask& order() const { return *kept_order_; }

 protected:
  virtual void begin() = 0;  // the process runs and was reported
  virtual void on_term() = 0;
  // Things planned before a change of plans do not happen.
  void forget_plans() { ++plans_; }
  template <class Act>
  void after(Micros wait, Act act) {
    around_.timeline.after(wait, [weak = weak_from_this(), plan = plans_, act = std::move(act)] {
      const auto self = weak.lock();
      if (self && !self->gone_ && self->plans_ == plan) act();
    });
  }
  template <class Act>
  void at(Time when, Act act) {
    after(when - now(), std::move(act));
  }
  template <class Report>
  void report(Report what) {
    if (!hung_) around_.reports.post(order_.allocation, home_, std::move(what));
  }
  void tell_memory() {
    if (behaviour_.peak_mib == 0 || hung_) return;
    around_.reports.tell(MemoryObserved{order_.allocation, MiB(behaviour_.peak_mib)});
  }
  void end(std::int32_t code, std::int32_t signal, std::string detail);
  [[nodiscard]] Time now() const { return around_.timeline.now(); }
  [[nodiscard]] bool shows(Fault fault) const;
  // Replicas of one service share a record: each is a new task to the pool.
  [[nodiscard]] Record& record();

  Surroundings& around_;
  std::shared_ptr<const StartTask> kept_order_;
  const StartTask& order_ = *kept_order_;
  Behaviour behaviour_;

 private:
  void spawned();
  void fail_start(const std::string& detail);

  std::string home_;  // the node of the supervisor
  Record* record_ = nullptr;
  std::uint64_t plans_ = 0;
  std::int64_t start_number_ = 0;
  bool hung_ = false, gone_ = false;
};

}  // namespace neap::simulated
