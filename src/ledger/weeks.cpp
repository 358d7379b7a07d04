#include "ledger/weeks.h"

#include <algorithm>

#include "core/rules/tide.h"

namespace neap::ledger {

namespace {

constexpr std::int64_t longest_gap = 60;  // minutes of silence for which the last sample stands

std::int64_t milli_of_replicas(const ServiceState& service, std::int64_t replicas) {
  return replicas * service.spec.request.count * service.spec.request.share.value;
}

// What a service needs by its load; where that is not known, what it has.
std::int64_t needed_milli(const PoolState& state, const ServiceState& service) {
  const std::int64_t held =
      std::count_if(service.replicas.begin(), service.replicas.end(),
                    [&](TaskId id) { return holds_devices(state.tasks.at(id).phase); });
  if (!service.in_use) return milli_of_replicas(service, held);
  const std::int64_t wanted = replicas_for(service, *service.in_use);
  return milli_of_replicas(service, std::max<std::int64_t>(wanted, service.spec.min_replicas));
}

void count_devices(const PoolState& state, WeekSlot& sample) {
  for (const DeviceState& device : state.devices) {
    if (!is_usable(state, device) || device.role == Role::dedicated) continue;
    ++sample.devices;
    for (const Tenant& tenant : device.tenants) {
      const bool trains = state.tasks.at(tenant.task).purpose != Purpose::inference;
      if (trains) sample.trained += tenant.share.value;
    }
    if (device.role != Role::guard) continue;
    sample.guard += whole_device.value;
    sample.guard_free += (whole_device - device.used_share).value;
  }
}

void add(WeekSlot& slot, const WeekSlot& sample, std::int64_t minutes) {
  slot.minutes += minutes;
  slot.devices = std::max(slot.devices, sample.devices);
  slot.needed += sample.needed * minutes;
  slot.trained += sample.trained * minutes;
  slot.guard_free += sample.guard_free * minutes;
  slot.guard += sample.guard * minutes;
  slot.needed_most = std::max(slot.needed_most, sample.needed);
  slot.short_minutes += sample.short_minutes * minutes;
  slot.waiting += sample.waiting * minutes;
}

}  // namespace

WeekSlot& Weeks::slot_at(Time at) {
  const std::int64_t number = at.us / week_slot.value;
  if (slots_.empty() || slots_.back().number != number) {
    slots_.push_back(WeekSlot{.number = number});
    if (slots_.size() > week_slots_kept) slots_.pop_front();
  }
  return slots_.back();
}

void Weeks::sample(const PoolState& state) {
  WeekSlot now;
  count_devices(state, now);
  for (const ServiceState& service : state.services) {
    if (service.removed) continue;
    now.needed += needed_milli(state, service);
    if (is_short(state, service, state.now)) now.short_minutes = 1;
  }
  state.tasks.for_each([&](const TaskState& task) {
    const bool waits = task.phase == Phase::waiting && task.purpose != Purpose::inference;
    now.waiting += waits ? 1 : 0;
  });
  last_ = now;
}

void Weeks::note(const PoolState& state) {
  const AdoptionFigures& seen = state.adoption.seen;
  if (state.adoption.since != since_) {
    since_ = state.adoption.since;
    yields_ = kept_ = 0;
  }
  const std::int64_t minute = state.now.us / minutes(1).value;
  const bool counted = seen.yields != yields_ || seen.kept != kept_;
  if (minute == minute_ && !counted) return;
  if (minute != minute_ && state.configured) {
    // What was seen last stands for the minutes in which nothing happened.
    if (last_ && minute_ >= 0) {
      const std::int64_t from = std::max(minute_ + 1, minute - longest_gap);
      for (std::int64_t m = from; m < minute; ++m) {
        add(slot_at(Time(m * minutes(1).value)), *last_, 1);
      }
    }
    sample(state);
    add(slot_at(state.now), *last_, 1);
    minute_ = minute;
  }
  if (!counted) return;
  WeekSlot& slot = slot_at(state.now);
  slot.yields += std::max<std::int64_t>(0, seen.yields - yields_);
  slot.kept += std::max<std::int64_t>(0, seen.kept - kept_);
  yields_ = seen.yields;
  kept_ = seen.kept;
}

void Weeks::encode(Encoder& out) const {
  out.put(minute_);
  out.put(yields_);
  out.put(kept_);
  out.put(since_);
  out.put(last_);
  out.put_unsigned(slots_.size());
  for (const WeekSlot& slot : slots_) out.put(slot);
}

bool Weeks::decode(Decoder& in) {
  in.get(minute_);
  in.get(yields_);
  in.get(kept_);
  in.get(since_);
  in.get(last_);
  const std::uint64_t count = in.get_unsigned();
  if (count > week_slots_kept) return false;
  slots_.clear();
  for (std::uint64_t i = 0; i < count && !in.failed(); ++i) in.get(slots_.emplace_back());
  return !in.failed();
}

}  // namespace neap::ledger
