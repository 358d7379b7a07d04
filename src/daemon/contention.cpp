#include "daemon/contention.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "backend/local/durable_file.h"
#include "backend/local/shared_cpu.h"
#include "daemon/contention_rows.h"

namespace neap::daemon {
namespace {

constexpr auto look_every = std::chrono::seconds(5);
constexpr Micros steps_kept = minutes(5);
constexpr Micros steps_window = seconds(30);    // batches of steps come every 10 s
constexpr Micros requests_window = minutes(1);  // of latencies, contention_work.cpp
constexpr int recoveries_max = 12;              // looks: a minute
constexpr std::size_t moves_kept = 50;          // of one service in memory
constexpr std::uintmax_t log_bytes_max = std::uintmax_t{1}
                                         << 20;  // of ladder.log, and the one before

using measure::Rung;

bool is_neighbour(const Workload& one, const Workload& other) {
  return &one != &other && !(one.kind == other.kind && one.name == other.name);
}

}  // namespace

measure::LadderOptions ladder_options(const config::LadderSettings& settings, api::WorkKind kind) {
  measure::LadderOptions options;
  const bool serves = kind == api::WorkKind::service;
  options.settle = settings.settle + (serves ? requests_window : steps_window);
  options.confirm = std::min(options.confirm, settings.settle);
  options.calm = settings.calm;
  options.calm_max = std::max(options.calm_max, settings.calm);
  return options;
}

ContentionWatch::ContentionWatch(Ports ports, config::LadderSettings settings,
                                 std::string state_dir)
    : ports_(std::move(ports)), settings_(settings), state_dir_(std::move(state_dir)) {}

void ContentionWatch::start() {
  const bool off = settings_.mode == config::LadderMode::off;
  if (off && !std::filesystem::exists(lease_path()) &&
      !std::filesystem::exists(state_dir_ + "/ladder")) {
    return;
  }
  thread_ = std::jthread([this, off](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, look_every, [&] { return stop.stop_requested(); })) {
      look();
      if (off && recovered_) return;
    }
  });
}

void ContentionWatch::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  const std::scoped_lock lock(mutex_);
  thaw();
  measuring_.reset();
}

void ContentionWatch::note(const Event& report) {
  const auto* steps = std::get_if<StepsReported>(&report);
  if (steps == nullptr || settings_.mode == config::LadderMode::off) return;
  const Time now = ports_.now();
  const std::scoped_lock lock(mutex_);
  auto& batches = steps_[steps->stamp.source];
  batches.push_back({now, steps->count, steps->busy});
  while (batches.front().at + steps_kept < now) batches.pop_front();
}

std::optional<Micros> ContentionWatch::step_of(const Workload& workload, Time since) const {
  std::int64_t count = 0;
  Micros busy{0};
  for (const AllocationId allocation : workload.allocations) {
    const auto found = steps_.find(allocation);
    if (found == steps_.end()) continue;
    for (const StepBatch& batch : found->second) {
      if (batch.at <= since) continue;
      count += batch.count;
      busy += batch.busy;
    }
  }
  if (count == 0) return {};
  return busy / count;
}

// Steps in thousandths a second, by the time between the batches: that is what training gets done.
std::optional<std::int64_t> ContentionWatch::steps_rate(const Workload& workload, Time now) const {
  std::optional<std::int64_t> sum;
  for (const AllocationId allocation : workload.allocations) {
    const auto found = steps_.find(allocation);
    if (found == steps_.end()) continue;
    std::optional<Time> first;
    Time last;
    std::int64_t count = 0;
    for (const StepBatch& batch : found->second) {
      if (batch.at + steps_window < now) continue;
      if (first) count += batch.count;
      if (!first) first = batch.at;
      last = batch.at;
    }
    if (!first || last <= *first) continue;
    sum = sum.value_or(0) + static_cast<std::int64_t>(static_cast<double>(count) * 1e9 /
                                                      static_cast<double>((last - *first).value));
  }
  return sum;
}

std::optional<std::int64_t> ContentionWatch::training_rate(const std::vector<Workload>& all,
                                                           Time now) const {
  std::optional<std::int64_t> sum;
  for (const Workload& one : all) {
    if (one.kind != api::WorkKind::task) continue;
    if (const auto rate = steps_rate(one, now)) sum = sum.value_or(0) + *rate;
  }
  return sum;
}

void ContentionWatch::read_signals(Watched& one, const std::vector<Workload>& all,
                                   const local::HostReading& now,
                                   const measure::Speed& speed) const {
  measure::Signals& signals = one.signals;
  signals = {};
  signals.from = before_->at;
  signals.to = now.at;
  signals.machine = local::machine_between(*before_, now);
  const auto use_of = [&](const Workload& workload) {
    measure::Use use;
    for (const AllocationId allocation : workload.allocations) {
      local::add_use(use, local::use_between(*before_, now, allocation));
    }
    return use;
  };
  signals.use = use_of(one.workload);
  for (const Workload& other : all) {
    if (!is_neighbour(one.workload, other) || other.allocations.empty()) continue;
    signals.neighbours.push_back({other.name, use_of(other)});
  }
  if (one.workload.kind == api::WorkKind::task) {
    signals.speed.step = step_of(one.workload, now.at - steps_window);
    return;
  }
  signals.speed = speed;
  if (one.workload.first_byte_slo > Micros(0)) {
    signals.speed.first_byte_slo = one.workload.first_byte_slo;
  }
}

void ContentionWatch::look() {
  const std::vector<local::TaskGroup> groups = ports_.groups();
  if (settings_.mode == config::LadderMode::off) {
    const std::scoped_lock lock(mutex_);
    if (!recovered_) recover(groups);
    return;
  }
  const std::vector<Workload> all = ports_.workloads();
  local::HostReading now = local::read_host(ports_.now(), groups);
  // Asked without the lock: the proxy may let wait.
  std::map<std::string, measure::Speed> speeds;
  for (const Workload& one : all) {
    if (one.kind == api::WorkKind::service) ports_.speed_of(one.name, speeds[one.name]);
  }
  const std::scoped_lock lock(mutex_);
  workloads_ = all;
  if (!recovered_) recover(groups);
  if (settings_.groups == config::CpuGroups::shared) share(groups);
  if (measuring_ && measuring_->phase == api::BaselineOrder::Phase::alone &&
      measuring_->until <= now.at) {
    ports_.say("baseline: given up, nobody went on with it; neighbours run again");
    thaw();
    measuring_.reset();
  }
  std::map<Key, Watched> watched;
  for (const Workload& workload : all) {
    const Key key{workload.kind, workload.name};
    const auto known = watched_.find(key);
    Watched one = known == watched_.end() ? Watched{} : std::move(known->second);
    one.workload = workload;
    if (known == watched_.end()) {
      one.ladder = measure::Ladder(ladder_options(settings_, workload.kind));
    }
    watched.emplace(key, std::move(one));
  }
  watched_ = std::move(watched);
  newest_ = now;
  if (before_) {
    for (auto& [key, one] : watched_) {
      // A baseline changes what is usual: nothing is judged while it is under way.
      if (measuring_ || !recovered_) continue;
      load_baseline(key);
      read_signals(one, all, now, speeds[key.second]);
      ++one.windows;
      one.newest = measure::diagnose(one.signals, alone_.at(key));
      one.steady.add(one.newest);
      climb(one, all, now.at);
    }
  }
  std::erase_if(usual_, [&](const auto& entry) { return !now.tasks.contains(entry.first); });
  std::erase_if(shared_, [&](const auto& entry) { return !now.tasks.contains(entry.first); });
  std::erase_if(steps_, [&](const auto& entry) { return !now.tasks.contains(entry.first); });
  before_ = std::move(now);
}

std::string ContentionWatch::usual_path(AllocationId allocation) const {
  return fmt::format("{}/ladder/{}.json", state_dir_, allocation.value);
}

std::string ContentionWatch::lease_path() const { return state_dir_ + "/frozen"; }

// What an earlier daemon has left: tasks that its baseline froze run again, limits of rungs go; the
// ladder begins anew, with its evidence. Tasks may come to be known later than the first look.
void ContentionWatch::recover(const std::vector<local::TaskGroup>& groups) {
  if (!owed_) owed_ = kept_frozen(lease_path());
  std::error_code ignored;
  for (const local::TaskGroup& one : groups) {
    if (owed_->contains(one.allocation) && one.group.thaw()) owed_->erase(one.allocation);
    const auto usual = kept_limits(usual_path(one.allocation));
    if (!usual) continue;
    if (auto done = ports_.change(one.allocation, *usual); !done) {
      if (done.error().code == ErrorCode::conflict) continue;  // not known to run yet: next time
      ports_.say(fmt::format("allocation {} keeps the limits of a rung: {}", one.allocation.value,
                             to_string(done.error())));
    }
    std::filesystem::remove(usual_path(one.allocation), ignored);
  }
  (void)keep_frozen(lease_path(), *owed_);
  const std::filesystem::path limits = state_dir_ + "/ladder";
  const bool limited =
      std::filesystem::exists(limits, ignored) && !std::filesystem::is_empty(limits, ignored);
  // What is left after that has ended meanwhile.
  if ((limited || !owed_->empty()) && ++recoveries_ < recoveries_max) return;
  (void)keep_frozen(lease_path(), {});
  std::filesystem::remove_all(limits, ignored);
  recovered_ = true;
}

// As on a machine without isolation: all of them in one CPU group, but for those that the ladder
// has taken apart.
void ContentionWatch::share(const std::vector<local::TaskGroup>& groups) {
  for (const local::TaskGroup& one : groups) {
    if (shared_.contains(one.allocation)) continue;
    const auto done = local::share_cpu(one.group);
    if (!done) {
      ports_.say(fmt::format("ladder.groups: shared: allocation {} stays apart: {}",
                             one.allocation.value, to_string(done.error())));
    }
    shared_[one.allocation] = done.has_value();
  }
}

void ContentionWatch::climb(Watched& one, const std::vector<Workload>& all, Time now) {
  if (one.workload.kind != api::WorkKind::service) {
    one.advised.reset();
    return;
  }
  const bool alone = std::ranges::none_of(all, [&](const Workload& other) {
    return other.kind == api::WorkKind::task && is_neighbour(one.workload, other);
  });
  if (alone && one.ladder.rung() != Rung::none) {
    const measure::LadderMove back{now, one.ladder.rung(),     Rung::none, one.ladder.resource(),
                                   "",  "no training is left", false};
    const auto done = carry_out(one, back, all);
    keep(one, back, done ? "" : to_string(done.error()), now);
    one.ladder.reset();
    return;
  }
  // Rungs that cannot be taken are passed over at once.
  for (int tries = 0; tries < 5; ++tries) {
    one.advised = one.ladder.look(now, one.steady.now());
    if (!one.advised || settings_.mode != config::LadderMode::automatic) return;
    const measure::LadderMove move = *one.advised;
    const auto done = carry_out(one, move, all);
    if (done) {
      keep(one, move, "", now);
      one.ladder.moved(move);
      one.advised.reset();
      return;
    }
    if (done.error().code == ErrorCode::conflict) return;  // still starting: at the next look
    keep(one, move, to_string(done.error()), now);
    one.ladder.impossible(move, to_string(done.error()));
  }
}

Result<void> ContentionWatch::carry_out(Watched& one, const measure::LadderMove& move,
                                        const std::vector<Workload>& all) {
  const Key key{one.workload.kind, one.workload.name};
  const auto alone = alone_.find(key);
  local::RungFacts facts;
  facts.resource = move.resource;
  facts.rung = move.to;
  facts.processors = one.signals.machine.processors_milli.value_or(0) / 1'000;
  facts.service_cpu_milli = one.signals.use.cpu_milli.value_or(0);
  if (alone != alone_.end() && alone->second && alone->second->use.cpu_milli) {
    facts.service_cpu_milli = *alone->second->use.cpu_milli;
  }
  facts.neighbours = std::ranges::count(all, api::WorkKind::task, &Workload::kind);
  if (before_ && newest_) facts.disk = local::busiest_disk(*before_, *newest_);
  if (move.from == Rung::none) {
    one.steps_before = training_rate(all, move.at);
    one.io_before.clear();
  }
  for (const Workload& other : all) {
    if (other.kind != api::WorkKind::task) continue;
    for (const AllocationId allocation : other.allocations) {
      local::RungFacts its = facts;
      for (const measure::Neighbour& neighbour : one.signals.neighbours) {
        if (neighbour.name != other.name) continue;
        if (neighbour.use.io_bytes_per_s) {
          one.io_before.try_emplace(allocation, *neighbour.use.io_bytes_per_s);
        }
        its.memory_bytes = neighbour.use.memory_bytes.value_or(0);
      }
      if (const auto io = one.io_before.find(allocation); io != one.io_before.end()) {
        its.io_bytes_per_s = io->second;
      }
      if (auto done = limit(allocation, its, api::WorkKind::task); !done) return done;
    }
  }
  for (const AllocationId allocation : one.workload.allocations) {
    if (auto done = limit(allocation, facts, api::WorkKind::service); !done) return done;
  }
  return {};
}

Result<void> ContentionWatch::limit(AllocationId allocation, const local::RungFacts& facts,
                                    api::WorkKind side) {
  const auto known = usual_.find(allocation);
  if (known == usual_.end()) {
    const auto now = ports_.limits_of(allocation);
    if (!now) return tl::unexpected(now.error());
    usual_.emplace(allocation, *now);
    (void)local::make_directory(state_dir_ + "/ladder", 0700);
    keep_limits(usual_path(allocation), *now);
  }
  const local::CgroupLimits& usual = usual_.at(allocation);
  const auto wanted = side == api::WorkKind::service ? local::service_limits(facts, usual)
                                                     : local::neighbour_limits(facts, usual);
  if (!wanted) return tl::unexpected(wanted.error());
  if (facts.resource == measure::Resource::cpu && shared_[allocation]) {
    // Taken apart for as long as it runs: a rung given back does not mix them again.
    for (const local::TaskGroup& one : ports_.groups()) {
      if (one.allocation != allocation) continue;
      if (auto apart = local::separate_cpu(one.group); !apart) return apart;
    }
    shared_[allocation] = false;
  }
  return ports_.change(allocation, *wanted);
}

void ContentionWatch::keep(Watched& one, const measure::LadderMove& move, const std::string& fault,
                           Time now) {
  api::LadderMoveRow row = row_of(move, fault);
  if (const auto rate = training_rate(workloads_, now)) row.training_steps_milli_per_s = *rate;
  ports_.say(fmt::format("ladder of {}: {} -> {} for {}{}: {}", one.workload.name, row.from, row.to,
                         row.resource, fault.empty() ? "" : " is not possible (" + fault + ")",
                         row.why));
  append_bounded(state_dir_ + "/ladder.log", log_bytes_max, line_of(one.workload.name, row));
  one.moves.push_back(std::move(row));
  if (one.moves.size() > moves_kept) one.moves.pop_front();
}

void ContentionWatch::fill(api::WorkKind kind, const std::string& name,
                           api::ContentionReport& into) const {
  const std::scoped_lock lock(mutex_);
  into.mode = config::name_of(settings_.mode);
  const Key key{kind, name};
  const auto found = watched_.find(key);
  if (found == watched_.end()) return;
  const Watched& one = found->second;
  into.windows = one.windows;
  fill_diagnosis(one.steady.now(), into);
  into.rung = measure::name_of(one.ladder.rung());
  into.rung_resource = measure::name_of(one.ladder.resource());
  if (one.advised) into.next = measure::name_of(one.advised->to);
  into.closed = one.ladder.closed();
  into.moves.assign(one.moves.begin(), one.moves.end());
  into.speed = row_of(one.signals.speed);
  if (const auto alone = alone_.find(key); alone != alone_.end() && alone->second) {
    into.alone = row_of(alone->second->speed);
  }
  into.use = row_of(one.workload.name, one.signals.use);
  const Time now = ports_.now();
  for (const measure::Neighbour& neighbour : one.signals.neighbours) {
    api::UseRow row = row_of(neighbour.name, neighbour.use);
    for (const Workload& other : workloads_) {
      if (other.name != neighbour.name || other.kind != api::WorkKind::task) continue;
      row.steps_milli_per_s = steps_rate(other, now).value_or(api::unknown);
    }
    into.neighbours.push_back(std::move(row));
  }
  into.training_steps_milli_per_s = training_rate(workloads_, now).value_or(api::unknown);
  into.training_steps_before_milli_per_s = one.steps_before.value_or(api::unknown);
}

}  // namespace neap::daemon
