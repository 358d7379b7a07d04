// D8: placement learns beside the loop, and one lesson at a time.
#include "daemon/placement_learner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/engine.h"
#include "core/testing/script.h"
#include "daemon/loop.h"
#include "daemon/recovery.h"

namespace neap::daemon {
namespace {

using neap::testing::Script;

// Where lessons arrive. Shut, it holds back the thread that brings one.
class Inbox {
 public:
  void put(Event event) {
    std::unique_lock lock(mutex_);
    ++brought_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    events_.push_back(std::get<PlacementLearned>(std::move(event)));
    changed_.notify_all();
  }
  void shut() {
    const std::scoped_lock lock(mutex_);
    open_ = false;
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] bool wait_brought(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return brought_ >= count; });
  }
  [[nodiscard]] std::vector<PlacementLearned> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(1), [&] { return events_.size() >= count; });
    return events_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int brought_ = 0;
  bool open_ = true;
  std::vector<PlacementLearned> events_;
};

class Learner : public ::testing::Test {
 protected:
  Learner() { script_.configure(); }

  void nodes() {
    for (const char* name : {"n0", "n1", "n2"}) script_.node(name, "d0", 4);
  }
  void ask(std::int64_t times) {
    Request request;
    for (std::int64_t i = 0; i < times; ++i) {
      request.share = MilliGpu(i % 2 == 0 ? 500 : 1'000);
      note_demand(state().demand, request);
    }
  }
  void start() {
    learner_ = std::make_unique<PlacementLearner>([this](Event e) { inbox_.put(std::move(e)); });
  }
  // Each with one task more, for long enough that a lesson too many would have begun.
  void note_often() {
    for (int i = 0; i < 20; ++i) {
      ask(1);
      learner_->note(state());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  // All that it ever brings: the end of the learner waits for a lesson that is running.
  std::size_t lessons_in_all() {
    inbox_.open();
    learner_.reset();
    return inbox_.wait_for(0).size();
  }
  [[nodiscard]] PoolState& state() { return script_.state; }

  Script script_;
  Inbox inbox_;
  std::unique_ptr<PlacementLearner> learner_;
};

TEST_F(Learner, D8_NothingBeforeItIsDue) {
  nodes();
  start();
  ask(demand_to_learn_from - 1);
  learner_->note(state());
  EXPECT_EQ(lessons_in_all(), 0U);
}

TEST_F(Learner, D8_TheLoopDoesNotWaitForALesson) {
  nodes();
  inbox_.shut();
  start();
  ask(demand_to_learn_from);
  learner_->note(state());  // returns, though the lesson cannot be handed over
  ASSERT_TRUE(inbox_.wait_brought(1));
  note_often();
  EXPECT_EQ(lessons_in_all(), 1U);
}

// The event is in the loop's inbox, and records that were applied before it are still noted.
TEST_F(Learner, D8_NoSecondLessonBeforeTheFirstIsApplied) {
  nodes();
  start();
  ask(demand_to_learn_from);
  learner_->note(state());
  ASSERT_EQ(inbox_.wait_for(1).size(), 1U);
  note_often();
  // Nor when the basis has changed otherwise: before a table, each doubling of the demand does it.
  state().basis = {state().basis.version + 1, state().demand.seen, state().demand.kinds, {}};
  note_often();
  EXPECT_EQ(lessons_in_all(), 1U);
}

TEST_F(Learner, D8_AnotherLessonWhenTheDemandHasDoubled) {
  nodes();
  start();
  ask(demand_to_learn_from);
  learner_->note(state());
  const auto first = inbox_.wait_for(1);
  ASSERT_EQ(first.size(), 1U);
  ASSERT_TRUE(script_.event(first[0]));
  note_often();
  ask(demand_to_learn_from);
  learner_->note(state());
  const auto both = inbox_.wait_for(2);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[1].seen, state().demand.seen);
  EXPECT_TRUE(script_.event(both[1]));
  EXPECT_EQ(lessons_in_all(), 2U);
}

// Devices may come long after the tasks that wait for them.
TEST_F(Learner, D8_NothingToLearnFromIsLookedAtAgain) {
  start();
  ask(demand_to_learn_from);
  learner_->note(state());
  nodes();
  ask(1);
  learner_->note(state());
  EXPECT_EQ(inbox_.wait_for(1).size(), 1U);
  EXPECT_EQ(lessons_in_all(), 1U);
}

// A lesson of a large pool takes many seconds. The daemon's end does not wait for it.
TEST_F(Learner, D8_EndsWhileALessonRuns) {
  for (int n = 0; n < 300; ++n) script_.node("n" + std::to_string(n), "d0", 8);
  for (int i = 0; i < 500; ++i) {
    Request request;
    request.share = MilliGpu(1 + 2 * i);
    for (int t = 0; t < 20; ++t) note_demand(state().demand, request);
  }
  start();
  learner_->note(state());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(lessons_in_all(), 0U);
}

// The whole way: tasks arrive at a loop with a journal, and what was learned is one record of it.
TEST(LearnerBesideALoop, D8_OneRecordOfTheJournal) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("neap-learner-" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "journal.db").string();
  auto journal = journal::Journal::open({.path = path}, {});
  ASSERT_TRUE(journal) << to_string(journal.error());
  std::unique_ptr<Loop> loop;
  std::optional<PlacementLearner> learner;  // ends before the loop, to which it posts
  learner.emplace([&](Event event) { loop->post(std::move(event)); });
  std::vector<std::int64_t> learned_at;
  std::promise<void> learned;
  Outlet outlet;
  outlet.carry_out = [](const Action&) {};
  outlet.acknowledge = [](const ReportStamp&) {};
  outlet.publish = [&](const PoolState& state, const Record& record) {
    learner->note(state);
    const auto* event = std::get_if<Event>(&record.body);
    if (event == nullptr || !std::holds_alternative<PlacementLearned>(*event)) return;
    learned_at.push_back(std::get<PlacementLearned>(*event).seen);
    if (learned_at.size() == 1) learned.set_value();
  };
  const Time now{hours(24 * 20'000).value};
  loop = std::make_unique<Loop>(
      PoolState(), Books(), std::move(*journal), [now] { return now; }, std::move(outlet),
      Loop::Options{});
  Script script;
  ASSERT_TRUE(loop->apply_now(PoolConfigured{script.spec}));
  ASSERT_TRUE(loop->apply_now(NodeJoined{
      {"n0", "d0", {{"u0", "A100-80G", MiB(81'920)}, {"u1", "A100-80G", MiB(81'920)}}}}));
  std::thread thread([&] { EXPECT_TRUE(loop->run()); });
  std::int64_t submitted = 0;
  const auto submit = [&](std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      loop->post(TaskSubmitted{Script::training("t" + std::to_string(submitted++))});
    }
  };
  submit(demand_to_learn_from + 200);
  // More arrives all the while, so that there are records to note when the lesson is posted.
  auto done = learned.get_future();
  while (done.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready &&
         submitted < 2 * demand_to_learn_from - 100) {
    submit(5);
  }
  EXPECT_EQ(done.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  submit(5);
  std::promise<std::int64_t> known;
  loop->query([&](const PoolState& state, const Books&) { known.set_value(state.basis.seen); });
  const std::int64_t basis_seen = known.get_future().get();
  loop->stop();
  thread.join();
  ASSERT_EQ(learned_at.size(), 1U);
  EXPECT_EQ(learned_at[0], basis_seen);
  EXPECT_GE(basis_seen, demand_to_learn_from);
  learner.reset();
  loop.reset();
  const auto replayed = recover(path, ReplayFrom::first_record);
  ASSERT_TRUE(replayed);
  EXPECT_EQ(replayed->state.basis.seen, basis_seen);
  EXPECT_FALSE(replayed->state.basis.table.empty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace neap::daemon
