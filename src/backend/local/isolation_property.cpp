// Arbitrary starts, changes and ends of tasks: the groups of those that run have just their own
// limits (B1, B5).
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>

#include "backend/local/isolation.h"
#include "backend/local/testing/fake_cgroups.h"

namespace neap::local {
namespace {

constexpr std::uint64_t most_tasks = 3;

struct Step {
  std::uint64_t task = 1;
  bool ends = false;
  CgroupLimits limits;
};

Step any_step() {
  const auto amount = [](int high) -> std::optional<std::int64_t> {
    if (*rc::gen::inRange(0, 3) == 0) return std::nullopt;
    return *rc::gen::inRange(1, high);
  };
  Step out;
  out.task = *rc::gen::inRange<std::uint64_t>(1, most_tasks + 1);
  out.ends = *rc::gen::inRange(0, 8) == 0;
  out.limits.cpu_weight = amount(10'000);
  out.limits.cpu_quota_milli = amount(4'000);
  out.limits.memory_max_bytes = amount(1 << 30);
  out.limits.processes_max = amount(1'000);
  if (const auto bytes = amount(1 << 20)) out.limits.io = {{"8:0", bytes, {}, {}, amount(100)}};
  return out;
}

// The files of a group as its limits would have them; "" was never written.
void expect_files(const testing::FakeCgroups& tree, std::uint64_t id, const CgroupLimits& limits) {
  const std::string group = "neap/p/" + std::to_string(id) + "/";
  const auto check = [&](const char* file, const std::string& wanted, const char* lifted) {
    const std::string found = tree.read(group + file);
    const bool right = wanted.empty() ? found.empty() || found == lifted : found == wanted;
    RC_ASSERT(right);
  };
  const auto text = [](const auto& amount, const std::string& after = "", std::int64_t factor = 1) {
    return amount ? std::to_string(*amount * factor) + after : "";
  };
  check("cpu.weight", text(limits.cpu_weight), "100");
  check("cpu.max", text(limits.cpu_quota_milli, " 100000", 100), "max 100000");
  check("memory.max", text(limits.memory_max_bytes), "max");
  check("pids.max", text(limits.processes_max), "max");
  check("io.max", limits.io.empty() ? "" : io_text(limits.io.front()),
        "8:0 rbps=max wbps=max riops=max wiops=max");
}

using Meant = std::uint64_t (*)(std::uint64_t task);  // the task that a change is made to

void run_steps(Meant meant) {
  const testing::FakeCgroups tree;
  tree.make_v2({1, 2, 3});
  Isolation isolation(tree.root());
  std::map<std::uint64_t, CgroupLimits> model;
  for (std::uint64_t id = 1; id <= most_tasks; ++id) {
    const std::string directory = tree.root() + "/tasks/" + std::to_string(id);
    std::filesystem::create_directories(directory);
    SupervisedTask task;
    task.allocation = AllocationId(id);
    task.argv = {"/bin/true"};
    task.cgroup = SupervisedGroup{tree.root(), "neap/p/" + std::to_string(id), {}, 0, {}};
    isolation.add(directory, task);
    isolation.started(AllocationId(id));
    model[id] = {};
  }
  const int steps = *rc::gen::inRange(1, 20);
  for (int i = 0; i < steps; ++i) {
    const Step step = any_step();
    const AllocationId id(meant(step.task));
    if (step.ends) {
      isolation.ended(id);
      model.erase(step.task);
      RC_ASSERT(!isolation.change(id, step.limits));
    } else if (model.contains(step.task)) {
      RC_ASSERT(isolation.change(id, step.limits).has_value());
      model[step.task] = step.limits;
    }
    for (const auto& [task, limits] : model) expect_files(tree, task, limits);
  }
}

bool holds(Meant meant, rc::detail::TestParams params) {
  params.maxSuccess = 100;
  params.disableShrinking = true;
  const auto result =
      rc::detail::checkTestable([meant] { run_steps(meant); }, rc::detail::TestMetadata{}, params);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  const bool success = result.template is<rc::detail::SuccessResult>();
  if (!success) std::cout << message.str().substr(0, 2000) << '\n';
  return success;
}

TEST(IsolationProperty, B1_LimitsStayInTheGroupOfTheirTask) {
  const rc::detail::TestParams& params = rc::detail::configuration().testParams;
  SCOPED_TRACE("RC_PARAMS=\"seed=" + std::to_string(params.seed) + "\"");
  EXPECT_TRUE(holds([](std::uint64_t task) { return task; }, params));
}

TEST(IsolationProperty, B1_SeesALimitInTheGroupOfAnother) {
  rc::detail::TestParams params;
  params.seed = 1;
  EXPECT_FALSE(
      holds([](std::uint64_t task) { return task == 2 ? std::uint64_t{3} : task; }, params));
}

}  // namespace
}  // namespace neap::local
