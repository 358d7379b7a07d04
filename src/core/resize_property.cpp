// Tasks with a range of devices (D6), in arbitrary pools under load: never more devices than they
// ask for, never fewer than their least, never one device for two; nothing is lost when they shrink
// or grow, and what they did counts for as many devices as they had. And what it is good for: the
// waits of one workload with ranges and without.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdio>
#include <map>
#include <sstream>

#include "core/model/pool_index.h"
#include "core/rules/resize.h"
#include "core/testing/any_below.h"
#include "core/testing/property_run.h"
#include "core/testing/script.h"

namespace neap::resize_property {
namespace {

using testing::any_below;
using testing::check_property;
using testing::one_in;
using testing::Script;
using testing::Verdict;

enum class Fault : std::uint8_t {
  none,
  below_the_least,  // a task is asked to go on with one device less than it can
  counts_in_full,   // what it did with few devices counts as if it had had all
  gives_its_own,    // what it keeps is claimed for another one as well
};

class RangedPool {
 public:
  explicit RangedPool(Fault fault) : fault_(fault) {
    script_.spec.preempt.protect_min = minutes(any_below(2) * 10);
    script_.spec.resize.dwell = minutes(any_below(30));
    script_.configure();
    const int nodes = 1 + any_below(3);
    for (int n = 0; n < nodes; ++n) script_.node("n" + std::to_string(n), "d", 8);
  }

  void anything() {
    switch (any_below(8)) {
      case 0:
      case 1:
        submit();
        break;
      case 2:
      case 3:
        script_.work(seconds(any_below(2'000)));
        break;
      default:
        answer_one();
        break;
    }
    plant();
    look();
  }

  // Nobody comes any more and nobody waits: those with fewer devices than they ask for grow.
  void calm() {
    std::vector<std::string> waiting;
    script_.state.tasks.for_each([&](const TaskState& task) {
      if (task.phase == Phase::waiting) waiting.push_back(task.spec.name);
    });
    for (const std::string& name : waiting) (void)script_.event(TaskCancelRequested{name, "x"});
    for (int round = 0; round < 30; ++round) {
      for (const std::string& name : holders()) {
        if (script_.task(name).phase != Phase::running) answer(name);
      }
      script_.work(minutes(3));
      look();
    }
  }

  [[nodiscard]] const std::string& fault() const { return fault_text_; }
  [[nodiscard]] int shrunk() const { return shrunk_; }
  [[nodiscard]] int grown() const { return grown_; }

  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    script_.state.tasks.for_each([&](const TaskState& task) {
      out << "\n  " << task.spec.name << " " << task.spec.tier << " of " << task.spec.request.least
          << ".." << task.spec.request.count << " " << script_.where(task.spec.name);
    });
    return out.str();
  }

 private:
  void submit() {
    TaskSpec task = Script::training("t" + std::to_string(++submitted_), 1 + any_below(8));
    if (!one_in(3)) task.request.least = 1 + any_below(task.request.count);
    if (one_in(3)) task.tier = "train_deadline_near";
    if (one_in(2)) task.work = minutes(30 + any_below(600));
    task.contract.restore = seconds(30);
    (void)script_.submit(task);
  }

  [[nodiscard]] std::vector<std::string> holders() const {
    std::vector<std::string> names;
    script_.state.tasks.for_each([&](const TaskState& task) {
      if (holds_devices(task.phase)) names.push_back(task.spec.name);
    });
    return names;
  }

  void answer_one() {
    const auto names = holders();
    if (names.empty()) return;
    answer(names[static_cast<std::size_t>(any_below(static_cast<int>(names.size())))]);
  }

  void answer(const std::string& name) {
    switch (script_.task(name).phase) {
      case Phase::starting:
        script_.started(name);
        return;
      case Phase::running:
        if (one_in(5)) script_.exited(name, 0);
        return;
      case Phase::yielding:
        leave(name);
        return;
      default:
        script_.exited(name, 75);
        return;
    }
  }

  void leave(const std::string& name) {
    script_.checkpoint(name);
    const TaskState& task = script_.task(name);
    const bool resized = task.stop_reason == StopReason::resized;
    const Micros done = task.done, lost = task.lost;
    const std::size_t had = task.slots.size();
    const std::int64_t ran = (task.captured - task.started_at).value;
    const std::int64_t asked =
        task.spec.request.least > 0 ? task.spec.request.count : static_cast<std::int64_t>(had);
    const Micros expected = done + Micros(ran * static_cast<std::int64_t>(had) / asked);
    script_.exited(name, 75);
    if (fault_ == Fault::counts_in_full) {
      script_.state.tasks.at(task.id).done = done + Micros(ran);
    }
    if (task.done != expected) say("what was done with fewer devices counts for more or less");
    if (task.lost != lost) say("work was lost at a boundary");
    if (!resized) return;
    if (!holds_devices(task.phase)) return say("it was to go on at once");
    shrunk_ += task.slots.size() < had ? 1 : 0;
    grown_ += task.slots.size() > had ? 1 : 0;
    if (task.slots.size() == had) say("it was resized to what it was");
  }

  void plant() {
    PoolState& state = script_.state;
    if (fault_ != Fault::below_the_least && fault_ != Fault::gives_its_own) return;
    TaskId wide, waits;
    state.tasks.for_each([&](const TaskState& task) {
      const bool waiting = task.phase == Phase::waiting && task.shape.valid();
      if (waiting && !state.plans.contains(task.id)) waits = task.id;
      if (task.phase != Phase::running || task.spec.request.least < 2) return;
      if (!state.plans.contains(task.id)) wide = task.id;
    });
    if (!wide.valid() || state.index->plans_of_victim.contains(wide)) return;
    const TaskState& task = state.tasks.at(wide);
    std::vector<Slot> kept = task.slots;
    kept.resize(static_cast<std::size_t>(task.spec.request.least) - 1);
    const Time by = script_.now + minutes(10);
    if (fault_ == Fault::gives_its_own && waits.valid()) {
      apply(state, script_.now,
            Decision(PreemptionPlanned{
                waits, {task.slots.front()}, {{wide, ReleaseMode::boundary, by, 0}}, by, 0}));
    }
    apply(state, script_.now, Decision(MovePlanned{wide, kept, TaskId::none(), by}));
    apply(state, script_.now,
          Decision(
              YieldAsked{wide, task.allocation, ReleaseMode::boundary, by, StopReason::resized}));
  }

  static bool is_a_count(const Request& request, std::size_t devices) {
    const auto fewer = fewer_devices(request);
    const auto n = static_cast<std::int32_t>(devices);
    return n == request.count || std::find(fewer.begin(), fewer.end(), n) != fewer.end();
  }

  void look() {
    const PoolState& state = script_.state;
    std::map<DeviceId, int> held, claimed;
    state.tasks.for_each([&](const TaskState& task) {
      if (!holds_devices(task.phase)) return;
      if (!is_a_count(task.spec.request, task.slots.size())) say("not a number that it runs with");
      for (const Slot& slot : task.slots) ++held[slot.device];
    });
    for (const auto& [id, plan] : state.plans) {
      if (!is_a_count(state.tasks.at(id).spec.request, plan.slots.size())) {
        say("a plan for a number that it does not run with");
      }
      for (const Slot& slot : plan.slots) ++claimed[slot.device];
    }
    for (const auto& [device, count] : held) {
      if (count > 1) say("one device for two");
    }
    for (const auto& [device, count] : claimed) {
      if (count > 1) say("one device is claimed for two");
    }
    if (!index_is_current(state)) say("the index is not current");
  }

  void say(const std::string& text) {
    if (fault_text_.empty()) fault_text_ = text;
  }

  Fault fault_;
  Script script_;
  int submitted_ = 0, shrunk_ = 0, grown_ = 0;
  std::string fault_text_;
};

struct Outcome : Verdict {
  int shrunk = 0, grown = 0;
};

Outcome run(Fault fault, int cases, rc::detail::TestParams params) {
  Outcome outcome;
  static_cast<Verdict&>(outcome) = check_property(cases, params, [&] {
    RangedPool pool(fault);
    for (int i = 0; i < 80; ++i) pool.anything();
    pool.calm();
    outcome.shrunk += pool.shrunk();
    outcome.grown += pool.grown();
    RC_LOG() << pool.text() << "\n" << pool.fault() << "\n";
    RC_ASSERT(pool.fault().empty());
  });
  return outcome;
}

TEST(ResizeProperty, D6_WithinTheRangeAndNothingIsLost) {
  const Outcome outcome = run(Fault::none, 200, rc::detail::configuration().testParams);
  EXPECT_TRUE(outcome.holds) << outcome.message;
  EXPECT_GT(outcome.shrunk, 15);
  EXPECT_GT(outcome.grown, 15);
  std::printf("resized: shrunk %d times, grown %d times\n", outcome.shrunk, outcome.grown);
}

TEST(ResizeProperty, D6_SeesPlantedFaults) {
  rc::detail::TestParams params;
  params.seed = 1;
  params.disableShrinking = true;
  for (const Fault fault : {Fault::below_the_least, Fault::counts_in_full, Fault::gives_its_own}) {
    EXPECT_FALSE(run(fault, 200, params).holds) << static_cast<int>(fault);
  }
}

// ---- the effect ------------------------------------------------------------------------------

// Two nodes of eight devices, minute by minute. Long tasks of eight devices come now and then, and
// short ones of one to four all the time, some of a heavier tier.
class Workload {
 public:
  enum class Ranges : std::uint8_t { none, declared };
  explicit Workload(Ranges ranges) : ranges_(ranges) {
    script_.configure();
    script_.node("n0", "d0", 8);
    script_.node("n1", "d1", 8);
  }

  void run() {
    for (minute_ = 0; minute_ < 60 * 24 * 14; ++minute_) {
      arrive();
      std::vector<std::string> live;
      script_.state.tasks.for_each([&](const TaskState& task) {
        if (holds_devices(task.phase)) live.push_back(task.spec.name);
      });
      for (const std::string& name : live) go_on(name);
      script_.pass(minutes(1));
    }
  }

  struct Figures {
    std::int64_t tasks = 0, mean_wait_s = 0, mean_end_s = 0, preemptions = 0, resizes = 0, open = 0;
  };
  [[nodiscard]] Figures figures() const {
    Figures out;
    Micros wait{0}, end{0};
    script_.state.tasks.for_each([&](const TaskState& task) {
      ++out.tasks;
      out.preemptions += task.preemptions;
      out.resizes += task.resizes;
      out.open += has_ended(task.phase) ? 0 : 1;
      wait += (task.first_started == Time(0) ? script_.now : task.first_started) - task.submitted;
      end += (has_ended(task.phase) ? task.phase_since : script_.now) - task.submitted;
    });
    out.mean_wait_s = wait.value / 1'000'000 / out.tasks;
    out.mean_end_s = end.value / 1'000'000 / out.tasks;
    return out;
  }

 private:
  int below(int end) {
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<int>((random_ >> 33) % static_cast<std::uint64_t>(end));
  }

  void arrive() {
    if (minute_ > 60 * 24 * 10) return;  // then all that is there ends
    if (below(60 * 12) == 0) {
      TaskSpec task = Script::training("wide" + std::to_string(minute_), 8);
      if (ranges_ == Ranges::declared) task.request.least = 2;
      task.work = minutes(240 + below(600));
      (void)script_.submit(task);
    }
    if (below(45) == 0) {
      TaskSpec task = Script::training("short" + std::to_string(minute_), 1 + below(4));
      task.work = minutes(30 + below(150));
      if (below(4) == 0) task.tier = "train_deadline_near";
      (void)script_.submit(task);
    }
  }

  void go_on(const std::string& name) {
    const TaskState& task = script_.task(name);
    const Micros since = script_.now - std::max(task.placed_at, task.started_at);
    const bool boundary = since.value > 0 && since.value % minutes(10).value == 0;
    switch (task.phase) {
      case Phase::starting:
        if (since >= minutes(task.checkpoint_path.empty() ? 1 : 3)) script_.started(name);
        return;
      case Phase::running:
        if (!remaining_work(task, script_.now)) {
          script_.exited(name, 0);
        } else if (boundary) {
          script_.checkpoint(name);
        }
        return;
      case Phase::yielding:
        if (!boundary && task.yield_mode == ReleaseMode::boundary) return;
        script_.checkpoint(name);
        script_.exited(name, 75);
        return;
      default:
        script_.exited(name, 0, 15);
        return;
    }
  }

  Ranges ranges_;
  Script script_;
  int minute_ = 0;
  std::uint64_t random_ = 20'261'130;
};

TEST(ResizeEffect, D6_WaitsAreShorterWithRanges) {
  Workload without(Workload::Ranges::none), with(Workload::Ranges::declared);
  without.run();
  with.run();
  const auto a = without.figures(), b = with.figures();
  std::printf(
      "ranges: tasks %ld, mean wait %ld s without, %ld s with; mean time to the end %ld s "
      "and %ld s; preemptions %ld and %ld, resizes %ld\n",
      static_cast<long>(a.tasks), static_cast<long>(a.mean_wait_s),
      static_cast<long>(b.mean_wait_s), static_cast<long>(a.mean_end_s),
      static_cast<long>(b.mean_end_s), static_cast<long>(a.preemptions),
      static_cast<long>(b.preemptions), static_cast<long>(b.resizes));
  EXPECT_EQ(a.tasks, b.tasks);
  EXPECT_EQ(a.open, 0);
  EXPECT_EQ(b.open, 0);
  EXPECT_LT(b.mean_wait_s, a.mean_wait_s);
  EXPECT_LE(b.preemptions, a.preemptions);
  EXPECT_GT(b.resizes, 0);
}

}  // namespace
}  // namespace neap::resize_property
