#include "daemon/contention.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "daemon/contention_rows.h"

namespace neap::daemon::contention_test {
namespace {

using Phase = api::BaselineOrder::Phase;

// Two training tasks in groups of files, and a clock that is set.
struct Scene {
  std::filesystem::path root;
  Time now{seconds(1'000).value};
  std::vector<Workload> work{{api::WorkKind::task, "a", {AllocationId(1)}, Micros(0)},
                             {api::WorkKind::task, "b", {AllocationId(2)}, Micros(0)}};
  std::map<AllocationId, local::CgroupLimits> limits;
  std::vector<std::string> said;
  config::LadderSettings settings;

  Scene() {
    std::string name = testing::TempDir() + "/contention-XXXXXX";
    root = ::mkdtemp(name.data());
    put("cg/cgroup.controllers", "cpu memory io\n");
    settings.mode = config::LadderMode::recommend;
    for (const char* group : {"1", "2"}) {
      put(std::string("cg/neap/p/") + group + "/cgroup.procs", "");
      put(std::string("cg/neap/p/") + group + "/cgroup.freeze", "0");
    }
  }
  ~Scene() { std::filesystem::remove_all(root); }

  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  [[nodiscard]] std::string frozen(int group) const {
    std::ifstream file(root / "cg/neap/p" / std::to_string(group) / "cgroup.freeze");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  ContentionWatch::Ports ports() {
    ContentionWatch::Ports out;
    out.workloads = [this] { return work; };
    out.groups = [this] {
      const auto cgroups = local::detect_cgroups((root / "cg").string());
      return std::vector<local::TaskGroup>{
          {AllocationId(1), local::Cgroup::existing(cgroups, "neap/p/1")},
          {AllocationId(2), local::Cgroup::existing(cgroups, "neap/p/2")}};
    };
    out.limits_of = [this](AllocationId id) -> Result<local::CgroupLimits> { return limits[id]; };
    out.change = [this](AllocationId id, const local::CgroupLimits& to) -> Result<void> {
      limits[id] = to;
      return {};
    };
    out.speed_of = [](const std::string&, measure::Speed&) {};
    out.say = [this](const std::string& line) { said.push_back(line); };
    out.now = [this] { return now; };
    return out;
  }
  ContentionWatch watch() { return {ports(), settings, root.string()}; }
};

StepsReported steps(std::int64_t count, Micros busy) {
  StepsReported out;
  out.stamp.source = AllocationId(1);
  out.count = count;
  out.busy = busy;
  return out;
}

TEST(ContentionWatch, F2_ABaselineFreezesNeighboursAndIsKept) {
  Scene scene;
  {
    ContentionWatch watch = scene.watch();
    watch.look();
    ASSERT_TRUE(watch.order(api::WorkKind::task, "a", {Phase::alone, 20'000'000, {}, {}}));
    EXPECT_EQ(scene.frozen(1), "0");
    EXPECT_EQ(scene.frozen(2), "1");
    scene.now = scene.now + seconds(10);
    watch.note(steps(10, seconds(5)));
    ASSERT_TRUE(watch.order(api::WorkKind::task, "a", {Phase::mixed, 0, {}, {}}));
    EXPECT_EQ(scene.frozen(2), "0");
    scene.now = scene.now + seconds(10);
    watch.note(steps(10, seconds(20)));
    ASSERT_TRUE(watch.order(api::WorkKind::task, "a", {Phase::store, 0, {}, {}}));
  }
  const ContentionWatch later = scene.watch();  // another daemon
  api::BaselineReport report;
  ASSERT_TRUE(later.baseline(api::WorkKind::task, "a", report));
  EXPECT_EQ(report.alone.step_us, 500'000);
  EXPECT_EQ(report.mixed.step_us, 2'000'000);
  EXPECT_EQ(report.frozen, std::vector<std::string>{"b"});
  EXPECT_EQ(later.baseline(api::WorkKind::task, "b", report).error().code, ErrorCode::not_found);
}

TEST(ContentionWatch, F2_NobodyStaysFrozen) {
  Scene scene;
  ContentionWatch watch = scene.watch();
  watch.look();
  const api::BaselineOrder alone{Phase::alone, 2'000'000, {}, {}};
  ASSERT_TRUE(watch.order(api::WorkKind::task, "a", alone));
  EXPECT_EQ(watch.order(api::WorkKind::task, "b", alone).error().code, ErrorCode::conflict);
  EXPECT_EQ(watch.order(api::WorkKind::task, "a", {Phase::store, 0, {}, {}}).error().code,
            ErrorCode::conflict);
  scene.now = scene.now + seconds(3);
  watch.look();
  EXPECT_EQ(scene.frozen(2), "0");
  EXPECT_FALSE(scene.said.empty());
  ASSERT_TRUE(watch.order(api::WorkKind::task, "a", alone));
  EXPECT_EQ(scene.frozen(2), "1");
  watch.stop();
  EXPECT_EQ(scene.frozen(2), "0");
  EXPECT_FALSE(std::filesystem::exists(scene.root / "frozen"));
}

TEST(ContentionWatch, F2_WhomAKilledDaemonFrozeRunsAgain) {
  for (const auto mode : {config::LadderMode::recommend, config::LadderMode::off}) {
    Scene scene;
    ContentionWatch killed = scene.watch();
    killed.look();
    ASSERT_TRUE(killed.order(api::WorkKind::task, "a", {Phase::alone, 2'000'000, {}, {}}));
    EXPECT_EQ(scene.frozen(2), "1");
    scene.put("cg/neap/p/1/cgroup.freeze", "1");  // by somebody else: none of our business
    scene.settings.mode = mode;
    ContentionWatch next = scene.watch();
    next.look();
    EXPECT_EQ(scene.frozen(1), "1");
    EXPECT_EQ(scene.frozen(2), "0");
    EXPECT_FALSE(std::filesystem::exists(scene.root / "frozen"));
  }
}

TEST(ContentionWatch, B7_APoolThatDoesNotAskIsNotWatched) {
  Scene scene;
  scene.settings = {};
  EXPECT_EQ(scene.settings.mode, config::LadderMode::off);
  scene.put("cg/neap/p/2/cgroup.freeze", "1");
  ContentionWatch watch = scene.watch();
  watch.look();
  EXPECT_EQ(scene.frozen(2), "1");
  EXPECT_EQ(watch.order(api::WorkKind::task, "a", {Phase::alone, 2'000'000, {}, {}}).error().code,
            ErrorCode::conflict);
  api::ContentionReport report;
  watch.fill(api::WorkKind::task, "a", report);
  EXPECT_EQ(report.mode, "off");
  EXPECT_EQ(report.windows, 0);
}

TEST(ContentionWatch, F2_AClientThatSawNoGapsTellsNothing) {
  api::BaselineReport report;
  report.alone.inter_token_p50_us = 0;
  report.alone.first_byte_p50_us = 7'000;
  const measure::Alone alone = alone_of(report);
  EXPECT_FALSE(alone.speed.inter_token_p50);
  EXPECT_EQ(alone.speed.first_byte_p50, Micros(7'000));
}

TEST(ContentionWatch, B7_LimitsOfARungDoNotOutliveTheirDaemon) {
  Scene scene;
  local::CgroupLimits usual;
  usual.cpu_weight = 100;
  usual.cpus = "0-3";
  local::CgroupLimits squeezed = usual;
  squeezed.cpu_quota_milli = 100;
  scene.limits[AllocationId(2)] = squeezed;
  scene.put("ladder/.", "");
  keep_limits((scene.root / "ladder/2.json").string(), usual);
  ContentionWatch watch = scene.watch();
  watch.look();
  EXPECT_EQ(scene.limits[AllocationId(2)], usual);
  EXPECT_FALSE(std::filesystem::exists(scene.root / "ladder/2.json"));
}

// Latencies cover a minute: judged earlier, requests of before the rung would ask for the next.
TEST(ContentionWatch, B7_ARungIsJudgedByTheTimeAfterItAlone) {
  config::LadderSettings settings;
  settings.settle = seconds(10);
  measure::Ladder ladder(ladder_options(settings, api::WorkKind::service));
  measure::Diagnosis slow;
  slow.resource = measure::Resource::cpu;
  Time now{seconds(1'000).value};
  std::vector<Time> moves;
  for (int look = 0; look < 60; ++look, now = now + seconds(5)) {
    const auto move = ladder.look(now, slow);
    if (!move) continue;
    ladder.moved(*move);
    moves.push_back(now);
  }
  ASSERT_GE(moves.size(), 2u);
  EXPECT_GE(moves[1] - moves[0], seconds(10) + minutes(1));
  EXPECT_LE(moves[1] - moves[0], seconds(10) + minutes(1) + seconds(10));
}

TEST(ContentionWatch, B7_TheLogIsBounded) {
  const Scene scene;
  const std::string path = (scene.root / "ladder.log").string();
  const std::string line(100, 'x');
  for (int i = 0; i < 200; ++i) append_bounded(path, 1'000, line);
  EXPECT_LE(std::filesystem::file_size(path), 1'100u);
  EXPECT_LE(std::filesystem::file_size(path + ".1"), 1'100u);
}

}  // namespace
}  // namespace neap::daemon::contention_test
