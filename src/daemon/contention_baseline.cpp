// Baselines: the same load with the neighbours frozen, then with them running again. Frozen tasks
// lose no work: they go on where they stood. Services are never frozen.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "backend/local/durable_file.h"
#include "daemon/contention.h"
#include "daemon/contention_rows.h"

namespace neap::daemon {
namespace {

constexpr std::size_t baseline_bytes_max = 64 * 1024;
constexpr Micros until_next = minutes(10);  // between the phases, before it is given up

std::string_view kind_name(api::WorkKind kind) {
  return kind == api::WorkKind::service ? "service" : "task";
}

}  // namespace

std::string ContentionWatch::baseline_path(const Key& key) const {
  // Names are of a-z, 0-9, '-' and '.' (config/fields.h), and do not begin with a dot.
  return fmt::format("{}/baselines/{}-{}.json", state_dir_, kind_name(key.first), key.second);
}

void ContentionWatch::load_baseline(const Key& key) {
  if (alone_.contains(key)) return;
  auto& alone = alone_[key];
  const auto text = local::read_bounded(baseline_path(key), baseline_bytes_max);
  if (!text) return;
  const auto report = api::decode_baseline_report(*text);
  if (!report) {
    ports_.say(fmt::format("{} is left out: {}", baseline_path(key), to_string(report.error())));
    return;
  }
  alone = alone_of(*report);
}

Result<void> ContentionWatch::baseline(api::WorkKind kind, const std::string& name,
                                       api::BaselineReport& into) const {
  const std::scoped_lock lock(mutex_);
  const auto text = local::read_bounded(baseline_path({kind, name}), baseline_bytes_max);
  if (!text) {
    return fail(ErrorCode::not_found, "has no baseline yet: neap baseline run " + name, name);
  }
  auto report = api::decode_baseline_report(*text);
  if (!report) return tl::unexpected(report.error());
  report->pool = std::move(into.pool);
  report->subject = into.subject;
  into = std::move(*report);
  return {};
}

Result<void> ContentionWatch::order(api::WorkKind kind, const std::string& name,
                                    const api::BaselineOrder& order) {
  using Phase = api::BaselineOrder::Phase;
  measure::Speed speed;  // asked without the lock: the proxy may let wait
  if (kind == api::WorkKind::service) ports_.speed_of(name, speed);
  const std::scoped_lock lock(mutex_);
  const Key key{kind, name};
  if (order.phase == Phase::alone) return begin_alone(key, Micros(order.for_us));
  if (!measuring_ || measuring_->key != key) {
    return fail(ErrorCode::conflict, "no baseline of it is under way", name);
  }
  if (order.phase == Phase::abandon) {
    thaw();
    measuring_.reset();
    return {};
  }
  const bool in_turn = order.phase == Phase::mixed ? measuring_->phase == Phase::alone
                                                   : measuring_->phase == Phase::mixed;
  if (!in_turn) return fail(ErrorCode::conflict, "the phases are alone, mixed, store", name);
  return order.phase == Phase::mixed ? begin_mixed(speed) : store(order, speed);
}

Result<void> ContentionWatch::begin_alone(const Key& key, Micros length) {
  if (settings_.mode == config::LadderMode::off) {
    return fail(ErrorCode::conflict, "nothing is watched: the pool file has ladder.mode off",
                key.second);
  }
  if (!recovered_) {
    return fail(ErrorCode::conflict, "the daemon has just started: in a minute", key.second);
  }
  const Time now = ports_.now();
  if (measuring_ && measuring_->until > now) {
    return fail(ErrorCode::conflict, "a baseline is under way", measuring_->key.second);
  }
  thaw();
  const auto self = std::ranges::find_if(workloads_, [&](const Workload& one) {
    return one.kind == key.first && one.name == key.second;
  });
  if (self == workloads_.end() || self->allocations.empty()) {
    return fail(ErrorCode::conflict, "does not run (since 5 s at least)", key.second);
  }
  Measuring next;
  next.key = key;
  next.report.subject.name = key.second;
  const std::vector<local::TaskGroup> groups = ports_.groups();
  std::set<AllocationId> lease;
  for (const Workload& other : workloads_) {
    if (other.kind == api::WorkKind::service || &other == &*self) continue;
    for (const local::TaskGroup& group : groups) {
      if (std::ranges::find(other.allocations, group.allocation) == other.allocations.end()) {
        continue;
      }
      lease.insert(group.allocation);
      next.frozen.push_back(group);
      next.report.frozen.push_back(other.name);
    }
  }
  // First on disk: a daemon that comes after a crash lets them run again.
  if (auto kept = keep_frozen(lease_path(), lease); !kept) return kept;
  measuring_ = std::move(next);
  for (const local::TaskGroup& group : measuring_->frozen) {
    if (auto frozen = group.group.freeze(); !frozen) {
      thaw();
      measuring_.reset();
      return frozen;
    }
  }
  measuring_->since = now;
  measuring_->until = now + length;
  measuring_->begun = local::read_host(now, groups);
  return {};
}

void ContentionWatch::thaw() {
  if (!measuring_) return;
  for (const local::TaskGroup& one : measuring_->frozen) (void)one.group.thaw();
  measuring_->frozen.clear();
  (void)keep_frozen(lease_path(), {});
}

void ContentionWatch::measured(measure::Speed seen, api::SpeedRow& speed, api::UseRow& use) const {
  const Measuring& measuring = *measuring_;
  const auto self = std::ranges::find_if(workloads_, [&](const Workload& one) {
    return one.kind == measuring.key.first && one.name == measuring.key.second;
  });
  if (self == workloads_.end()) return;
  const local::HostReading now = local::read_host(ports_.now(), ports_.groups());
  measure::Use taken;
  for (const AllocationId allocation : self->allocations) {
    local::add_use(taken, local::use_between(measuring.begun, now, allocation));
  }
  if (self->kind == api::WorkKind::task) seen.step = step_of(*self, measuring.since);
  speed = row_of(seen);
  use = row_of(self->name, taken);
  const auto await = local::machine_between(measuring.begun, now).disk_await;
  if (await) use.disk_await_us = await->value;
  if (const auto rate = steps_rate(*self, now.at)) use.steps_milli_per_s = *rate;
}

Result<void> ContentionWatch::begin_mixed(const measure::Speed& speed) {
  if (measuring_->until <= ports_.now()) {
    thaw();
    measuring_.reset();
    return fail(ErrorCode::conflict, "it took longer than was said: neighbours run again");
  }
  measured(speed, measuring_->report.alone, measuring_->report.use_alone);
  thaw();
  const Time now = ports_.now();
  measuring_->phase = api::BaselineOrder::Phase::mixed;
  measuring_->since = now;
  measuring_->until = now + until_next;
  measuring_->begun = local::read_host(now, ports_.groups());
  return {};
}

Result<void> ContentionWatch::store(const api::BaselineOrder& order, const measure::Speed& speed) {
  api::BaselineReport& report = measuring_->report;
  measured(speed, report.mixed, report.use_mixed);
  report.client_alone = order.client_alone;
  report.client_mixed = order.client_mixed;
  // What the client has felt in just this phase is better than a window of the last minute.
  const auto take = [](api::SpeedRow& into, const api::SpeedRow& client) {
    for (const auto place : {&api::SpeedRow::first_byte_p50_us, &api::SpeedRow::first_byte_p99_us,
                             &api::SpeedRow::requests_milli_per_s}) {
      if (client.*place != api::unknown) into.*place = client.*place;
    }
  };
  take(report.alone, report.client_alone);
  take(report.mixed, report.client_mixed);
  report.at_us = ports_.now().us;
  const Key key = measuring_->key;
  const std::string text = encode(report);
  measuring_.reset();
  if (auto made = local::make_directory(state_dir_ + "/baselines", 0700); !made) return made;
  if (auto kept = local::write_durably(baseline_path(key), text, 0600); !kept) return kept;
  alone_.erase(key);
  load_baseline(key);
  return {};
}

}  // namespace neap::daemon
