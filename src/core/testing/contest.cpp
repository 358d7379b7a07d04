#include "core/testing/contest.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

#include "core/engine.h"
#include "core/model/check.h"
#include "core/model/pool_index.h"
#include "core/rules/lane.h"
#include "core/rules/place.h"
#include "core/rules/promise.h"

namespace neap::testing {

namespace {

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  int below(int end) { return static_cast<int>(next() % static_cast<std::uint64_t>(end)); }
  Micros between(Micros from, Micros to) {
    return from + Micros(static_cast<std::int64_t>(
                      next() % static_cast<std::uint64_t>((to - from).value + 1)));
  }

 private:
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

// What one allocation does next; whatever was planned before is void.
enum class Act : std::uint8_t { begin, save, finish, leave, end };
struct Coming {
  Time at;
  std::uint64_t order = 0;
  AllocationId allocation;
  Act act{};
  std::uint32_t turn = 0;
  bool operator<(const Coming& o) const {
    return std::tie(o.at, o.order) < std::tie(at, order);  // the first on top
  }
};

struct Body {
  TaskId task;
  std::uint64_t sequence = 0;
  std::uint32_t turn = 0;
  std::int64_t step = 0;
  Time started, saved;
  bool runs = false, yields = false, unruly = false;
};

struct Claim {
  Time since, forced_at, start_by;
};

class Contest {
 public:
  explicit Contest(const ContestPlan& plan) : plan_(plan), any_(plan.seed) {}

  ContestResult run() {
    begin();
    while (true) {
      Time next = std::min({next_timer(state_), next_normal_, next_urgent_, next_crash_});
      if (!coming_.empty()) next = std::min(next, coming_.top().at);
      if (next > end_) break;
      now_ = std::max(now_, next);
      one_event();
    }
    for (const auto& [task, claim] : claims_) judge(task, claim, end_);
    return result_;
  }

 private:
  // ---- the pool ------------------------------------------------------------------------------

  void begin() {
    PoolSpec spec;
    spec.tiers = {{"talk", 90, Purpose::interactive, minutes(30)},
                  {"urgent", 80, Purpose::batch, hours(1)},
                  {"normal", 40, Purpose::batch, hours(4)}};
    spec.tiers[1].envelope = {plan_.urgent_burst, plan_.urgent_per_hour};
    spec.fairness.lane = plan_.lane;
    happen(PoolConfigured{spec});
    for (int n = 0; n < plan_.nodes; ++n) {
      NodeSpec node{"n" + std::to_string(n), "d" + std::to_string(n % 2), {}};
      for (int i = 0; i < plan_.devices_per_node; ++i) {
        node.devices.push_back({node.name + "-" + std::to_string(i), "A100", MiB(81'920)});
      }
      happen(NodeJoined{node});
    }
    // Interactive training holds all but the lane and one device, for ever.
    const int held = (plan_.nodes * plan_.devices_per_node) - plan_.lane - 1;
    for (int i = 0; i < held; ++i) {
      TaskSpec task = batch("talk" + std::to_string(i), "talk");
      task.work = std::nullopt;
      task.contract = {};
      task.contract.signals = true;
      happen(TaskSubmitted{task});
    }
    end_ = now_ + plan_.lasts;
    tokens_ = std::int64_t{plan_.urgent_burst} * hour;
    next_normal_ = now_ + minutes(1);
    if (plan_.urgent_burst > 0) next_urgent_ = now_ + minutes(2);
    next_crash_ = now_ + hours(30);
  }

  static constexpr std::int64_t hour = hours(1).value;

  TaskSpec batch(const std::string& name, const std::string& tier) {
    TaskSpec task;
    task.name = name;
    task.tier = tier;
    task.contract.sdk = true;
    task.contract.on_demand = any_.below(4) == 0;
    constexpr std::array<int, 3> intervals{10, 10, 30};  // the last leaves too late to borrow
    task.contract.interval = minutes(intervals[static_cast<std::size_t>(any_.below(3))]);
    task.contract.restore = seconds(any_.below(10) == 0 ? 400 : 180);
    task.work = minutes(30 + any_.below(1200));
    return task;
  }

  void shape(TaskSpec& task, int most) {
    const int node = plan_.devices_per_node;
    int count = 1;
    switch (plan_.shapes) {
      case Shapes::singles:
      case Shapes::shares:
        break;
      case Shapes::gangs:
        count = any_.below(3) == 0 ? most : 1;
        break;
      case Shapes::parts:
        count = 1 + any_.below(node);
        break;
      case Shapes::mixed:
        count = any_.below(2) == 0 ? 1 : 1 + any_.below(most);
        break;
    }
    task.request.count = std::clamp(count, 1, most);
    const bool share = task.request.count == 1 && any_.below(2) == 0;
    if (plan_.shapes == Shapes::shares && share) {
      task.request.share = MilliGpu(200 + 100 * any_.below(7));
      task.request.memory = MiB(8'192 + 4'096 * any_.below(8));
    }
  }

  // ---- time ----------------------------------------------------------------------------------

  void one_event() {
    if (now_ >= next_crash_) return crash();
    if (!coming_.empty() && coming_.top().at <= now_) return act();
    if (now_ >= next_normal_) return submit_normal();
    if (now_ >= next_urgent_) return submit_urgent();
    happen(TimerFired{});
  }

  void crash() {
    next_crash_ = now_ + any_.between(hours(10), hours(40));
    NEAP_CHECK(index_is_current(state_));
    auto restored = decode_snapshot(encode_snapshot(state_));
    NEAP_CHECK(restored.has_value() && hash_of(*restored) == hash_of(state_));
    state_ = std::move(*restored);
    ++result_.restarts;
  }

  void submit_normal() {
    // A day's tasks come in lumps.
    const Micros mean(hours(24).value / plan_.normal_per_day);
    next_normal_ = now_ + (any_.below(3) > 0 ? seconds(1) : mean * 3);
    TaskSpec task = batch("normal" + std::to_string(result_.submitted), "normal");
    shape(task, plan_.lane);
    ++result_.submitted;
    happen(TaskSubmitted{task});
  }

  // As much as the envelope allows, at once or as soon as it does.
  void submit_urgent() {
    const Micros since = now_ - tokens_at_;
    tokens_ = std::min<std::int64_t>(tokens_ + since.value * plan_.urgent_per_hour,
                                     std::int64_t{plan_.urgent_burst} * hour);
    tokens_at_ = now_;
    TaskSpec task = batch("urgent" + std::to_string(result_.submitted), "urgent");
    task.contract.interval = minutes(10);
    task.contract.restore = seconds(180);
    shape(task, plan_.urgent_burst);
    const std::int64_t price = task.request.count * hour;
    if (tokens_ < price) {
      const bool saves_up = any_.below(4) == 0;
      next_urgent_ = now_ + Micros((saves_up ? std::int64_t{plan_.urgent_burst} * hour : price) /
                                   std::max(1, plan_.urgent_per_hour));
      return;
    }
    tokens_ -= price;
    next_urgent_ = now_ + seconds(1);
    ++result_.submitted;
    happen(TaskSubmitted{task});
  }

  // ---- tasks ---------------------------------------------------------------------------------

  void plan(AllocationId allocation, Act act, Micros in) {
    coming_.push({now_ + in, ++order_, allocation, act, bodies_.at(allocation).turn});
  }

  ReportStamp stamp(AllocationId allocation) {
    return {allocation, 1, ++bodies_.at(allocation).sequence};
  }

  const TaskSpec& spec_of(const Body& body) { return state_.tasks.at(body.task).spec; }

  void act() {
    const Coming coming = coming_.top();
    coming_.pop();
    const auto found = bodies_.find(coming.allocation);
    if (found == bodies_.end() || found->second.turn != coming.turn) return;
    Body& body = found->second;
    switch (coming.act) {
      case Act::begin:
        body.runs = true;
        body.started = body.saved = now_;
        happen(TaskStarted{stamp(coming.allocation)});
        plan_life(coming.allocation);
        return;
      case Act::save:
        save(coming.allocation);
        if (body.yields) return leave(coming.allocation);
        plan(coming.allocation, Act::save, spec_of(body).contract.interval);
        return;
      case Act::leave:
        save(coming.allocation);
        return leave(coming.allocation);
      case Act::finish:
        return exit(coming.allocation, 0, 0);
      case Act::end:
        return exit(coming.allocation, body.yields ? 75 : 0, body.yields ? 0 : 9);
    }
  }

  void plan_life(AllocationId allocation) {
    const Body& body = bodies_.at(allocation);
    const TaskSpec& spec = spec_of(body);
    if (spec.tier == "talk") return;
    plan(allocation, Act::save, spec.contract.interval);
    const auto left = remaining_work(state_.tasks.at(body.task), now_);
    if (left) plan(allocation, Act::finish, *left);
  }

  void save(AllocationId allocation) {
    Body& body = bodies_.at(allocation);
    body.saved = now_;
    CheckpointDurable saved;
    saved.stamp = stamp(allocation);
    saved.step = ++body.step + state_.tasks.at(body.task).durable_step;
    saved.path = "/c";
    saved.captured = now_;
    saved.save = spec_of(body).contract.save;
    happen(saved);
  }

  // Memory is free after the time that was declared.
  void leave(AllocationId allocation) {
    const auto found = bodies_.find(allocation);
    if (found == bodies_.end()) return;
    ++found->second.turn;
    plan(allocation, Act::end, spec_of(found->second).contract.release);
  }

  void exit(AllocationId allocation, int code, int signal) {
    TaskExited exited;
    exited.stamp = stamp(allocation);
    exited.code = code;
    exited.signal = signal;
    bodies_.erase(allocation);
    happen(exited);
  }

  void carry_out(const Action& action) {
    if (const auto* start = std::get_if<StartTask>(&action)) {
      Body& body = bodies_[start->allocation];
      body.task = start->task;
      body.unruly = any_.below(100) < plan_.unruly_percent && start->name[0] != 't';
      plan(start->allocation, Act::begin, any_.between(seconds(1), seconds(40)));
      return;
    }
    const auto found = bodies_.find(allocation_of(action));
    if (found == bodies_.end()) return;
    Body& body = found->second;
    const ContractSpec& contract = spec_of(body).contract;
    if (const auto* ask = std::get_if<AskYield>(&action)) {
      if (body.unruly) return;
      body.yields = true;
      if (ask->mode != ReleaseMode::on_demand) return;  // at its next save
      plan(found->first, Act::leave, contract.drain + contract.save);
    } else if (std::get_if<WithdrawYield>(&action) != nullptr) {
      ++body.turn;
      body.yields = false;
      const Micros due = body.saved + contract.interval - now_;
      plan(found->first, Act::save, std::max(seconds(1), due));
    } else if (std::get_if<StopTask>(&action) != nullptr) {
      if (body.unruly) return;
      ++body.turn;
      body.yields = false;
      plan(found->first, Act::end, contract.release);
    } else if (std::get_if<KillTask>(&action) != nullptr) {
      ++body.turn;
      body.yields = false;
      plan(found->first, Act::end, contract.release);
    }
  }

  // ---- records -------------------------------------------------------------------------------

  void happen(const Event& event) {
    if (!check_event(state_, event)) return;
    ++result_.events;
    StepResult result;
    result.note = [&](const PoolState& state, const Event*, const Decision* decision) {
      if (decision != nullptr) note(state, *decision);
    };
    step(state_, now_, event, result);
    if (plan_.planted == Planted::backfill) backfill(result);
    for (const Action& action : result.actions) carry_out(action);
  }

  void note(const PoolState& state, const Decision& decision) {
    if (const auto* bound = std::get_if<StartBoundSet>(&decision)) {
      note_bound(state, *bound);
    } else if (const auto* placed = std::get_if<TaskPlaced>(&decision)) {
      const TaskState& task = state.tasks.at(placed->task);
      result_.in_lane += task.lane_until > Time(0) ? 1 : 0;
      const auto claim = claims_.find(placed->task);
      if (claim == claims_.end()) return;
      judge(placed->task, claim->second, now_);
      claims_.erase(claim);
    }
  }

  void note_bound(const PoolState& state, const StartBoundSet& bound) {
    const TaskState& task = state.tasks.at(bound.task);
    if (bound.code == BoundCode::issued) {
      ++result_.promised;
      claims_[bound.task] = {now_, bound.forced_at, bound.start_by};
      return;
    }
    result_.withdrawn += claims_.erase(bound.task) > 0 ? 1 : 0;
    if (task.purpose != Purpose::batch) return;
    ++result_.unpromised;
    result_.urgent_refused += task.spec.tier == "urgent" && !task.allocation.valid() ? 1 : 0;
  }

  void judge(TaskId id, const Claim& claim, Time at) {
    const Time by = claim.start_by;
    if (at == end_ && by >= end_) return;  // it may start yet
    ++(at <= by ? result_.kept : result_.late);
    const std::int64_t permille =
        1000 * (at - claim.since).value / std::max<std::int64_t>(1, (by - claim.since).value);
    if (permille <= result_.worst_permille) return;
    result_.worst_permille = permille;
    result_.worst = state_.tasks.at(id).spec.name;
  }

  // The bug: whoever is forced and fits goes, though another was forced before.
  void backfill(StepResult& result) {
    std::vector<TaskId> forced;
    for (const WaitKey& waiting : state_.index->promised) {
      if (waiting.rank == 0 && waiting.forced_at <= now_) forced.push_back(waiting.task);
    }
    for (const TaskId id : forced) {
      const TaskState& task = state_.tasks.at(id);
      if (!task.forced || state_.plans.contains(id)) continue;
      auto slots = place_in_lane(state_, state_.shape(task.shape));
      if (slots.empty()) continue;
      const Decision placed =
          TaskPlaced{id, AllocationId(state_.next_allocation), std::move(slots)};
      apply(state_, now_, placed);
      note(state_, placed);
      StartTask start;
      start.allocation = state_.tasks.at(id).allocation;
      start.task = id;
      start.name = state_.tasks.at(id).spec.name;
      result.actions.emplace_back(std::move(start));
    }
  }

  ContestPlan plan_;
  Chance any_;
  PoolState state_;
  Time now_{hours(24 * 100).value}, end_;
  Time next_normal_ = Time::never(), next_urgent_ = Time::never(), next_crash_ = Time::never();
  std::int64_t tokens_ = 0;
  Time tokens_at_{hours(24 * 100).value};
  std::uint64_t order_ = 0;
  std::priority_queue<Coming> coming_;
  std::map<AllocationId, Body> bodies_;
  std::map<TaskId, Claim> claims_;
  ContestResult result_;
};

}  // namespace

ContestResult run_contest(const ContestPlan& plan) { return Contest(plan).run(); }

}  // namespace neap::testing
