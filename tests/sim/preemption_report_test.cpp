// The report of preemptions over runs of the real engine, faults and daemon crashes included: fed
// as the daemon feeds it, with a snapshot in the middle, it agrees bit for bit with a second
// reducer that reads the records alone. F10, F11
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ledger/preemptions.h"
#include "tests/sim/weather.h"

namespace neap::sim::preemption_report_test {
namespace {

using ledger::Outcome;
using ledger::PreemptionBook;
using ledger::PreemptionReport;

struct Entry {
  Time at;
  std::variant<Event, Decision> record;
};

// What a run journalled; after a crash the records go back with the state.
std::vector<Entry> recorded(std::uint64_t seed) {
  std::vector<Entry> journal;
  Planted planted;
  planted.step = [&](PoolState& state, Time now, const Event& event, StepResult& result) {
    journal.resize(state.sequence);
    step(state, now, event, result);
    journal.push_back({now, event});
    for (const Decision& decision : result.decisions) journal.push_back({now, decision});
  };
  EXPECT_TRUE(run_seed(seed, planted).violations.empty()) << "seed " << seed;
  return journal;
}

// Bugs planted in how the book is fed, which the second way must notice.
enum class Fault : std::uint8_t { none, hears_of_no_withdrawal, hears_of_no_lost_node };

bool is_kept_from_it(const std::variant<Event, Decision>& record, Fault fault) {
  const auto* event = std::get_if<Event>(&record);
  const auto* decision = std::get_if<Decision>(&record);
  if (fault == Fault::hears_of_no_lost_node) {
    return event != nullptr && std::holds_alternative<NodeLost>(*event);
  }
  return fault == Fault::hears_of_no_withdrawal && decision != nullptr &&
         std::holds_alternative<YieldWithdrawn>(*decision);
}

PreemptionReport first_way(const std::vector<Entry>& journal, Fault fault = Fault::none) {
  PoolState state;
  PreemptionBook book;
  for (std::size_t i = 0; i < journal.size(); ++i) {
    const Time at = journal[i].at;
    const auto& record = journal[i].record;
    std::visit(
        [&, when = at](const auto& r) {
          apply(state, when, r);
          if (!is_kept_from_it(record, fault)) book.note(state, when, r);
        },
        record);
    if (i != journal.size() / 2) continue;
    Encoder out;  // the daemon was started again, from a snapshot
    book.encode(out);
    const std::string bytes = out.take();
    Decoder in(bytes);
    book = PreemptionBook();
    book.decode(in);
    EXPECT_TRUE(!in.failed() && in.at_end());
  }
  return book.report(state, Time(0), state.now);
}

// ---- the second way: from records alone, nothing of the engine's state ------------------------

struct Job {
  bool replica = false;
  bool any_contract = false, sees_steps = false, signals_alone = false;
};

struct Run {
  std::uint32_t task = 0;
  Time placed, started, captured;
  bool has_started = false, asked_ever = false;
  std::int64_t milli = 0, last = 0, durable = 0;
  StopReason reason = StopReason::none;
  std::set<std::string> nodes;
};

struct Asking {
  std::uint64_t allocation = 0;
  ReleaseMode mode{};
  Time asked, promised, ended;
  Outcome outcome{};
  std::int64_t lost = 0;
};

class SecondReducer {
 public:
  void take(Time at, const Event& event) {
    now_ = at;
    std::visit([&](const auto& e) { on(e); }, event);
  }
  void take(Time at, const Decision& decision) {
    now_ = at;
    std::visit([&](const auto& d) { on(d); }, decision);
  }

  // Of those that were not killed for capacity.
  [[nodiscard]] std::vector<Asking> askings() const {
    std::vector<Asking> out;
    for (const Asking& a : askings_) {
      if (a.mode != ReleaseMode::kill) out.push_back(a);
    }
    return out;
  }
  ledger::Amount held, kept;
  std::int64_t ends = 0, cuts = 0;
  Micros protect{0};

  void close() {
    for (const auto& [allocation, run] : runs_) {
      if (!jobs_.at(run.task).replica) count_held(run, false);
    }
  }

 private:
  template <class Other>
  void on(const Other& /*says nothing of preemptions*/) {}

  void on(const PoolConfigured& e) { protect = e.spec.preempt.protect_min; }
  void on(const NodeJoined& e) {
    up_.insert(e.spec.name);
    if (!known_.insert(e.spec.name).second) return;
    for (std::size_t i = 0; i < e.spec.devices.size(); ++i) devices_.push_back(e.spec.name);
  }
  void on(const NodeLost& e) {
    up_.erase(e.node);
    std::vector<std::uint64_t> gone;
    for (auto& [allocation, run] : runs_) {
      if (!run.nodes.contains(e.node)) continue;
      const bool lives = std::any_of(run.nodes.begin(), run.nodes.end(),
                                     [&](const std::string& n) { return up_.contains(n); });
      if (!lives) gone.push_back(allocation);
      if (lives && run.reason != StopReason::cancelled) run.reason = StopReason::device_failed;
    }
    for (const std::uint64_t allocation : gone) {
      const Run& run = runs_.at(allocation);
      const std::int64_t lost =
          run.has_started && run.reason != StopReason::cancelled ? (now_ - run.captured).value : 0;
      end(allocation, lost, false);
    }
  }
  void on(const TaskSubmitted& e) {
    Job job;
    job.any_contract = e.spec.contract.any();
    job.sees_steps = e.spec.contract.sdk || e.spec.contract.watch;
    job.signals_alone = job.any_contract && !job.sees_steps;
    names_[e.spec.name] = next_;
    jobs_[next_++] = job;
  }
  void on(const ReplicaAdded& /*d*/) { jobs_[next_++].replica = true; }
  void on(const TaskCancelRequested& e) {
    for (auto& [allocation, run] : runs_) {
      if (run.task == names_.at(e.name)) run.reason = StopReason::cancelled;
    }
  }
  void on(const TaskPlaced& d) {
    Run run;
    run.task = d.task.value;
    run.placed = now_;
    for (const Slot& slot : d.slots) {
      run.milli += slot.share.value;
      run.nodes.insert(devices_.at(slot.device.value));
    }
    run.last = run.durable = durable_[run.task];
    runs_[d.allocation.value] = run;
  }
  void on(const TaskStarted& e) {
    Run& run = runs_.at(e.stamp.source.value);
    run.started = run.captured = now_;
    run.has_started = true;
  }
  void on(const StepsReported& e) {
    Run& run = runs_.at(e.stamp.source.value);
    run.last = std::max(run.last, e.last);
  }
  void on(const CheckpointDurable& e) {
    Run& run = runs_.at(e.stamp.source.value);
    run.durable = e.step;
    run.last = std::max(run.last, e.step);
    run.captured = std::clamp(e.captured, run.started, now_);
  }
  void on(const DeviceHealthChanged& /*e*/) {}
  void on(const YieldAsked& d) {
    Run& run = runs_.at(d.allocation.value);
    run.reason = d.reason;
    run.asked_ever = true;
    if (d.reason != StopReason::preempted && d.reason != StopReason::guard_restored) return;
    newest_[d.allocation.value] = askings_.size();
    askings_.push_back({d.allocation.value, d.mode, now_, d.release_by, now_, Outcome::open, 0});
  }
  void on(const YieldWithdrawn& d) {
    runs_.at(d.allocation.value).reason = StopReason::none;
    if (Asking* asking = newest(d.allocation.value)) {
      if (asking->outcome == Outcome::open) asking->outcome = Outcome::withdrawn;
      asking->ended = now_;
    }
  }
  void on(const StopAsked& d) {
    runs_.at(d.allocation.value).reason = d.reason;
    Asking* asking = newest(d.allocation.value);
    if (d.reason == StopReason::contract_breach && asking != nullptr) {
      asking->outcome = Outcome::failed;
    }
  }
  void on(const KillAsked& d) {
    runs_.at(d.allocation.value).reason = d.reason;
    const bool for_capacity =
        d.reason == StopReason::preempted || d.reason == StopReason::guard_restored;
    if (!for_capacity || newest(d.allocation.value) != nullptr) return;
    newest_[d.allocation.value] = askings_.size();
    askings_.push_back({d.allocation.value, ReleaseMode::kill, now_, now_, now_, Outcome::open, 0});
  }
  void on(const StartFailed& e) { end(e.stamp.source.value, 0, false); }
  void on(const TaskExited& e) {
    Run& run = runs_.at(e.stamp.source.value);
    const Job& job = jobs_.at(run.task);
    const bool yielded = e.signal == 0 && e.code == 75 && job.any_contract;
    const bool finished = e.signal == 0 && e.code == 0;
    if (yielded && job.signals_alone) run.captured = now_;
    std::int64_t lost = (now_ - run.captured).value;
    if (!run.has_started || finished || run.reason == StopReason::cancelled) lost = 0;
    if (yielded && run.last <= run.durable) lost = 0;
    const bool over = finished || run.reason == StopReason::cancelled ||
                      run.reason == StopReason::admission_revoked ||
                      run.reason == StopReason::moved;
    const bool cut =
        !over && (run.reason == StopReason::preempted || run.reason == StopReason::guard_restored ||
                  (yielded && run.asked_ever));
    end(e.stamp.source.value, lost, cut);
  }

  Asking* newest(std::uint64_t allocation) {
    const auto found = newest_.find(allocation);
    return found == newest_.end() ? nullptr : &askings_[found->second];
  }

  void count_held(const Run& run, bool cut) {  // tidy-allow(boolean-parameter): a fact of the run
    const ledger::Amount time = ledger::Amount::product(run.milli, (now_ - run.placed).value);
    held += time;
    if (!cut || now_ - run.placed >= protect) kept += time;
  }

  // tidy-allow(boolean-parameter): a fact of the run
  void end(std::uint64_t allocation, std::int64_t lost, bool cut) {
    const Run run = runs_.at(allocation);
    durable_[run.task] = run.durable;
    runs_.erase(allocation);
    if (jobs_.at(run.task).replica) return;
    Asking* asking = newest(allocation);
    if (asking != nullptr && (asking->outcome != Outcome::withdrawn || cut)) {
      if (asking->outcome != Outcome::failed) asking->outcome = Outcome::done;
      asking->ended = now_;
      asking->lost = lost;
    }
    const bool is_cut = cut || (asking != nullptr && asking->outcome == Outcome::failed);
    count_held(run, is_cut);
    if (now_ > run.placed) {
      ++ends;
      cuts += is_cut ? 1 : 0;
    }
  }

  Time now_;
  std::uint32_t next_ = 0;
  std::set<std::string> up_, known_;
  std::vector<std::string> devices_;
  std::map<std::string, std::uint32_t> names_;
  std::map<std::uint32_t, Job> jobs_;
  std::map<std::uint32_t, std::int64_t> durable_;
  std::map<std::uint64_t, Run> runs_;
  std::map<std::uint64_t, std::size_t> newest_;
  std::vector<Asking> askings_;
};

// What the records alone say, in the form of the report.
struct Second {
  ledger::PreemptionCounts counts;
  ledger::Amount held, kept;
  std::int64_t ends = 0, cuts = 0;
  bool operator==(const Second&) const = default;
};

Second second_way(const std::vector<Entry>& journal) {
  SecondReducer reducer;
  for (const auto& [at, record] : journal) {
    std::visit([&, when = at](const auto& r) { reducer.take(when, r); }, record);
  }
  reducer.close();
  Second out{{}, reducer.held, reducer.kept, reducer.ends, reducer.cuts};
  std::vector<std::int64_t> lost, release, promised;
  ledger::PreemptionCounts& counts = out.counts;
  for (const Asking& a : reducer.askings()) {
    ++counts.asked;
    counts.done += a.outcome == Outcome::done ? 1 : 0;
    counts.withdrawn += a.outcome == Outcome::withdrawn ? 1 : 0;
    counts.failed += a.outcome == Outcome::failed ? 1 : 0;
    counts.open += a.outcome == Outcome::open ? 1 : 0;
    if (a.outcome != Outcome::done && a.outcome != Outcome::failed) continue;
    lost.push_back(a.lost);
    release.push_back((a.ended - a.asked).value);
    promised.push_back((a.promised - a.asked).value);
    counts.in_time += a.ended <= a.promised ? 1 : 0;
    if (a.outcome != Outcome::done) continue;
    counts.at_boundary += a.mode == ReleaseMode::boundary ? 1 : 0;
    counts.on_demand += a.mode == ReleaseMode::on_demand ? 1 : 0;
    counts.at_end += a.mode == ReleaseMode::finish ? 1 : 0;
  }
  counts.lost = ledger::spread_of(lost);
  counts.release = ledger::spread_of(release);
  counts.promised = ledger::spread_of(promised);
  return out;
}

Second in_its_form(const PreemptionReport& report) {
  Second out{report.all, {}, {}, 0, 0};
  for (const ledger::QueueCapacity& queue : report.queues) {
    out.held += queue.held;
    out.kept += queue.kept;
    out.ends += queue.stays;
    out.cuts += queue.cut;
  }
  return out;
}

std::string as_text(const Second& s) {
  return "asked " + std::to_string(s.counts.asked) + ", left " + std::to_string(s.counts.done) +
         ", stayed " + std::to_string(s.counts.withdrawn) + ", stopped " +
         std::to_string(s.counts.failed) + ", lost at most " + std::to_string(s.counts.lost.most) +
         ", held " + s.held.to_string() + ", kept " + s.kept.to_string() + ", ended " +
         std::to_string(s.ends) + ", cut " + std::to_string(s.cuts);
}

TEST(PreemptionReport, F10_F11_TwoWaysAgreeBitForBit) {
  Second sums;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const std::vector<Entry> journal = recorded(seed);
    const PreemptionReport report = first_way(journal);
    ASSERT_TRUE(report == first_way(journal)) << "seed " << seed;
    const Second first = in_its_form(report), second = second_way(journal);
    EXPECT_TRUE(first == second) << "seed " << seed << "\n"
                                 << as_text(first) << "\n"
                                 << as_text(second);
    // Apart by team, tier and queue, nobody is lost and nobody counts twice.
    for (const auto* groups : {&report.by_team, &report.by_tier, &report.by_queue}) {
      std::int64_t asked = 0;
      for (const auto& [name, counts] : *groups) asked += counts.asked;
      EXPECT_EQ(asked, report.all.asked);
    }
    sums.counts.asked += second.counts.asked;
    sums.counts.done += second.counts.done;
    sums.counts.at_boundary += second.counts.at_boundary;
    sums.counts.failed += second.counts.failed;
    sums.counts.withdrawn += second.counts.withdrawn;
    sums.cuts += second.cuts;
  }
  std::printf(
      "preemptions of 60 runs, two ways: asked %lld, left %lld (%lld at a boundary), "
      "stopped %lld, stayed %lld\n",
      static_cast<long long>(sums.counts.asked), static_cast<long long>(sums.counts.done),
      static_cast<long long>(sums.counts.at_boundary), static_cast<long long>(sums.counts.failed),
      static_cast<long long>(sums.counts.withdrawn));
  // Runs without them would prove nothing.
  EXPECT_GT(sums.counts.done, 20);
  EXPECT_GT(sums.counts.at_boundary, 5);
  EXPECT_GT(sums.counts.failed, 0);
  EXPECT_GT(sums.counts.withdrawn, 5);
  EXPECT_GT(sums.cuts, 20);
}

TEST(PreemptionReport, F10_F11_PlantedFaultsAreNoticed) {
  for (const Fault fault : {Fault::hears_of_no_withdrawal, Fault::hears_of_no_lost_node}) {
    bool noticed = false;
    for (std::uint64_t seed = 1; seed <= 60 && !noticed; ++seed) {
      const std::vector<Entry> journal = recorded(seed);
      noticed = !(in_its_form(first_way(journal, fault)) == second_way(journal));
    }
    EXPECT_TRUE(noticed) << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace neap::sim::preemption_report_test
