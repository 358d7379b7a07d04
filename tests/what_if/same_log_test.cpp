// F9: `neap simulate` decides as the daemon does. What its run was told from outside is told to
// the daemon's own loop at the same moments, with a journal, its sequencer and a simulated backend
// of its own; timers and reports arise anew. Both logs are the same, byte by byte.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/simulated/machines.h"
#include "backend/simulated/simulated_backend.h"
#include "backend/simulated/timeline.h"
#include "core/engine.h"
#include "core/model/codec.h"
#include "core/model/pool_index.h"
#include "daemon/loop.h"
#include "daemon/recovery.h"
#include "simulate/run/run.h"
#include "simulate/run/testing/scratch.h"

namespace neap {
namespace {

using whatif::testing::job_line;
using whatif::testing::rate_line;
using whatif::testing::Scratch;

struct Entry {
  Time at;
  std::string name;
  std::string bytes;
  bool operator==(const Entry&) const = default;
};

template <class T>
Entry entry_of(Time at, const T& what) {
  return {at, std::string(name_of(what)), encode(what)};
}

// Task, moment and devices of each start.
std::string start_of(Time at, const PoolState& state, const TaskPlaced& placed) {
  std::string text = std::to_string(at.us) + " " + state.tasks.at(placed.task).spec.name;
  for (const Slot& slot : placed.slots) {
    text += " " + std::to_string(slot.device.value) + ":" + std::to_string(slot.share.value);
  }
  return text;
}

struct Log {
  std::vector<Entry> entries;
  std::vector<std::string> starts;
  std::vector<std::pair<Time, Event>> from_outside;
  std::uint64_t state_hash = 0;

  [[nodiscard]] std::int64_t count(std::string_view name) const {
    return std::count_if(entries.begin(), entries.end(),
                         [&](const Entry& entry) { return entry.name == name; });
  }
};

bool is_from_outside(const Event& event) {
  return stamp_of(event) == nullptr && !std::holds_alternative<TimerFired>(event);
}

Log simulated_log(const whatif::RunSpec& spec) {
  Log log;
  whatif::Hooks hooks;
  PoolState names;  // follows, to tell tasks by their names
  hooks.record = [&](Time at, const Event& event, const StepResult& result) {
    StepResult ignored;
    step(names, at, event, ignored);
    log.entries.push_back(entry_of(at, event));
    if (is_from_outside(event)) log.from_outside.emplace_back(at, event);
    for (const Decision& decision : result.decisions) {
      log.entries.push_back(entry_of(at, decision));
      const auto* placed = std::get_if<TaskPlaced>(&decision);
      if (placed != nullptr) log.starts.push_back(start_of(at, names, *placed));
    }
  };
  log.state_hash = whatif::testing::outcome_of(spec, hooks).state_hash;
  return log;
}

// The daemon's loop on a thread of its own, and everything around it in virtual time on this one.
class Rig {
 public:
  Rig(const Log& told, const simulated::Network& network)
      : told_(told),
        path_(scratch_.path("journal.db")),
        backend_(timeline_, machines_, network, simulated::Random(1)) {}

  Log run() {
    open();
    std::thread thread([this] { EXPECT_TRUE(loop_->run()); });
    follow();
    log_.state_hash = ask<std::uint64_t>([](const PoolState& state) { return hash_of(state); });
    loop_->stop();
    thread.join();
    loop_.reset();
    // What is in the journal leads to the same state.
    const auto replayed = daemon::recover(path_, daemon::ReplayFrom::first_record);
    EXPECT_TRUE(replayed && hash_of(replayed->state) == log_.state_hash);
    return std::move(log_);
  }

 private:
  void open() {
    auto journal = journal::Journal::open({.path = path_, .gather = Micros(0)}, {});
    ASSERT_TRUE(journal) << to_string(journal.error());
    daemon::Outlet outlet;
    outlet.carry_out = [this](const Action& action) {
      const std::scoped_lock lock(mutex_);
      actions_.push_back(action);
    };
    outlet.acknowledge = [this](const ReportStamp& stamp) {
      const std::scoped_lock lock(mutex_);
      stamps_.push_back(stamp);
    };
    outlet.publish = [this](const PoolState& state, const daemon::Record& record) {
      const std::scoped_lock lock(mutex_);
      log_.entries.push_back(
          std::visit([&](const auto& body) { return entry_of(record.time, body); }, record.body));
      const auto* decision = std::get_if<Decision>(&record.body);
      const auto* placed = decision == nullptr ? nullptr : std::get_if<TaskPlaced>(decision);
      if (placed != nullptr) log_.starts.push_back(start_of(record.time, state, *placed));
    };
    clock_ = told_.from_outside.front().first.us;
    loop_ = std::make_unique<daemon::Loop>(
        PoolState(), daemon::Books(), std::move(*journal), [this] { return Time(clock_.load()); },
        std::move(outlet), daemon::Loop::Options{});
    backend_.connect([this](const Event& report) { tell(report); });
  }

  // As the driver: at one moment what is due in the pool, then reports, then what comes.
  void follow() {
    const Time end = told_.entries.back().at;
    std::size_t next = 0;
    while (true) {
      const Time timer = fire_timers();
      const bool more = next < told_.from_outside.size();
      const Time outside = more ? told_.from_outside[next].first : Time::never();
      const Time moment = std::min({timer, timeline_.next(), outside});
      if (moment == Time::never() || moment > end) return;
      clock_ = moment.us;
      if (timer == moment) {
        timeline_.advance_to(moment);
      } else if (timeline_.next() == moment) {
        timeline_.run_next();
      } else {
        timeline_.run_until(moment);
        const Event& event = told_.from_outside[next++].second;
        if (const auto* joined = std::get_if<NodeJoined>(&event)) machines_.add(joined->spec);
        tell(event);
      }
    }
  }

  // All that are due; returns the next one.
  Time fire_timers() {
    Time timer;
    do {
      turn();
      timer = ask<Time>([](const PoolState& state) { return next_timer(state); });
    } while (timer.us <= clock_.load());
    turn();  // carries out what the last one set off
    return timer;
  }

  // A turn of the loop in which nothing is new, but a timer may be due. What was applied before it
  // is durable then and was carried out.
  void turn() { tell(TaskCancelRequested{"nobody-is-called-so", "a test"}); }

  // Returns once the event is durable and what it set off was carried out.
  void tell(const Event& event) {
    std::promise<void> done;
    loop_->submit(event, [&](const Result<daemon::Loop::Outcome>&) { done.set_value(); });
    done.get_future().get();
    settle();
  }

  void settle() {
    std::vector<Action> actions;
    std::vector<ReportStamp> stamps;
    {
      const std::scoped_lock lock(mutex_);
      actions.swap(actions_);
      stamps.swap(stamps_);
    }
    for (const Action& action : actions) backend_.carry_out(action);
    for (const ReportStamp& stamp : stamps) backend_.acknowledge(stamp);
  }

  template <class T>
  T ask(T (*question)(const PoolState&)) {
    std::promise<T> answer;
    loop_->query(
        [&](const PoolState& state, const daemon::Books&) { answer.set_value(question(state)); });
    return answer.get_future().get();
  }

  const Log& told_;
  Scratch scratch_;
  std::string path_;
  simulated::Timeline timeline_;
  simulated::Machines machines_;
  simulated::SimulatedBackend backend_;
  std::unique_ptr<daemon::Loop> loop_;
  std::atomic<std::int64_t> clock_{0};
  std::mutex mutex_;
  std::vector<Action> actions_;
  std::vector<ReportStamp> stamps_;
  Log log_;
};

constexpr simulated::Network perfect{
    .least = Micros(0), .most = Micros(0), .again_after = Micros(0)};

// Where two logs part, in words; empty when they are the same.
std::string difference(const Log& a, const Log& b) {
  const auto word = [](const Log& log, std::size_t i) {
    if (i >= log.entries.size()) return std::string("nothing");
    return log.entries[i].name + " at " + std::to_string(log.entries[i].at.us);
  };
  for (std::size_t i = 0; i < std::max(a.entries.size(), b.entries.size()); ++i) {
    if (i < a.entries.size() && i < b.entries.size() && a.entries[i] == b.entries[i]) continue;
    return "record " + std::to_string(i + 1) + " is " + word(a, i) + " in one, " + word(b, i) +
           " in the other";
  }
  return a.state_hash == b.state_hash ? "" : "the states";
}

// Two nodes of four, where gangs, shares, deadlines and a service with its tide meet.
whatif::RunSpec busy(const Scratch& scratch) {
  std::string lines = rate_line(0, "chat", 5);
  int at = 0;
  for (int i = 0; i < 40; ++i) {
    at += 1 + i * 97 % 300;
    if (i == 15) lines += rate_line(at, "chat", 45);
    if (i == 30) lines += rate_line(at, "chat", 1);
    const bool shares = i % 4 == 1;
    std::string more = shares ? ",\"gpu_milli\":300" : "";
    if (i % 7 == 3) more += ",\"deadline_us\":9000000000";
    if (i % 5 == 2) more += ",\"group\":\"red\"";
    const int gpus = shares ? 1 : 1 + i % 3;
    lines += job_line(at, "t" + std::to_string(i), i == 20 ? 6 : gpus, 600 + i * 311 % 7'000, more);
  }
  whatif::RunSpec spec = whatif::testing::spec_of("2x4xA100-80G", scratch.workload(lines),
                                                  {"preempt.fixed_cost=1min"});
  spec.workload.contract.on_demand = true;
  spec.workload.replica.max = 6;
  return spec;
}

TEST(SameLog, F9_SimulateDecidesAsTheDaemonsLoop) {
  const Scratch scratch;
  const Log simulated = simulated_log(busy(scratch));
  // A workload in which nothing happens proves nothing.
  EXPECT_GE(simulated.count("TaskPlaced"), 45);
  EXPECT_GE(simulated.count("PreemptionPlanned") + simulated.count("YieldAsked"), 1);
  EXPECT_GE(simulated.count("ReplicaAdded"), 3);
  EXPECT_GE(simulated.count("CheckpointDurable"), 40);
  EXPECT_GE(simulated.count("TimerFired"), 40);
  const Log looped = Rig(simulated, perfect).run();
  EXPECT_EQ(looped.starts, simulated.starts);
  EXPECT_EQ(difference(simulated, looped), "");
}

// The comparison finds a daemon that is told everything a millisecond late.
TEST(SameLog, F9_AnotherOrderOfThingsIsSeen) {
  const Scratch scratch;
  const Log simulated = simulated_log(busy(scratch));
  const simulated::Network slow{
      .least = milliseconds(1), .most = milliseconds(1), .again_after = Micros(0)};
  const Log looped = Rig(simulated, slow).run();
  EXPECT_NE(looped.starts, simulated.starts);
  EXPECT_NE(difference(simulated, looped), "");
}

}  // namespace
}  // namespace neap
