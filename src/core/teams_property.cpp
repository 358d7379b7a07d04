// Guarantees and limits of teams (D6) in arbitrary pools, trees of teams and arrivals: no team
// has more than its limit; nobody is asked to yield at the expense of a guarantee; a team below
// its guarantee has it back within an interval and its grace unless victims are protected; and no
// two tasks take turns.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>
#include <sstream>

#include "core/model/pool_index.h"
#include "core/model/team_index.h"
#include "core/rules/preempt.h"
#include "core/testing/any_below.h"
#include "core/testing/property_run.h"
#include "core/testing/script.h"

namespace neap::teams_property {
namespace {

using testing::any_below;
using testing::check_property;
using testing::one_in;
using testing::Script;
using testing::Verdict;

enum class Fault : std::uint8_t {
  none,
  forgets_a_limit,   // a task of a team at its limit is placed all the same
  takes_guarantees,  // anybody of a lighter or equal tier is asked, whatever its team is left with
  gives_nothing,     // nobody of an equal tier is asked for a guarantee
};

class SharedPool {
 public:
  explicit SharedPool(Fault fault) : fault_(fault) {
    devices_ = 8 * (1 + any_below(2));
    draw_teams();
    script_.spec.preempt.protect_min = Micros(0);
    script_.spec.preempt.budget_per_day = 1000;
    script_.spec.reserve.most = any_below(2) * 4;
    script_.spec.defragment.enabled = false;
    plant_in_spec();
    script_.configure();
    for (int n = 0; n * 8 < devices_; ++n) script_.node("n" + std::to_string(n), "d", 8);
  }

  void anything() {
    switch (any_below(6)) {
      case 0:
      case 1:
        submit();
        break;
      case 2:
        script_.work(seconds(any_below(1'500)));
        break;
      default:
        answer_one();
        break;
    }
    plant();
    look();
  }

  // Everybody asks for more than there is, and nobody ends: in the end each has its guarantee.
  void press() {
    pressing_ = true;
    for (const TeamSpec& team : spec_) {
      for (int i = 0; i < devices_; ++i) submit(team.name, 1);
    }
    std::int64_t asked = 0;
    for (int round = 0; round < 40; ++round) {
      for (int i = 0; i < 200 && answer_one(); ++i) look();
      script_.work(minutes(11));
      plant();
      look();
      if (round == 30) asked = yields_;
    }
    for (const Team& team : script_.state.index->teams->teams()) {
      if (team.all.held < team.guarantee && could_have(team)) {
        say(team.name + " waits for its guarantee");
      }
    }
    if (yields_ > asked) say("tasks take turns");
  }

  [[nodiscard]] const std::string& fault() const { return fault_text_; }
  [[nodiscard]] int given_back() const { return given_back_; }
  [[nodiscard]] int at_limits() const { return at_limits_; }

  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    out << devices_ << " devices";
    for (const TeamSpec& team : spec_) {
      out << "\n  " << team.name << " of '" << team.parent << "' " << team.guarantee << ".."
          << (team.limit ? std::to_string(*team.limit) : "") << " x" << team.weight;
    }
    script_.state.tasks.for_each([&](const TaskState& task) {
      out << "\n  " << task.spec.name << " " << task.spec.team << " " << task.spec.tier << " "
          << task.spec.request.count << " " << script_.where(task.spec.name);
    });
    for (const auto& [task, plan] : script_.state.plans) {
      out << "\n  " << (plan.kind == PlanKind::reservation ? "room for " : "plan of ")
          << script_.state.tasks.at(task).spec.name << ", held by";
      for (const Victim& victim : plan.victims) {
        out << " " << script_.state.tasks.at(victim.task).spec.name;
      }
      out << ", devices";
      for (const Slot& slot : plan.slots) out << " " << slot.device.value;
    }
    return out.str();
  }

 private:
  void draw_teams() {
    int left = devices_;
    const int roots = 1 + any_below(3);
    for (int r = 0; r < roots; ++r) {
      TeamSpec root{"r" + std::to_string(r)};
      root.guarantee = any_below(left + 1);
      left -= root.guarantee;
      if (one_in(3)) root.limit = root.guarantee + any_below(devices_);
      root.weight = 1 + any_below(3);
      spec_.push_back(root);
      int inside = root.guarantee;
      for (int c = any_below(3); c > 0; --c) {
        TeamSpec child{root.name + "c" + std::to_string(c), root.name};
        child.guarantee = any_below(inside + 1);
        inside -= child.guarantee;
        if (one_in(4)) child.limit = child.guarantee + any_below(4);
        child.weight = 1 + any_below(3);
        spec_.push_back(child);
      }
    }
  }

  void plant_in_spec() {
    script_.spec.teams = spec_;
    if (fault_ == Fault::gives_nothing || fault_ == Fault::takes_guarantees) {
      for (TeamSpec& team : script_.spec.teams) team.guarantee = 0;
    }
    if (fault_ == Fault::forgets_a_limit) {
      for (TeamSpec& team : script_.spec.teams) team.limit.reset();
    }
  }

  void submit() {
    const std::size_t at = static_cast<std::size_t>(any_below(static_cast<int>(spec_.size()) + 1));
    submit(at < spec_.size() ? spec_[at].name : "stray", 1 + any_below(5));
  }

  void submit(const std::string& team, int gpus) {
    TaskSpec task = Script::training("t" + std::to_string(++submitted_), gpus);
    task.team = team;
    task.request.share = one_in(8) ? MilliGpu(500) : whole_device;
    if (task.request.share < whole_device) task.request.memory = MiB(1024);
    task.contract.restore = seconds(30);
    if (one_in(6)) task.tier = "train_deadline_near";
    (void)script_.submit(task);
  }

  bool answer_one() {
    std::vector<std::string> names;
    script_.state.tasks.for_each([&](const TaskState& task) {
      if (task.phase == Phase::starting || task.phase == Phase::yielding ||
          task.phase == Phase::stopping || (task.phase == Phase::running && !pressing_)) {
        names.push_back(task.spec.name);
      }
    });
    if (names.empty()) return false;
    const std::string& name =
        names[static_cast<std::size_t>(any_below(static_cast<int>(names.size())))];
    switch (script_.task(name).phase) {
      case Phase::starting:
        script_.started(name);
        return true;
      case Phase::running:
        if (one_in(6)) script_.exited(name, 0);
        return true;
      default:
        script_.checkpoint(name);
        script_.exited(name, 75);
        return true;
    }
  }

  // A pool that goes by the planted fault: what `look` holds against it is what was asked for.
  void plant() {
    if (fault_ != Fault::takes_guarantees) return;
    PoolState& state = script_.state;
    TaskId waits, runs;
    state.tasks.for_each([&](const TaskState& task) {
      if (task.phase == Phase::running) runs = task.id;
      if (task.phase == Phase::waiting && task.shape.valid() && !state.plans.contains(task.id)) {
        waits = task.id;
      }
    });
    if (!waits.valid() || !runs.valid() || state.index->plans_of_victim.contains(runs)) return;
    const TaskState& victim = state.tasks.at(runs);
    if (victim.slots.size() < state.tasks.at(waits).spec.request.count + std::size_t{0}) return;
    std::vector<Slot> slots(victim.slots.begin(),
                            victim.slots.begin() + state.tasks.at(waits).spec.request.count);
    const Time by = script_.now + minutes(10);
    note(PreemptionPlanned{waits, slots, {{runs, ReleaseMode::boundary, by, 0}}, by, 0});
    note(YieldAsked{runs, victim.allocation, ReleaseMode::boundary, by, StopReason::preempted});
  }

  void note(const Decision& decision) {
    apply(script_.state, script_.now, decision);
    script_.last.decisions.push_back(decision);
  }

  // What the last event led to.
  void look() {
    for (const Decision& decision : script_.last.decisions) {
      yields_ += std::holds_alternative<YieldAsked>(decision) ? 1 : 0;
    }
    const PoolState& state = script_.state;
    std::map<std::string, std::int64_t> held;
    state.tasks.for_each([&](const TaskState& task) {
      if (!holds_devices(task.phase)) return;
      for (std::string team = task.spec.team; !team.empty();) {
        held[team] += held_milli(task);
        const TeamSpec* spec = spec_of(team);
        team = spec == nullptr ? "" : spec->parent;
      }
    });
    for (const TeamSpec& team : spec_) {
      if (team.limit && held[team.name] > *team.limit * 1000) say("a team is above its limit");
    }
    for (std::size_t i = 0; i < script_.last.decisions.size(); ++i) {
      const auto* planned = std::get_if<PreemptionPlanned>(&script_.last.decisions[i]);
      if (planned == nullptr) continue;
      note_order(i);
      check_plan(*planned);
    }
    at_limits_ += static_cast<int>(
        std::count(state.wait_codes.begin(), state.wait_codes.end(), WaitCode::team_limit));
    if (!index_is_current(state)) say("the index is not current");
    script_.last = {};
  }

  [[nodiscard]] bool wait_is(const TaskState& task, WaitCode code) const {
    return task.phase == Phase::waiting && task.shape.valid() &&
           script_.state.wait_codes[task.shape.value] == code;
  }

  // Who is asked after the plan that is decision `at` was made, who of them after others got
  // something, and who gets something after it.
  void note_order(std::size_t at) {
    const auto& decisions = script_.last.decisions;
    asked_.clear();
    asked_later_.clear();
    served_later_.clear();
    bool others = false;
    for (std::size_t i = at + 1; i < decisions.size(); ++i) {
      if (const auto* plan = std::get_if<PreemptionPlanned>(&decisions[i])) {
        served_later_.insert(plan->task);
        others = true;
      } else if (const auto* room = std::get_if<RoomReserved>(&decisions[i])) {
        served_later_.insert(room->task);
      } else if (const auto* placed = std::get_if<TaskPlaced>(&decisions[i])) {
        served_later_.insert(placed->task);
        others = true;
      } else if (const auto* asked = std::get_if<YieldAsked>(&decisions[i])) {
        asked_.insert(asked->task);
        if (others) asked_later_.insert(asked->task);
      }
    }
  }

  // At the moment when it was made: no other team is left with less than its guarantee by whom it
  // takes. Those who are leaving already leave for somebody else, maybe of their own team, and it
  // only waits for what that one leaves: nothing is taken from anybody for it.
  void check_plan(const PreemptionPlanned& plan) {
    const PoolState& state = script_.state;
    const TaskState& task = state.tasks.at(plan.task);
    std::map<std::string, std::int64_t> stays, taken;
    state.tasks.for_each([&](const TaskState& other) {
      if (served_later_.contains(other.id)) return;
      const bool leaves = !asked_later_.contains(other.id) &&
                          (other.phase == Phase::yielding || other.phase == Phase::stopping);
      const bool victim = std::any_of(
          plan.victims.begin(), plan.victims.end(),
          [&](const Victim& v) { return v.task == other.id && v.mode != ReleaseMode::finish; });
      const bool asked = victim && asked_.contains(other.id);
      const auto claim = state.plans.find(other.id);
      std::int64_t milli = holds_devices(other.phase) && !leaves && !victim ? held_milli(other) : 0;
      if (claim != state.plans.end()) {
        std::int64_t claimed = 0;
        for (const Slot& slot : claim->second.slots) claimed += slot.share.value;
        milli = std::max(milli, claimed);
      }
      for (const std::string& team : chain_of(other.spec.team)) {
        stays[team] += milli;
        if (asked && other.spec.team != task.spec.team) taken[team] += held_milli(other);
      }
      if (asked && state.tier(other.tier).weight >= state.tier(task.tier).weight) ++given_back_;
    });
    const auto above = chain_of(task.spec.team);
    for (const auto& [team, milli] : taken) {
      const TeamSpec* spec = spec_of(team);
      const bool shared = std::find(above.begin(), above.end(), team) != above.end();
      if (spec != nullptr && milli > 0 && !shared && stays[team] < spec->guarantee * 1000) {
        say(team + " is left with less than its guarantee");
      }
    }
  }

  [[nodiscard]] std::vector<std::string> chain_of(std::string team) const {
    std::vector<std::string> chain;
    while (!team.empty()) {
      chain.push_back(team);
      const TeamSpec* spec = spec_of(team);
      team = spec == nullptr ? "" : spec->parent;
    }
    return chain;
  }

  [[nodiscard]] const TeamSpec* spec_of(const std::string& name) const {
    for (const TeamSpec& team : spec_) {
      if (team.name == name) return &team;
    }
    return nullptr;
  }

  // It asks, by tasks of one device that nothing but devices keeps from starting, its own tasks are
  // on fewer devices than it is guaranteed (parts of devices make no whole one; those that are kept
  // for one of its own are its own affair), and what others hold, or is kept for them, is neither
  // heavier nor of a size that would take others' guarantees.
  [[nodiscard]] bool could_have(const Team& team) const {
    const PoolState& state = script_.state;
    bool asks = false, heavier = false, large = false;
    std::set<DeviceId> its;
    state.tasks.for_each([&](const TaskState& task) {
      const auto chain = chain_of(task.spec.team);
      const bool mine = std::find(chain.begin(), chain.end(), team.name) != chain.end();
      if (mine && task.phase == Phase::waiting && !wait_is(task, WaitCode::team_limit) &&
          task.spec.request.count == 1 && task.spec.request.share == whole_device) {
        asks = true;
      }
      if (mine && holds_devices(task.phase)) {
        for (const Slot& slot : task.slots) its.insert(slot.device);
      }
      if (const auto plan = state.plans.find(task.id);
          plan != state.plans.end() && plan->second.kind == PlanKind::reservation) {
        for (const Slot& slot : plan->second.slots) {
          if (mine) its.insert(slot.device);
        }
        heavier = heavier || (!mine && task.spec.tier == "train_deadline_near");
      }
      if (mine || !holds_devices(task.phase)) return;
      heavier = heavier || task.spec.tier == "train_deadline_near";
      large = large || task.slots.size() > 1 || task.slots.front().share < whole_device;
    });
    const auto on = static_cast<std::int64_t>(its.size()) * whole_device.value;
    return asks && on < team.guarantee && !heavier && !large;
  }

  void say(const std::string& text) {
    if (fault_text_.empty()) fault_text_ = text;
  }

  Fault fault_;
  bool pressing_ = false;
  Script script_;
  std::vector<TeamSpec> spec_;
  int devices_ = 0, submitted_ = 0, given_back_ = 0, at_limits_ = 0;
  std::int64_t yields_ = 0;
  std::set<TaskId> asked_, asked_later_, served_later_;  // see note_order()
  std::string fault_text_;
};

struct Outcome : Verdict {
  std::map<std::string, int> faults;
  int given_back = 0, at_limits = 0;
};

Outcome run(Fault fault, int cases, rc::detail::TestParams params) {
  Outcome outcome;
  params.disableShrinking = true;  // it takes minutes
  static_cast<Verdict&>(outcome) = check_property(cases, params, [&] {
    SharedPool pool(fault);
    for (int i = 0; i < 60; ++i) pool.anything();
    pool.press();
    outcome.given_back += pool.given_back();
    outcome.at_limits += pool.at_limits();
    if (!pool.fault().empty()) ++outcome.faults[pool.fault()];
    RC_LOG() << pool.text() << "\n" << pool.fault() << "\n";
    RC_ASSERT(pool.fault().empty());
  });
  return outcome;
}

TEST(TeamsProperty, D6_GuaranteesAreGivenBackAndLimitsHold) {
  const rc::detail::TestParams& params = rc::detail::configuration().testParams;
  SCOPED_TRACE("RC_PARAMS=\"seed=" + std::to_string(params.seed) + "\"");
  const Outcome outcome = run(Fault::none, 100, params);
  EXPECT_TRUE(outcome.holds) << outcome.message;
  EXPECT_GT(outcome.given_back, 15);
  EXPECT_GT(outcome.at_limits, 100);
  std::printf("given back %d, looks at a limit %d\n", outcome.given_back, outcome.at_limits);
}

TEST(TeamsProperty, D6_SeesPlantedFaults) {
  rc::detail::TestParams params;
  params.seed = 1;
  for (const Fault fault :
       {Fault::forgets_a_limit, Fault::takes_guarantees, Fault::gives_nothing}) {
    EXPECT_FALSE(run(fault, 150, params).holds) << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace neap::teams_property
