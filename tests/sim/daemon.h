// The daemon's loop in virtual time: puts reports in order, steps the real engine, writes, and
// only then acts and acknowledges. It can crash at every point of a write, and starts again from
// what was durable.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/simulated/random.h"
#include "backend/simulated/simulated_backend.h"
#include "backend/simulated/timeline.h"
#include "core/engine.h"
#include "core/sequencer.h"
#include "tests/sim/journal.h"

namespace neap::sim {

// Where in the life of one write the daemon can crash.
enum class CrashPoint : std::uint8_t {
  before_append,
  before_commit,
  during_commit,
  before_actions,
  between_actions,
  before_acks,
  after_acks
};
inline constexpr std::uint8_t crash_points = 7;

struct CrashPlan {
  Ppm at_each_point{0};
  // The one crash of this run: at this point of this write, counted from 0.
  std::optional<std::uint64_t> write;
  CrashPoint point{};
  Micros down_least = seconds(1), down_most = seconds(30);
};

// Bugs planted in the loop itself, which the invariants must notice.
enum class LoopBug : std::uint8_t { none, acts_before_durable, acknowledges_before_durable };

// What the loop steps: the real engine, or one with a planted bug.
using Step = std::function<void(PoolState&, Time, const Event&, StepResult&)>;

class LoopObserver {
 public:
  LoopObserver() = default;
  LoopObserver(const LoopObserver&) = delete;
  LoopObserver& operator=(const LoopObserver&) = delete;
  virtual ~LoopObserver() = default;
  virtual void stepped(const PoolState& state, Time now, const Event& event,
                       const StepResult& result) = 0;
  virtual void restarted(const PoolState& state, const SimulatedJournal& journal) = 0;
  virtual void spins(Time now) = 0;
};

class Daemon {
 public:
  Daemon(simulated::Timeline& timeline, simulated::SimulatedBackend& backend,
         simulated::Random random, CrashPlan crashes, LoopObserver& observer);

  void set_step(Step step) { step_ = std::move(step); }
  void rewrite_events(std::function<Event(Event)> rewrite) { rewrite_ = std::move(rewrite); }
  // What is told before a report, such as the metrics of a stage before the end of its task.
  using Before = std::function<std::optional<Event>(const PoolState&, const Event&)>;
  void tell_before(Before before) { before_ = std::move(before); }
  void plant(LoopBug bug) { bug_ = bug; }
  void boot();
  void crash();
  void stop_crashing() { crashes_ = CrashPlan{}; }
  [[nodiscard]] bool is_up() const { return up_; }
  [[nodiscard]] const PoolState& state() const { return state_; }  // while it is up
  [[nodiscard]] const SimulatedJournal& journal() const { return journal_; }
  [[nodiscard]] std::uint64_t writes() const { return writes_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t crashes() const { return crash_count_; }

  // Reports and facts.
  void tell(const Event& event);
  // A person's request: refused at once, or done once it is durable; after a crash, neither.
  Result<void> ask(const Event& event, std::function<void()> done);

 private:
  struct Write {
    std::size_t records = 0;  // durable once the journal has so many
    std::vector<Action> actions;
    std::vector<ReportStamp> stamps;
    std::vector<std::function<void()>> done;
  };
  [[nodiscard]] bool crashes_at(CrashPoint point);
  bool take(const Event& event, std::function<void()> done);
  void forget_ended(const Event& event, const std::vector<AllocationId>& before);
  void schedule_commit();
  void commit();
  void committed(std::size_t records);
  bool release(Write& write);
  void schedule_timer();
  [[nodiscard]] std::vector<AllocationId> holders_on(const std::string& node) const;

  simulated::Timeline& timeline_;
  simulated::SimulatedBackend& backend_;
  simulated::Random random_;
  CrashPlan crashes_;
  LoopObserver& observer_;
  Step step_;
  std::function<Event(Event)> rewrite_;
  Before before_;
  LoopBug bug_ = LoopBug::none;

  bool up_ = false;
  std::uint64_t life_ = 0;
  PoolState state_;
  Sequencer sequencer_;
  SimulatedJournal journal_;
  std::deque<Write> writing_;
  bool committing_ = false;
  Time timer_at_ = Time::never();
  std::uint64_t timer_ = 0;
  int timers_at_once_ = 0;
  std::uint64_t writes_ = 0, events_ = 0, crash_count_ = 0;
};

}  // namespace neap::sim
