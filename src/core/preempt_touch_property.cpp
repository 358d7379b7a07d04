// Whatever the engine applies, it tells the bounds of the nodes that it concerns: after any
// records they equal bounds measured anew (D2).
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <sstream>

#include "core/engine.h"
#include "core/model/pool_index.h"
#include "core/rules/preempt_node.h"
#include "core/testing/any_below.h"

namespace neap::preempt_touch_property {
namespace {

using testing::any_below;

enum class Fault : std::uint8_t { none, is_not_told };

class RunningPool {
 public:
  RunningPool() {
    spec_.tiers = {{"infer", 100, Purpose::inference}, {"normal", 40, Purpose::batch}};
    spec_.preempt.protect_min = minutes(5);
    happen(PoolConfigured{spec_});
    for (int n = 0; n < 4; ++n) join(n);
  }

  void happen(const Event& event) {
    if (!check_event(state_, event)) return;
    StepResult result;
    step(state_, now_, event, result);
  }

  void anything() {
    now_ = now_ + seconds(any_below(4) == 0 ? any_below(900) : 1);
    switch (any_below(12)) {
      case 0:
      case 1:
        submit();
        break;
      case 2:
        happen(NodeUnreachable{node()});
        break;
      case 3:
        join(any_below(5));
        break;
      case 4:
        happen(ForeignMemoryChanged{node(), any_below(2), MiB(any_below(1'000))});
        break;
      case 5:
        configure();
        break;
      case 6:
        happen(TimerFired{});
        break;
      default:
        report();
        break;
    }
  }

  // Empty when they are.
  std::string differing_bound() {
    for (const std::int32_t count : {1, 2}) {
      for (const Micros horizon : {seconds(30), seconds(660)}) {
        DemandClass demands;
        demands.shape.request.count = count;
        demands.shape.request.models = {"A100"};
        demands.shape.purpose = Purpose::inference;
        demands.shape.tier = TierId(0);
        demands.horizon = horizon;
        const auto measure = [&](NodeId n) { return measure_bound(state_, n, demands, now_); };
        const auto& tree =
            state_.index->victims.up_to_date(demands, state_.nodes.size(), now_, measure);
        for (std::uint32_t n = 0; n < state_.nodes.size(); ++n) {
          const std::int64_t kept = tree.bound(NodeId(n)).cost;
          const std::int64_t anew = measure(NodeId(n)).cost;
          if (kept != anew) {
            return "node " + std::to_string(n) + ": " + std::to_string(kept) + ", anew " +
                   std::to_string(anew);
          }
        }
      }
    }
    return {};
  }

  // What a record that touches nothing would do.
  void change_behind_its_back() {
    state_.tasks.for_each([&](const TaskState& task) {
      if (task.phase == Phase::running) state_.tasks.at(task.id).preemptions += 1;
    });
  }

 private:
  std::string node() { return "n" + std::to_string(any_below(4)); }

  void join(int n) {
    NodeSpec spec{"n" + std::to_string(n), "r0", {}};
    for (int d = 0; d < 2; ++d) {
      spec.devices.push_back({spec.name + "-" + std::to_string(d), "A100", MiB(1'000), false});
    }
    happen(NodeJoined{spec});
  }

  void submit() {
    TaskSpec spec;
    spec.name = "t" + std::to_string(submitted_++);
    spec.tier = any_below(4) == 0 ? "infer" : "normal";
    spec.request.count = 1 + any_below(3);
    if (any_below(3) == 0) {
      spec.request = {1, 0, MilliGpu(100 * (1 + any_below(6))), MiB(10), {}, {}};
    }
    spec.contract.sdk = true;
    spec.contract.interval = minutes(10);
    spec.contract.restore = seconds(20 + any_below(60));
    if (any_below(3) == 0) spec.work = minutes(1 + any_below(60));
    happen(TaskSubmitted{spec});
  }

  void configure() {
    spec_.preempt.fixed_cost = any_below(2) * 1'000'000'000'000;
    spec_.preempt.protect_min = minutes(any_below(3) * 5);
    spec_.preempt.break_glass = any_below(2) == 0;
    spec_.inference_guard_min = any_below(3);
    happen(PoolConfigured{spec_});
  }

  // Of any task that holds devices, in the order in which such reports come.
  void report() {
    std::vector<TaskId> holding;
    state_.tasks.for_each([&](const TaskState& task) {
      if (holds_devices(task.phase)) holding.push_back(task.id);
    });
    if (holding.empty()) return;
    const TaskState& task = state_.tasks.at(
        holding[static_cast<std::size_t>(any_below(static_cast<int>(holding.size())))]);
    const ReportStamp stamp{task.allocation, task.report_epoch, task.report_sequence + 1};
    if (task.phase == Phase::starting) return happen(TaskStarted{stamp});
    switch (any_below(6)) {
      case 0:
        return happen(ContractGreeting{stamp, any_below(2) == 0, true});
      case 1:
      case 2:
        return happen(StepsReported{stamp, task.last_step + 5, 5, seconds(1)});
      case 3:
        return happen(TaskExited{stamp, any_below(2) == 0 ? 0 : 75, 0, {}});
      default:
        return happen(CheckpointDurable{stamp, task.last_step, "x", 1, now_, seconds(any_below(20)),
                                        seconds(any_below(20))});
    }
  }

  PoolSpec spec_;
  PoolState state_;
  Time now_{hours(24 * 100).value};
  int submitted_ = 0;
};

rc::detail::TestResult run(Fault fault, rc::detail::TestParams params) {
  params.maxSuccess = 200;
  return rc::detail::checkTestable(
      [=] {
        RunningPool pool;
        for (int i = 0; i < 60; ++i) {
          pool.anything();
          if (any_below(4) != 0) continue;
          const std::string differs = pool.differing_bound();
          RC_LOG() << "record " << i << ": " << differs << "\n";
          RC_ASSERT(differs.empty());
          if (fault == Fault::is_not_told) pool.change_behind_its_back();
        }
      },
      rc::detail::TestMetadata{}, params);
}

TEST(PreemptTouchProperty, D2_TheEngineTouchesWhatItChanges) {
  const auto result = run(Fault::none, rc::detail::configuration().testParams);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  EXPECT_TRUE(result.template is<rc::detail::SuccessResult>()) << message.str();
}

TEST(PreemptTouchProperty, SeesAPlantedFault) {
  rc::detail::TestParams params;
  params.seed = 1;
  params.disableShrinking = true;
  EXPECT_FALSE(run(Fault::is_not_told, params).template is<rc::detail::SuccessResult>());
}

}  // namespace
}  // namespace neap::preempt_touch_property
