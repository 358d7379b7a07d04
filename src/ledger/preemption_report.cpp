// The report over what PreemptionBook keeps.
#include <algorithm>

#include "ledger/preemptions.h"

namespace neap::ledger {

Spread spread_of(std::vector<std::int64_t> values) {
  Spread out;
  out.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  const auto rank = [&](std::size_t percent) {
    return values[(values.size() * percent + 99) / 100 - 1];
  };
  out.p50 = rank(50);
  out.p95 = rank(95);
  out.p99 = rank(99);
  out.most = values.back();
  return out;
}

std::int64_t PreemptionCounts::success_ppm() const {
  const std::int64_t tried = done + failed;
  return tried == 0 ? all_ppm.value : done * all_ppm.value / tried;
}

namespace {

// What the counts of one group are made of.
struct Gathered {
  PreemptionCounts counts;
  std::vector<std::int64_t> lost, release, promised;

  void add(const Preemption& p) {
    ++counts.asked;
    counts.done += p.outcome == Outcome::done ? 1 : 0;
    counts.withdrawn += p.outcome == Outcome::withdrawn ? 1 : 0;
    counts.failed += p.outcome == Outcome::failed ? 1 : 0;
    counts.open += p.outcome == Outcome::open ? 1 : 0;
    if (p.outcome != Outcome::done && p.outcome != Outcome::failed) return;
    if (p.ended < p.asked) return;  // it is being stopped
    lost.push_back(p.lost.value);
    release.push_back((p.ended - p.asked).value);
    promised.push_back((p.promised - p.asked).value);
    counts.in_time += p.ended <= p.promised ? 1 : 0;
    if (p.outcome != Outcome::done) return;
    counts.at_boundary += p.mode == ReleaseMode::boundary ? 1 : 0;
    counts.on_demand += p.mode == ReleaseMode::on_demand ? 1 : 0;
    counts.at_end += p.mode == ReleaseMode::finish ? 1 : 0;
    counts.killed += p.mode == ReleaseMode::kill ? 1 : 0;
  }

  PreemptionCounts take() {
    counts.lost = spread_of(std::move(lost));
    counts.release = spread_of(std::move(release));
    counts.promised = spread_of(std::move(promised));
    return counts;
  }
};

// milli-GPU·µs of a stretch within a window.
Amount within(const Stretch& stretch, Time from, Time until) {
  const Time begin = std::max(stretch.from, from);
  const Time end = std::min(stretch.to, until);
  return end > begin ? Amount::product(stretch.milli, (end - begin).value) : Amount();
}

std::map<std::string, PreemptionCounts> taken(std::map<std::string, Gathered>&& groups) {
  std::map<std::string, PreemptionCounts> out;
  for (auto& [name, group] : groups) out.emplace(name, group.take());
  return out;
}

void add_held(QueueCapacity& queue, const Stretch& held, const PreemptionReport& report) {
  const Amount time = within(held, report.from, report.until);
  queue.asked += time;
  queue.held += time;
  const bool long_enough = !held.cut || held.to - held.from >= report.protect;
  if (long_enough) queue.kept += time;
  if (held.to > report.from && held.to <= report.until) {
    ++queue.stays;
    queue.cut += held.cut ? 1 : 0;
  }
}

}  // namespace

PreemptionReport PreemptionBook::report(const PoolState& state, Time since, Time now) const {
  PreemptionReport out;
  out.from = since;
  out.until = now;
  out.complete_from = complete_from_;
  out.protect = state.spec.preempt.protect_min;

  Gathered all, break_glass;
  std::map<std::string, Gathered> by_team, by_tier, by_queue;
  for (const Preemption& preemption : askings_) {
    if (preemption.asked < since || preemption.asked > now) continue;
    if (preemption.mode == ReleaseMode::kill) {
      break_glass.add(preemption);
      continue;
    }
    const Queue& queue = queues_[preemption.queue];
    all.add(preemption);
    by_team[queue.team].add(preemption);
    by_tier[queue.tier].add(preemption);
    by_queue[queue.team + "/" + queue.tier].add(preemption);
  }
  out.all = all.take();
  out.break_glass = break_glass.take();
  out.by_team = taken(std::move(by_team));
  out.by_tier = taken(std::move(by_tier));
  out.by_queue = taken(std::move(by_queue));

  std::vector<QueueCapacity> queues(queues_.size());
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    queues[i].team = queues_[i].team;
    queues[i].tier = queues_[i].tier;
  }
  for (const Stretch& held : stays_) add_held(queues[held.queue], held, out);
  for (const auto& [allocation, stay] : held_) add_held(queues[stay.held.queue], stay.held, out);
  for (const Stretch& wait : waits_) queues[wait.queue].asked += within(wait, since, now);
  for (const auto& [id, wait] : waiting_) {
    const TaskState* task = state.tasks.find(id);
    Stretch until_now = wait;
    if (task == nullptr) continue;
    if (has_ended(task->phase)) until_now.to = task->phase_since;
    queues[wait.queue].asked += within(until_now, since, now);
  }
  for (QueueCapacity& queue : queues) {
    if (queue.asked == Amount()) continue;
    queue.effective_ppm = scaled(all_ppm.value, queue.kept.value(), queue.asked.value());
    queue.none = queue.cut > 0 && queue.kept == Amount();
    out.queues.push_back(std::move(queue));
  }
  std::sort(out.queues.begin(), out.queues.end(),
            [](const QueueCapacity& a, const QueueCapacity& b) {
              return std::tie(a.team, a.tier) < std::tie(b.team, b.tier);
            });
  return out;
}

}  // namespace neap::ledger
