// The bounds by which the search for victims picks nodes: after any changes they equal bounds
// measured anew, and no cover of a node costs less than its bound (D2).
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <sstream>

#include "core/model/pool_index.h"
#include "core/rules/preempt_node.h"
#include "core/testing/any_below.h"
#include "core/testing/any_pool.h"

namespace neap::preempt_bounds_property {
namespace {

using testing::any_below;
using testing::pool_now;

enum class Fault : std::uint8_t { none, forgets_a_touch, forgets_the_time, measures_too_high };

class ChangingPool {
 public:
  explicit ChangingPool(Fault fault) : fault_(fault), any_(any_below), draw_(any_) {
    state_ = draw_.pool(14);
    for (int i = 0; i < 3; ++i) {
      DemandClass demands{draw_.demand(state_), draw_.wait(), Killing::never, Spread::one_node};
      demands.shape.request.models = {"A100"};
      if (any_(2) == 0) demands.killing = Killing::break_glass;
      if (any_(2) == 0) demands.spread = Spread::many_nodes;
      classes_.push_back(demands);
    }
  }

  // True when all bounds are as if measured now.
  bool is_current() {
    for (const DemandClass& demands : classes_) {
      const auto& tree = state_.index->victims.up_to_date(
          demands, state_.nodes.size(), now_, [&](NodeId node) { return measure(demands, node); });
      for (std::uint32_t n = 0; n < state_.nodes.size(); ++n) {
        const auto anew = measure_bound(state_, NodeId(n), demands, now_);
        if (tree.bound(NodeId(n)).cost != anew.cost) return false;
      }
      if (!walks_in_order(tree)) return false;
    }
    return true;
  }

  // No demand that can wait less finds a cheaper cover than the bound says.
  bool bounds_hold() {
    for (DemandClass& demands : classes_) {
      demands.spread = Spread::one_node;
      for (std::uint32_t n = 0; n < state_.nodes.size(); ++n) {
        std::int64_t bound = measure(demands, NodeId(n)).cost;
        if (fault_ == Fault::measures_too_high && bound < saturated_cost) bound += 1;
        const Time needed_by = now_ + demands.horizon - Micros(any_(2) * any_(20'000'000));
        NodeProblem problem;
        read_node(state_, NodeId(n), demands.shape, now_, needed_by, demands.killing, problem);
        CoverSolver solver;
        Cover cover;
        Cells cells(1'000'000);
        solver.solve(problem.cover, demands.shape.request.count, cells, cover);
        if (cover.feasible && cover.price < bound) return false;
      }
    }
    return true;
  }

  void change() {
    const int kind = any_(10);
    if (kind == 0) {
      now_ = now_ + seconds(any_(900));
    } else if (kind == 1) {
      change_device();
    } else if (kind == 2) {
      settle();
    } else {
      change_task(kind);
    }
  }

 private:
  VictimBounds::Bound measure(const DemandClass& demands, NodeId node) const {
    VictimBounds::Bound bound = measure_bound(state_, node, demands, now_);
    if (fault_ == Fault::forgets_the_time) bound.until = Time::never();
    return bound;
  }

  static bool walks_in_order(const VictimBounds::Tree& tree) {
    std::vector<std::pair<std::int64_t, NodeId>> expected, walked;
    for (std::uint32_t n = 0; n < tree.size(); ++n) {
      const std::int64_t cost = tree.bound(NodeId(n)).cost;
      if (cost != VictimBounds::infeasible) expected.emplace_back(cost, NodeId(n));
    }
    std::sort(expected.begin(), expected.end());
    NodesByBound nodes(tree);
    for (auto next = nodes.peek(); next; next = nodes.peek()) {
      walked.emplace_back(next->cost, next->node);
      nodes.take();
    }
    return walked == expected;
  }

  void touch(NodeId node) {
    if (fault_ == Fault::forgets_a_touch && any_(4) == 0) return;
    state_.index->victims.touch(node);
  }

  void change_device() {
    const auto d = static_cast<std::size_t>(any_(static_cast<int>(state_.devices.size())));
    DeviceState& device = state_.devices[d];
    switch (any_(4)) {
      case 0:
        device.role = Role::buffer;
        break;
      case 1:
        device.role = Role::core;
        break;
      case 2:
        device.health = DeviceHealth::failed;
        break;
      default:
        device.foreign = MiB(any_(900));
        break;
    }
    touch(device.node);
    for (const Tenant& tenant : device.tenants) {
      for (const Slot& slot : state_.tasks.at(tenant.task).slots) {
        touch(state_.device(slot.device).node);
      }
    }
  }

  void settle() {
    state_.index->victims.settle(
        state_.nodes.size(), now_, 2,
        [&](const DemandClass& demands, NodeId node) { return measure(demands, node); });
  }

  void change_task(int kind) {
    if (state_.tasks.size() == 0) return;
    const TaskId id(static_cast<std::uint32_t>(any_(static_cast<int>(state_.tasks.size()))));
    TaskState& task = state_.tasks.at(id);
    switch (kind) {
      case 3:
      case 4:
        task.captured = now_;
        break;
      case 5:
        task.phase = task.phase == Phase::running ? Phase::yielding : Phase::running;
        break;
      case 6:
        task.seen_restore = seconds(any_(400));
        break;
      case 7:
        task.on_demand_seen = !task.on_demand_seen;
        break;
      case 8:
        task.seen_stall = seconds(any_(60));
        break;
      default:
        leave_or_claim(task);
        break;
    }
    for (const Slot& slot : touched_.empty() ? task.slots : touched_) {
      touch(state_.device(slot.device).node);
    }
    touched_.clear();
  }

  void leave_or_claim(TaskState& task) {
    auto& claimed = state_.index->plans_of_victim;
    if (any_(2) == 0) {
      if (claimed.erase(task.id) == 0) claimed.emplace(task.id, std::set<TaskId>{task.id});
      return;
    }
    for (const Slot& slot : task.slots) {
      DeviceState& device = state_.devices[slot.device.value];
      std::erase_if(device.tenants, [&](const Tenant& t) { return t.task == task.id; });
      device.used_share -= slot.share;
      device.used_memory -= slot.memory;
    }
    task.phase = Phase::finished;
    touched_ = std::move(task.slots);
    task.slots.clear();
  }

  using Any = int (*)(int);
  Fault fault_;
  Any any_;
  testing::PoolDraw<Any> draw_;
  PoolState state_;
  std::vector<DemandClass> classes_;
  std::vector<Slot> touched_;
  Time now_ = pool_now;
};

rc::detail::TestResult run(Fault fault, rc::detail::TestParams params) {
  params.maxSuccess = 1'500;
  return rc::detail::checkTestable(
      [=] {
        ChangingPool pool(fault);
        for (int i = 0; i < 25; ++i) {
          if (any_below(3) == 0) RC_ASSERT(pool.is_current());
          if (any_below(6) == 0) RC_ASSERT(pool.bounds_hold());
          pool.change();
        }
        RC_ASSERT(pool.is_current());
      },
      rc::detail::TestMetadata{}, params);
}

TEST(PreemptBoundsProperty, D2_EqualBoundsMeasuredAnewAndHold) {
  const auto result = run(Fault::none, rc::detail::configuration().testParams);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  EXPECT_TRUE(result.template is<rc::detail::SuccessResult>()) << message.str();
}

TEST(PreemptBoundsProperty, SeesPlantedFaults) {
  rc::detail::TestParams params;
  params.seed = 1;
  params.disableShrinking = true;
  for (const Fault fault :
       {Fault::forgets_a_touch, Fault::forgets_the_time, Fault::measures_too_high}) {
    EXPECT_FALSE(run(fault, params).template is<rc::detail::SuccessResult>())
        << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace neap::preempt_bounds_property
