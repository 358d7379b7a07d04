#include "core/rules/signals.h"

#include <algorithm>

#include "core/rules/tide.h"

namespace neap {

namespace {

// One replica fewer serves the same requests more slowly: half of the bound leaves room for that.
constexpr std::int64_t room_of_latency = 2;

// tidy-allow(boolean-parameter): what was seen, not a switch
void track(Time& since, Time now, bool holds) {
  if (!holds) {
    since = Time::never();
  } else if (since == Time::never()) {
    since = now;
  }
}

bool somebody_asked(const ServiceMeasured& sample) {
  return sample.in_use.value_or(0) > 0 || sample.ended.value_or(0) > 0;
}

class Signals {
 public:
  Signals(const ServiceState& service, const ScaleSpec& scale, const ServiceMeasured& sample,
          std::int64_t ready)
      : service_(service), scale_(scale), sample_(sample), ready_(ready) {}

  [[nodiscard]] bool any_above() const {
    const bool used = in_use_ppm() > scale_.up_above.value * capacity();
    const bool queues = sample_.queued && *sample_.queued > scale_.queue_above * ready_;
    const auto bound = first_byte_bound(service_.spec, scale_);
    const bool late = bound && sample_.first_byte_p95 && *sample_.first_byte_p95 > *bound;
    return used || queues || late;
  }

  [[nodiscard]] bool all_below() const {
    return in_use_ppm() < scale_.down_below.value * capacity() && queue_is_empty() && is_quick();
  }

 private:
  [[nodiscard]] std::int64_t capacity() const { return ready_ * service_.spec.concurrency; }
  [[nodiscard]] std::int64_t in_use_ppm() const { return *sample_.in_use * all_ppm.value; }

  [[nodiscard]] bool queue_is_empty() const {
    return sample_.queued ? *sample_.queued == 0 : !service_.queue_told;
  }

  // Where nobody asks, nobody waits either.
  [[nodiscard]] bool is_quick() const {
    const auto bound = first_byte_bound(service_.spec, scale_);
    if (!bound) return true;
    if (sample_.first_byte_p95) return *sample_.first_byte_p95 * room_of_latency <= *bound;
    return !service_.first_byte_told || !somebody_asked(sample_);
  }

  const ServiceState& service_;
  const ScaleSpec& scale_;
  const ServiceMeasured& sample_;
  std::int64_t ready_;
};

}  // namespace

std::optional<Micros> first_byte_bound(const ServiceSpec& service, const ScaleSpec& scale) {
  return scale.first_byte_above ? scale.first_byte_above : service.slo_first_byte;
}

bool may_sleep(const PoolState& state, const ServiceState& service, Time now) {
  return service.idle_since != Time::never() &&
         now - service.idle_since >= scale_of(state, service).down_for;
}

void begin_windows(const PoolState& state, ServiceState& service) {
  // Where replicas follow the tide as many go at once as were not needed.
  if (scale_of(state, service).mode == ScaleMode::tidal) return;
  service.above_since = service.below_since = Time::never();
}

void note_signals(const PoolState& state, ServiceState& service, const ServiceMeasured& sample) {
  const ScaleSpec& scale = scale_of(state, service);
  const bool gap =
      service.last_sample == Time::never() || state.now - service.last_sample > scale.stale_after;
  service.in_use = sample.in_use;
  service.queued = sample.queued;
  service.first_byte = sample.first_byte_p95;
  service.queue_told = service.queue_told || sample.queued.has_value();
  service.first_byte_told = service.first_byte_told || sample.first_byte_p95.has_value();
  const std::int64_t ready = std::count_if(service.replicas.begin(), service.replicas.end(),
                                           [&](TaskId id) { return state.tasks.at(id).ready; });
  if (!sample.in_use || gap || ready == 0) {
    service.above_since = service.below_since = service.idle_since = Time::never();
  }
  if (ready > 0) {
    service.wake = false;
  } else if (somebody_asked(sample)) {
    service.wake = true;
  }
  if (!sample.in_use) return;
  service.last_sample = state.now;
  track(service.idle_since, state.now, ready > 0 && !somebody_asked(sample));
  note_tide(state, service, *sample.in_use);
  if (ready == 0 || scale.mode == ScaleMode::tidal) return;
  const Signals signals(service, scale, sample, ready);
  track(service.above_since, state.now, signals.any_above());
  track(service.below_since, state.now, signals.all_below());
}

}  // namespace neap
