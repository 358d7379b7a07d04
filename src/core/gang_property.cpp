// Gangs start all or nothing, and two that could each start alone never wait for each other for
// ever (D7): in arbitrary pools under load, with preemptions, everything that was submitted ends.
// Why: who waits holds nothing. A plan claims devices for all of a gang or is not made, and waits
// for running tasks alone, each of which has a time by which it is stopped.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <sstream>

#include "core/model/pool_index.h"
#include "core/testing/any_below.h"
#include "core/testing/property_run.h"
#include "core/testing/script.h"

namespace neap::gang_property {
namespace {

using testing::any_below;
using testing::check_property;
using testing::one_in;
using testing::Script;
using testing::Verdict;

enum class Fault : std::uint8_t {
  none,
  piecemeal,       // each device of a gang is a task of its own, that waits for the others
  claims_in_part,  // a gang claims what is free and waits for the rest
};

class BusyPool {
 public:
  explicit BusyPool(Fault fault) : fault_(fault) {
    script_.spec.preempt.protect_min = minutes(any_below(2) * 10);
    script_.spec.preempt.rounds = 2;
    script_.configure();
    const int nodes = 2 + any_below(3);
    per_node_ = 1 + any_below(4);
    for (int n = 0; n < nodes; ++n) {
      NodeJoined joined{{"n" + std::to_string(n), "d" + std::to_string(n % 2), {}}};
      joined.spec.rack = "r" + std::to_string(n / 2);
      joined.spec.cpu_milli = 16'000;
      for (int d = 0; d < per_node_; ++d) {
        joined.spec.devices.push_back(
            {joined.spec.name + "-" + std::to_string(d), "A100", MiB(81'920), false});
      }
      happen(joined);
    }
    devices_ = nodes * per_node_;
  }

  void anything() {
    submit_a_part();
    switch (any_below(8)) {
      case 0:
      case 1:
        submit_small();
        break;
      case 2:
        submit_gang();
        break;
      case 3:
        script_.work(seconds(one_in(2) ? any_below(1'200) : 10));
        break;
      default:
        answer_one();
        break;
    }
    plant();
    look();
  }

  // Nobody submits any more; all that runs goes on to its end.
  void drain() {
    draining_ = true;
    while (!coming_.empty()) submit_a_part();
    const int rounds = 8 * (submitted_ + 4);
    for (int round = 0; round < rounds && fault_text_.empty(); ++round) {
      while (answer_one()) look();
      plant();
      script_.work(minutes(11));
      look();
      if (live().empty()) return;
    }
    if (fault_text_.empty() && !live().empty()) fault_text_ = "some wait for ever";
  }

  [[nodiscard]] const std::string& fault() const { return fault_text_; }
  [[nodiscard]] int gangs() const { return gangs_; }
  [[nodiscard]] int plans() const { return plans_; }

  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    out << devices_ << " devices, " << per_node_ << " a node";
    script_.state.tasks.for_each([&](const TaskState& task) {
      out << "\n  " << task.spec.name << " of " << task.spec.request.count << " "
          << script_.where(task.spec.name);
    });
    return out.str();
  }

 private:
  void happen(const Event& event) { (void)script_.event(event); }

  TaskSpec spec_of(const std::string& name, int count) const {
    TaskSpec spec = Script::training(name, count);
    if (one_in(3)) spec.tier = "train_deadline_near";
    if (one_in(2)) spec.request.cpu_milli = 1'000 * count * (1 + any_below(3));
    return spec;
  }

  void submit_small() {
    ++submitted_;
    (void)script_.submit(spec_of("t" + std::to_string(submitted_), 1 + any_below(per_node_)));
  }

  void submit_gang() {
    if (devices_ == per_node_) return;
    ++gangs_;
    const std::string name = "g" + std::to_string(++submitted_);
    const int count = per_node_ + 1 + any_below(devices_ - per_node_);
    TaskSpec spec = spec_of(name, count);
    if (one_in(4)) spec.request.near.within = Cell::domain;
    if (fault_ != Fault::piecemeal) {
      (void)script_.submit(spec);
      return;
    }
    spec.request.count = 1;
    spec.request.cpu_milli = 0;
    spec.request.near = {};
    spec.tier = "train_normal";
    parts_[name] = count;
    for (int i = 0; i < count; ++i) {
      spec.name = name + "." + std::to_string(i);
      coming_.push_back(spec);
    }
  }

  // Parts of several gangs come as they come.
  void submit_a_part() {
    if (coming_.empty()) return;
    const int at = any_below(static_cast<int>(coming_.size()));
    (void)script_.submit(coming_[static_cast<std::size_t>(at)]);
    coming_.erase(coming_.begin() + at);
  }

  std::vector<std::string> live() const {
    std::vector<std::string> names;
    script_.state.tasks.for_each([&](const TaskState& task) {
      if (!has_ended(task.phase)) names.push_back(task.spec.name);
    });
    return names;
  }

  // What a backend does next for one of the tasks; false when there is nothing to do.
  bool answer_one() {
    const auto names = live();
    if (names.empty()) return false;
    const auto start = static_cast<std::size_t>(any_below(static_cast<int>(names.size())));
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (answer(names[(start + i) % names.size()])) return true;
    }
    return false;
  }

  bool answer(const std::string& name) {
    const Phase phase = script_.task(name).phase;
    switch (phase) {
      case Phase::starting:
        script_.started(name);
        return true;
      case Phase::yielding:
        script_.checkpoint(name);
        script_.exited(name, 75);
        return true;
      case Phase::stopping:
        script_.exited(name, 0, 15);
        return true;
      case Phase::running:
        if (!may_end(name) || (!draining_ && !one_in(6))) return false;
        script_.exited(name, 0);
        return true;
      default:
        return false;
    }
  }

  // A part of a gang goes on until all parts run and have met.
  bool may_end(const std::string& name) const {
    const auto gang = parts_.find(name.substr(0, name.find('.')));
    if (gang == parts_.end()) return true;
    int present = 0;
    script_.state.tasks.for_each([&](const TaskState& task) {
      const bool is_part = task.spec.name.starts_with(gang->first + ".");
      present += is_part && (task.phase == Phase::running || has_ended(task.phase)) ? 1 : 0;
    });
    return present == gang->second;
  }

  void plant() {
    if (fault_ != Fault::claims_in_part) return;
    PoolState& state = script_.state;
    TaskId gang, runs;
    state.tasks.for_each([&](const TaskState& task) {
      const bool waits = task.phase == Phase::waiting && task.spec.request.count > per_node_;
      if (waits && !state.plans.contains(task.id)) gang = task.id;
      if (task.phase == Phase::running) runs = task.id;
    });
    if (!gang.valid() || !runs.valid() || !state.tasks.at(gang).shape.valid()) return;
    std::vector<Slot> slots;
    for (std::uint32_t d = 0; d < state.devices.size(); ++d) {
      const DeviceState& device = state.devices[d];
      const bool is_free = device.tenants.empty() && free_share(device) == whole_device;
      const auto count = static_cast<std::size_t>(state.tasks.at(gang).spec.request.count);
      if (is_free && slots.size() < count) {
        slots.push_back({DeviceId(d), whole_device, device.memory});
      }
    }
    if (slots.empty()) return;
    const Victim victim{runs, ReleaseMode::finish, script_.now + hours(1), 0};
    apply(state, script_.now,
          Decision(PreemptionPlanned{gang, slots, {victim}, script_.now + hours(1), 0}));
  }

  // All or nothing, and who waits waits for those who run.
  void look() {
    const PoolState& state = script_.state;
    state.tasks.for_each([&](const TaskState& task) {
      const auto count = static_cast<std::size_t>(task.spec.request.count);
      if (holds_devices(task.phase) && task.slots.size() != count) say("a gang runs in part");
      if (!holds_devices(task.phase) && !task.slots.empty()) say("who waits holds devices");
    });
    for (const auto& [id, plan] : state.plans) {
      ++plans_;
      const auto count = static_cast<std::size_t>(state.tasks.at(id).spec.request.count);
      std::set<DeviceId> devices;
      for (const Slot& slot : plan.slots) devices.insert(slot.device);
      if (devices.size() != count) say("a plan claims a part of a gang's devices");
      for (const Victim& victim : plan.victims) {
        if (!holds_devices(state.tasks.at(victim.task).phase)) say("a plan waits for who waits");
      }
    }
    for (const DeviceState& device : state.devices) {
      const MilliGpu most = std::max(device.used_share, device.claimed_share);
      if (most > whole_device) say("a device is given twice");
    }
    for (const NodeState& node : state.nodes) {
      if (std::max(node.used_cpu, node.claimed_cpu) > node.cpu_milli) {
        say("a host is given twice");
      }
    }
  }

  void say(const std::string& text) {
    if (fault_text_.empty()) fault_text_ = text;
  }

  Fault fault_;
  bool draining_ = false;
  Script script_;
  int per_node_ = 0, devices_ = 0, submitted_ = 0, gangs_ = 0, plans_ = 0;
  std::map<std::string, int> parts_;
  std::vector<TaskSpec> coming_;
  std::string fault_text_;
};

struct Outcome : Verdict {
  std::map<std::string, int> faults;
  int gangs = 0, plans = 0;
};

Outcome run(Fault fault, int cases, rc::detail::TestParams params) {
  Outcome outcome;
  static_cast<Verdict&>(outcome) = check_property(cases, params, [&] {
    BusyPool pool(fault);
    for (int i = 0; i < 60; ++i) pool.anything();
    pool.drain();
    outcome.gangs += pool.gangs();
    outcome.plans += pool.plans();
    if (!pool.fault().empty()) ++outcome.faults[pool.fault()];
    RC_LOG() << pool.text() << "\n" << pool.fault() << "\n";
    RC_ASSERT(pool.fault().empty());
  });
  return outcome;
}

TEST(GangProperty, D7_AllOrNothingAndNobodyWaitsForEver) {
  const Outcome outcome = run(Fault::none, 300, rc::detail::configuration().testParams);
  EXPECT_TRUE(outcome.holds) << outcome.message;
  EXPECT_GT(outcome.gangs, 300);
  EXPECT_GT(outcome.plans, 100);
}

TEST(GangProperty, D7_SeesPlantedFaults) {
  rc::detail::TestParams params;
  params.seed = 1;
  params.disableShrinking = true;
  // Two gangs that take what they can get hold each other up.
  const Outcome piecemeal = run(Fault::piecemeal, 300, params);
  EXPECT_FALSE(piecemeal.holds);
  EXPECT_TRUE(piecemeal.faults.contains("some wait for ever"));
  EXPECT_FALSE(run(Fault::claims_in_part, 300, params).holds);
}

}  // namespace
}  // namespace neap::gang_property
