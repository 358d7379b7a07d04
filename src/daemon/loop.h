// The daemon's main loop: one thread that owns the pool's state.
//
//   wait for the inbox or the next timer -> read the clock once -> apply and decide ->
//   append events and decisions in one batch -> (durable) -> answer callers, hand actions to the
//   backend, acknowledge reports, publish
//
// Whatever depends on durability waits in the outbox until the journal says so; the loop goes on
// meanwhile, which is how one fsync serves many events.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/model/events.h"
#include "core/model/state.h"
#include "core/sequencer.h"
#include "daemon/books.h"
#include "journal/journal.h"

namespace neap::daemon {

// What one turn produced, once it is durable. Called on the loop's thread.
struct Outlet {
  // Each record of an event before the actions of that event: who gets requests from now on gets
  // them before another one is stopped. May be empty.
  std::function<void(const PoolState&, const Record&)> route;
  std::function<void(const Action&)> carry_out;
  std::function<void(const ReportStamp&)> acknowledge;
  // A record as it was applied, with the state after its whole event.
  std::function<void(const PoolState&, const Record&)> publish;
};

class Loop {
 public:
  using Clock = std::function<Time()>;
  // Runs on the loop's thread with the outcome of a submitted event: the sequence of its record
  // and the decisions that followed, or the refusal. After durability.
  struct Outcome {
    std::uint64_t sequence = 0;
    std::vector<Decision> decisions;
  };
  using Reply = std::function<void(Result<Outcome>)>;
  using Query = std::function<void(const PoolState&, const Books&)>;

  struct Options {
    std::uint64_t snapshot_every = 100'000;  // records
    Micros seal_every = hours(1);
    Micros retention = hours(24 * 90);
  };

  Loop(PoolState state, Books books, journal::Journal journal, Clock clock, Outlet outlet,
       Options options);
  ~Loop();

  // From any thread.
  void post(Event event);  // a fact; refused ones are dropped with a log line
  void submit(Event event, Reply reply);
  void query(Query query);  // sees a state between two events
  void stop();

  // Returns after stop(), with everything durable, or with the journal's failure.
  Result<void> run();

  // Before run() alone: applies facts of the start, such as the configuration and the devices.
  Result<void> apply_now(Event event);
  [[nodiscard]] const PoolState& state() const { return state_; }

 private:
  struct Incoming {
    std::optional<Event> event;
    Reply reply;
    Query query;
  };
  struct Held {  // waits for `sequence` to be durable
    std::uint64_t sequence = 0;
    std::vector<Action> actions;
    std::vector<ReportStamp> stamps;
    std::vector<Record> records;
    Reply reply;
    std::optional<Result<Outcome>> outcome;
  };

  void wait_for_work();
  void take_inbox(Time now);
  void admit(Incoming incoming, Time now);
  bool apply_event(Time now, Event event, Held& held, StepResult& result);
  Result<void> append_turn();
  void release_durable();
  void keep_journal(Time now);

  PoolState state_;
  Books books_;
  journal::Journal journal_;
  Clock clock_;
  Outlet outlet_;
  Options options_;
  Sequencer sequencer_;
  journal::Batch batch_;
  std::vector<Held> turn_;
  std::deque<Held> outbox_;
  std::uint64_t last_snapshot_ = 0;
  Time last_seal_;

  std::mutex mutex_;
  std::deque<Incoming> inbox_;
  std::atomic<bool> stopping_{false};
  int wake_fd_ = -1;
};

}  // namespace neap::daemon
