// The loop against a real journal and a backend that only remembers what it was told.
#include "daemon/loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <thread>

#include "core/model/codec.h"
#include "daemon/recovery.h"

namespace neap::daemon {
namespace {

class LoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("neap-loop-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    stop();
    std::filesystem::remove_all(folder_);
  }

  [[nodiscard]] std::string path() const { return (folder_ / "journal.db").string(); }

  void start(Loop::Options options = {}) {
    auto journal = journal::Journal::open({.path = path()}, {});
    ASSERT_TRUE(journal) << to_string(journal.error());
    auto recovered = recover(path(), ReplayFrom::newest_snapshot);
    ASSERT_TRUE(recovered) << to_string(recovered.error());
    hash_at_start_ = hash_of(recovered->state);
    const bool fresh = !recovered->state.configured;
    Outlet outlet;
    outlet.route = [this](const PoolState&, const Record& r) { note(routed_, r.sequence); };
    outlet.carry_out = [this](const Action& a) {
      note(routed_before_actions_, copy(routed_).size());
      note(actions_, a);
    };
    outlet.acknowledge = [this](const ReportStamp& s) { note(acknowledged_, s.sequence); };
    outlet.publish = [this](const PoolState&, const Record& r) { note(published_, r.sequence); };
    loop_ = std::make_unique<Loop>(
        std::move(recovered->state), std::move(recovered->books), std::move(*journal),
        [this] { return clock_; }, std::move(outlet), options);
    if (fresh) configure();
    thread_ = std::thread([this] { result_ = loop_->run(); });
  }

  void configure() {
    PoolSpec spec;
    spec.tiers = {{"infer_core", 100, Purpose::inference}, {"train_normal", 40, Purpose::batch}};
    NodeJoined node{{"n0", "d0", {{"u0", "A100-80G", MiB(81920), false}}}};
    ASSERT_TRUE(loop_->apply_now(PoolConfigured{spec}));
    ASSERT_TRUE(loop_->apply_now(node));
  }

  void stop() {
    if (!thread_.joinable()) return;
    loop_->stop();
    thread_.join();
    EXPECT_TRUE(result_.has_value());
    loop_.reset();
  }

  Result<Loop::Outcome> tell(Event event) {
    std::promise<Result<Loop::Outcome>> promise;
    auto answer = promise.get_future();
    loop_->submit(std::move(event),
                  [&](Result<Loop::Outcome> outcome) { promise.set_value(std::move(outcome)); });
    return answer.get();
  }

  template <class T>
  T ask(std::function<T(const PoolState&, const Books&)> question) {
    std::promise<T> promise;
    loop_->query([&](const PoolState& state, const Books& books) {
      promise.set_value(question(state, books));
    });
    return promise.get_future().get();
  }

  std::uint64_t hash() {
    return ask<std::uint64_t>([](const PoolState& s, const Books&) { return hash_of(s); });
  }

  static Event submission(const std::string& name) {
    TaskSpec spec;
    spec.name = name;
    spec.tier = "train_normal";
    spec.contract.sdk = spec.contract.on_demand = true;
    spec.contract.interval = minutes(10);
    return TaskSubmitted{spec};
  }

  template <class T>
  void note(std::vector<T>& list, T item) {
    const std::scoped_lock lock(mutex_);
    list.push_back(std::move(item));
  }
  template <class T>
  std::vector<T> copy(const std::vector<T>& list) {
    const std::scoped_lock lock(mutex_);
    return list;
  }

  std::vector<std::uint64_t> routed_;
  std::vector<std::size_t> routed_before_actions_;
  std::filesystem::path folder_;
  Time clock_{hours(24 * 20'000).value};
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
  Result<void> result_;
  std::uint64_t hash_at_start_ = 0;
  std::mutex mutex_;
  std::vector<Action> actions_;
  std::vector<std::uint64_t> acknowledged_, published_;
};

TEST_F(LoopTest, AnswersAndActsOnceDurable) {
  start();
  const auto outcome = tell(submission("a"));
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  const auto actions = copy(actions_);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(std::get<StartTask>(actions[0]).name, "a");
  // What the answer speaks of is in the file already.
  const auto durable = recover(path(), ReplayFrom::first_record);
  ASSERT_TRUE(durable);
  EXPECT_GE(durable->state.sequence, outcome->sequence);
}

// C4: a replica that is healthy has its requests before the one that it replaces is stopped.
TEST_F(LoopTest, RoutesWhatAnEventBroughtBeforeItActs) {
  start();
  ASSERT_TRUE(tell(submission("a")));
  // The configuration and the node, the submission, its admission and its placement at least.
  EXPECT_GE(copy(routed_before_actions_).at(0), 5U);
  EXPECT_EQ(copy(routed_before_actions_).at(0), copy(routed_).size());
}

TEST_F(LoopTest, RefusedEventsChangeNothing) {
  start();
  ASSERT_TRUE(tell(submission("a")));
  const std::uint64_t before = hash();
  const auto again = tell(submission("a"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::conflict);
  EXPECT_EQ(hash(), before);
}

TEST_F(LoopTest, G3_ARestartEndsInTheSameStateAndRepeatsWhatMayBeUndone) {
  start();
  ASSERT_TRUE(tell(submission("a")));
  ASSERT_TRUE(tell(submission("b")));
  const std::uint64_t before = hash();
  stop();
  actions_.clear();
  start();
  EXPECT_EQ(hash_at_start_, before);
  ask<bool>([](const PoolState&, const Books&) { return true; });
  const auto actions = copy(actions_);
  ASSERT_EQ(actions.size(), 1U) << "the start of a was never confirmed: it is sent again";
  EXPECT_TRUE(std::holds_alternative<StartTask>(actions[0]));
}

TEST_F(LoopTest, G3_SnapshotsAndFullReplayAgree) {
  start({.snapshot_every = 20});
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(tell(submission("t" + std::to_string(i))));
  stop();
  const auto whole = recover(path(), ReplayFrom::first_record);
  const auto newest = recover(path(), ReplayFrom::newest_snapshot);
  ASSERT_TRUE(whole);
  ASSERT_TRUE(newest);
  EXPECT_GT(newest->snapshot_sequence, 0U);
  EXPECT_EQ(hash_of(whole->state), hash_of(newest->state));
  EXPECT_TRUE(encode_checkpoint(whole->state, whole->books) ==
              encode_checkpoint(newest->state, newest->books))
      << "trails or ledger differ";
}

TEST_F(LoopTest, ReportsAreAppliedOnceAndAcknowledgedAgain) {
  start();
  ASSERT_TRUE(tell(submission("a")));
  const AllocationId allocation = std::get<StartTask>(copy(actions_).at(0)).allocation;
  const Event started = TaskStarted{{allocation, 1, 1}};
  loop_->post(started);
  loop_->post(started);                                                // a duplicate
  loop_->post(StepsReported{{allocation, 1, 3}, 20, 10, seconds(9)});  // early
  loop_->post(StepsReported{{allocation, 1, 2}, 10, 10, seconds(9)});
  TaskExited exited;
  exited.stamp = {allocation, 1, 4};
  loop_->post(exited);
  ASSERT_TRUE(tell(submission("z")));
  const auto phase =
      ask<Phase>([](const PoolState& s, const Books&) { return s.tasks.at(TaskId(0)).phase; });
  EXPECT_EQ(phase, Phase::finished);
  // The exit of what has ended comes again when its acknowledgement was lost.
  const std::size_t before = copy(acknowledged_).size();
  loop_->post(exited);
  ASSERT_TRUE(tell(submission("y")));
  EXPECT_EQ(copy(acknowledged_).size(), before + 1);
}

TEST_F(LoopTest, PublishesEveryRecordInOrder) {
  start();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(tell(submission("t" + std::to_string(i))));
  stop();
  for (std::size_t i = 0; i < published_.size(); ++i) EXPECT_EQ(published_[i], i + 1);
  EXPECT_GT(published_.size(), 20U);
}

TEST_F(LoopTest, F5_TheTrailOutlivesARestart) {
  start({.snapshot_every = 1});
  ASSERT_TRUE(tell(submission("a")));
  const auto trail = [&] {
    return ask<std::size_t>(
        [](const PoolState&, const Books& books) { return books.trail_of(TaskId(0)).size(); });
  };
  const std::size_t before = trail();
  EXPECT_GE(before, 3U);
  stop();
  start();
  EXPECT_EQ(trail(), before);
}

}  // namespace
}  // namespace neap::daemon
