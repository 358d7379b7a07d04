#include "ledger/metering.h"

#include <algorithm>

namespace neap::ledger {
namespace {

// Responses that are all late carry no busy time; the report covers ten seconds at most.
constexpr std::int64_t longest_report_us = 10'000'000;

// Takes up to `wanted` from what is left of an interval.
std::int64_t take(std::int64_t& rest, std::int64_t wanted) {
  const std::int64_t taken = std::clamp(wanted, std::int64_t{0}, rest);
  rest -= taken;
  return taken;
}

// Settles all up to `now` as one category.
void settle_all(Meter& meter, Category category, Time now, Settled& settled) {
  settled.add(category, (now - meter.mark).value);
  meter.mark = now;
}

// A state with `step` done is durable, as it was at `captured`; training stood still for `stall`
// around and after that.
void settle_durable(Meter& meter, Progress& progress, std::int64_t step, Time captured,
                    Micros stall, Time now, Settled& settled) {
  if (meter.stage == Stage::restoring && meter.begun) {
    settle_all(meter, Category::restore, *meter.begun, settled);  // no step told where it ended
  }
  captured = std::clamp(captured, meter.mark, now);
  std::int64_t rest = (captured - meter.mark).value;
  const std::int64_t growth = std::max<std::int64_t>(0, step - progress.durable);
  progress.durable = std::max(progress.durable, step);

  // Steps done after the captured state stay open, with their part of the busy time.
  StepSums after;
  after.steps = std::clamp(meter.last_step - step, std::int64_t{0}, meter.open.steps);
  if (after.steps > 0) {
    after.busy_us = scaled(after.steps, meter.open.busy_us, meter.open.steps);
  }
  const StepSums inside{meter.open.steps - after.steps, meter.open.busy_us - after.busy_us};

  const bool counts_steps = progress.all.steps > 0;
  if (counts_steps) {
    settled.add(Category::useful_training, take(rest, progress.reference_us(growth)));
    const std::int64_t replayed = std::max<std::int64_t>(0, inside.steps - growth);
    settled.add(Category::lost_and_replayed, take(rest, progress.reference_us(replayed)));
    settled.add(Category::interference,
                take(rest, inside.busy_us - progress.reference_us(inside.steps)));
  }
  std::int64_t saving = (now - captured).value;
  const std::int64_t stalled_after = take(saving, stall.value);
  settled.add(Category::checkpoint_stall, stalled_after + take(rest, stall.value - stalled_after));
  settled.add(counts_steps ? Category::held_idle : Category::unverified, rest);

  meter.mark = captured + Micros(stalled_after);
  meter.open = after;
  meter.stage = Stage::working;
}

// What a healthy replica did not use: idle, or draining once it was asked to stop.
void settle_unused(const Meter& meter, std::int64_t rest, Time now, Settled& settled) {
  std::int64_t drain = 0;
  if (meter.asked) drain = take(rest, (now - std::max(meter.mark, *meter.asked)).value);
  settled.add(Category::drain, drain);
  settled.add(Category::held_idle, rest);
}

}  // namespace

std::int64_t Progress::reference_us(std::int64_t steps) const {
  const StepSums& known = alone.steps > 0 ? alone : all;
  return known.steps > 0 ? scaled(steps, known.busy_us, known.steps) : 0;
}

void started(Meter& meter, StepSource steps, Time now, Settled& settled) {
  if (meter.stage != Stage::restoring) return;
  meter.begun = now;
  if (steps == StepSource::reported) return;  // a later sign, the first step, is still to come
  settle_all(meter, Category::restore, now, settled);
  meter.stage = Stage::working;
}

void steps_reported(Meter& meter, Progress& progress, const StepsReported& report, Company company,
                    Time now, Settled& settled) {
  const std::int64_t count = std::max<std::int64_t>(0, report.count);
  const std::int64_t busy = std::max<std::int64_t>(0, report.busy.value);
  if (meter.stage == Stage::restoring && count > 0) {
    const Time begun = std::clamp(now - Micros(busy), meter.mark, now);
    settle_all(meter, Category::restore, begun, settled);
    meter.stage = Stage::working;
  }
  meter.open.steps += count;
  meter.open.busy_us += busy;
  meter.last_step = std::max(meter.last_step, report.last);
  progress.all.steps += count;
  progress.all.busy_us += busy;
  if (company == Company::shared) return;
  progress.alone.steps += count;
  progress.alone.busy_us += busy;
}

void checkpoint_durable(Meter& meter, Progress& progress, const CheckpointDurable& report, Time now,
                        Settled& settled) {
  settle_durable(meter, progress, report.step, report.captured, report.stall, now, settled);
}

void training_ended(Meter& meter, Progress& progress, Ending ending, Time now, Settled& settled) {
  if (ending == Ending::finished) {
    settle_durable(meter, progress, std::max(meter.last_step, progress.durable), now, Micros(0),
                   now, settled);
    return;
  }
  if (meter.stage == Stage::restoring) {
    settle_all(meter, Category::restore, now, settled);
    return;
  }
  std::int64_t rest = (now - meter.mark).value;
  if (ending == Ending::yielded && progress.all.steps > 0) {
    const std::int64_t unsaved =
        std::clamp(meter.last_step - progress.durable, std::int64_t{0}, meter.open.steps);
    settled.add(Category::lost_and_replayed, take(rest, progress.reference_us(unsaved)));
    settled.add(Category::drain, rest);
  } else if (ending == Ending::yielded && meter.asked) {
    // Nothing tells how much was done between the checkpoint and the request; all of it is lost.
    const std::int64_t drain = take(rest, (now - std::max(meter.mark, *meter.asked)).value);
    settled.add(Category::drain, drain);
    settled.add(Category::lost_and_replayed, rest);
  } else {
    settled.add(Category::lost_and_replayed, rest);
  }
  meter.mark = now;
  meter.open = {};
}

void replica_healthy(Meter& meter, Time now, Settled& settled) {
  if (meter.stage == Stage::working) return;
  settle_all(meter, meter.stage == Stage::restoring ? Category::restore : Category::fault, now,
             settled);
  meter.stage = Stage::working;
}

void replica_unhealthy(Meter& meter, Time now, Settled& settled) {
  if (meter.stage != Stage::working) return;
  settle_unused(meter, (now - meter.mark).value, now, settled);
  meter.mark = now;
  meter.stage = Stage::unhealthy;
}

void requests_served(Meter& meter, const RequestsServed& report, Time now, Settled& settled) {
  if (meter.stage != Stage::working) return;
  std::int64_t rest = (now - meter.mark).value;
  const std::int64_t busy = std::max<std::int64_t>(0, report.busy_within_slo.value);
  const std::int64_t within = std::max<std::int64_t>(0, report.within_slo);
  const std::int64_t late = std::max<std::int64_t>(0, report.responses - within);
  settled.add(Category::useful_inference, within > 0 ? take(rest, busy) : 0);
  const std::int64_t missed =
      within > 0 ? scaled(late, busy, within) : (late > 0 ? longest_report_us : 0);
  settled.add(Category::slo_missed, take(rest, missed));
  settle_unused(meter, rest, now, settled);
  meter.mark = now;
}

void replica_ended(Meter& meter, Time now, Settled& settled) {
  if (meter.stage == Stage::working) {
    settle_unused(meter, (now - meter.mark).value, now, settled);
    meter.mark = now;
    return;
  }
  settle_all(meter, meter.stage == Stage::restoring ? Category::restore : Category::fault, now,
             settled);
}

}  // namespace neap::ledger
