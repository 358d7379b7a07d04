#include "daemon/engine_release.h"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "engine/testing/scripted_engine.h"

namespace neap::daemon {
namespace {

using engine::ScriptedEngine;

class Stopped {
 public:
  EngineRelease::Stop stop() {
    return [this](const StopTask& action) {
      const std::scoped_lock lock(mutex_);
      all_.push_back(action.allocation);
      changed_.notify_all();
    };
  }
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return all_.size() >= count; });
  }
  std::size_t count() {
    const std::scoped_lock lock(mutex_);
    return all_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<AllocationId> all_;
};

StopTask stop_of(std::uint64_t id) {
  StopTask action{};
  action.allocation = AllocationId(id);
  return action;
}

TEST(EngineRelease, ShrinksAtOnceThenOffloadsDropsAndSleepsBeforeTheStopC3) {
  ScriptedEngine server;
  server.answers("POST /kv_cache", 200, R"({"device_bytes": 1})");
  server.answers("POST /sleep?level=2", 200, R"({"device_bytes": 0})");
  Stopped stopped;
  EngineRelease release(stopped.stop());
  const LeavingReplica replica{AllocationId(1), engine::Kind::neap, server.port()};
  release.drains(replica);
  release.stop_after(replica, stop_of(1));
  ASSERT_TRUE(stopped.wait_for(1));
  EXPECT_EQ(server.asked(),
            (std::vector<std::string>{R"(POST /kv_cache {"action": "shrink", "slots": 1})",
                                      R"(POST /kv_cache {"action": "offload", "slots": 0})",
                                      R"(POST /kv_cache {"action": "drop", "slots": 0})",
                                      "POST /sleep?level=2"}));
}

TEST(EngineRelease, StopsWithoutAnEngineAtOnceAndWithASilentOneSoonB8) {
  Stopped stopped;
  EngineRelease release(stopped.stop());
  release.stop_after({AllocationId(1), engine::Kind::none, 1}, stop_of(1));
  EXPECT_EQ(stopped.count(), 1U);
  ScriptedEngine silent;
  silent.hangs("POST /kv_cache");
  const auto begin = std::chrono::steady_clock::now();
  release.stop_after({AllocationId(2), engine::Kind::neap, silent.port()}, stop_of(2));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500));
  ASSERT_TRUE(stopped.wait_for(2));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
}

TEST(EngineRelease, LosesNoStopAtItsEndOrWhenItIsFull) {
  constexpr std::uint64_t count = EngineRelease::waiting_max + 50;
  ScriptedEngine silent;
  silent.hangs("POST /kv_cache");
  Stopped stopped;
  {
    EngineRelease release(stopped.stop());
    for (std::uint64_t id = 0; id < count; ++id) {
      release.stop_after({AllocationId(id), engine::Kind::neap, silent.port()}, stop_of(id));
    }
    EXPECT_GE(stopped.count(), 49U);
    EXPECT_LT(stopped.count(), count);
  }
  EXPECT_EQ(stopped.count(), count);
}

}  // namespace
}  // namespace neap::daemon
