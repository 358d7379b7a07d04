#include "ledger/review.h"

#include <algorithm>
#include <array>

namespace neap::ledger {

namespace {

constexpr std::int64_t minutes_a_day = 24 * 60;
// Of the minutes; more is a shortage. The same part as adoption.most_short.
constexpr std::int64_t short_ppm = 500;
// A guard that was free for more than half of its time, and training that waited for devices.
constexpr std::int64_t idle_ppm = 500'000;
constexpr std::int64_t waiting_worth = 1'000;  // one task on average, in thousandths
// Kept above what was needed, as replicas are.
constexpr std::int64_t headroom_percent = 5;

std::int64_t devices_up(std::int64_t milli) { return (milli + 999) / 1'000; }

std::string tenths(std::int64_t milli) {
  return std::to_string(milli / 1'000) + "." + std::to_string(milli % 1'000 / 100);
}

std::int64_t with_headroom(std::int64_t devices) {
  return (devices * (100 + headroom_percent) + 99) / 100;
}

std::string percent(std::int64_t ppm) {
  return std::to_string(ppm / 10'000) + "." + std::to_string(ppm % 10'000 / 1'000) + " %";
}

std::int64_t quarters_of(Preset preset) {
  switch (preset) {
    case Preset::inference_led:
      return 3;
    case Preset::balanced:
      return 2;
    case Preset::training_led:
      return 1;
    case Preset::none:
      break;
  }
  return 0;
}

Preset preset_of(std::int64_t quarters) {
  constexpr std::array<Preset, 4> presets{Preset::none, Preset::training_led, Preset::balanced,
                                          Preset::inference_led};
  return presets[static_cast<std::size_t>(std::clamp<std::int64_t>(quarters, 0, 3))];
}

std::int64_t part_of(std::int64_t quarters, std::int64_t devices) {
  return (devices * quarters + 3) / 4;
}

std::vector<std::string> evidence_of(const WeekFigures& week, const PoolSpec& spec) {
  std::vector<std::string> out;
  out.push_back("inference needed " + tenths(week.needed_milli) + " of " +
                std::to_string(week.devices) + " devices on average, " +
                std::to_string(week.needed_p95) + " in 95 % of the slots of ten minutes, " +
                std::to_string(week.needed_peak) + " at most");
  out.push_back("guard " + std::to_string(spec.inference_guard_min) + ", free for " +
                percent(week.guard_idle_ppm) + " of its time; buffer " +
                std::to_string(spec.elastic_buffer));
  out.push_back("short of replicas in " + std::to_string(week.short_minutes) + " of " +
                std::to_string(week.minutes) + " minutes");
  out.push_back("training held " + tenths(week.trained_milli) + " devices, and " +
                tenths(week.waiting_milli) + " tasks waited, on average");
  out.push_back(std::to_string(week.yields) + " tasks were asked to make room, " +
                std::to_string(week.kept) + " left with their work saved");
  return out;
}

// Half of what inference needs at most is never lent, as with presets.
void propose_sizes(const WeekFigures& week, std::int64_t part, Review& out) {
  const std::int64_t devices = std::min(part, week.devices);
  out.guard_next = (devices + 1) / 2;
  out.buffer_next = devices - out.guard_next;
}

void raise(const WeekFigures& week, const PoolSpec& spec, Review& out) {
  const std::int64_t quarters = quarters_of(spec.preset);
  const std::int64_t has = spec.inference_guard_min + spec.elastic_buffer;
  if (quarters > 0 && quarters < 3) {
    out.verdict = Verdict::more_for_inference;
    out.preset_next = preset_of(quarters + 1);
    out.why = "services were short of replicas";
    return;
  }
  const std::int64_t wanted = with_headroom(week.needed_peak);
  if (has >= week.devices || wanted <= has) {
    out.why =
        "services were short of replicas, but not for want of guard or buffer: look at how "
        "fast replicas start (scale.up_for, reclaim within preempt.guard_reclaim)";
    return;
  }
  out.verdict = Verdict::more_for_inference;
  propose_sizes(week, wanted, out);
  out.why = "services were short of replicas";
}

void lower(const WeekFigures& week, const PoolSpec& spec, Review& out) {
  const std::int64_t quarters = quarters_of(spec.preset);
  const std::int64_t wanted = with_headroom(week.needed_peak);
  if (quarters > 1) {
    if (wanted > part_of(quarters - 1, week.devices)) {
      out.why =
          "training waited and the guard was free, but the next preset would leave inference " +
          std::to_string(part_of(quarters - 1, week.devices)) + " devices, and it needed " +
          std::to_string(week.needed_peak) + " at most";
      return;
    }
    out.verdict = Verdict::more_for_training;
    out.preset_next = preset_of(quarters - 1);
    out.why =
        "training waited while the guard was free, and inference never needed more than the "
        "next preset leaves it";
    return;
  }
  propose_sizes(week, wanted, out);
  if (out.guard_next >= spec.inference_guard_min) {
    out.guard_next = out.buffer_next = 0;
    out.why = "training waited and the guard was free, but inference needed so much at its peak";
    return;
  }
  out.verdict = Verdict::more_for_training;
  out.why = "training waited while the guard was free";
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::array<std::string_view, 4> names{"too-little-data", "more-for-inference",
                                                  "more-for-training", "no-change"};
  return names[static_cast<std::size_t>(verdict)];
}

WeekFigures figures_of(const Weeks& weeks, Time from, Time to) {
  WeekFigures out;
  std::vector<std::int64_t> peaks;
  std::int64_t needed = 0, trained = 0, waiting = 0, guard = 0, guard_free = 0;
  const std::int64_t first = (from.us + week_slot.value - 1) / week_slot.value;
  for (const WeekSlot& slot : weeks.slots()) {
    if (slot.number < first || slot.number * week_slot.value >= to.us) continue;
    out.minutes += slot.minutes;
    out.devices = std::max(out.devices, slot.devices);
    out.short_minutes += slot.short_minutes;
    out.yields += slot.yields;
    out.kept += slot.kept;
    needed += slot.needed;
    trained += slot.trained;
    waiting += slot.waiting;
    guard += slot.guard;
    guard_free += slot.guard_free;
    if (slot.minutes > 0) peaks.push_back(slot.needed_most);
  }
  if (out.minutes == 0) return out;
  out.needed_milli = needed / out.minutes;
  out.trained_milli = trained / out.minutes;
  out.waiting_milli = waiting * 1'000 / out.minutes;
  if (guard > 0) out.guard_idle_ppm = guard_free * 1'000 / (guard / 1'000 > 0 ? guard / 1'000 : 1);
  std::sort(peaks.begin(), peaks.end());
  if (!peaks.empty()) {
    out.needed_p95 = devices_up(peaks[(peaks.size() * 95 + 99) / 100 - 1]);
    out.needed_peak = devices_up(peaks.back());
  }
  return out;
}

Review review(const WeekFigures& week, const PoolSpec& spec) {
  Review out;
  out.week = week;
  if (week.minutes < review_days_needed * minutes_a_day) {
    out.why = "needs " + std::to_string(review_days_needed) + " days of data, has " +
              tenths(week.minutes * 1'000 / minutes_a_day);
    return out;
  }
  out.verdict = Verdict::none;
  out.evidence = evidence_of(week, spec);
  const bool is_short = week.short_minutes * 1'000'000 > week.minutes * short_ppm;
  const bool waits = week.waiting_milli >= waiting_worth;
  if (is_short) {
    raise(week, spec, out);
  } else if (waits && (week.guard_idle_ppm >= idle_ppm ||
                       spec.inference_guard_min > with_headroom(week.needed_peak))) {
    lower(week, spec, out);
  } else if (waits) {
    out.why = "training waited, but the guard was in use";
  } else {
    out.why = "services had what they needed, and less than one training task waited on average";
  }
  return out;
}

}  // namespace neap::ledger
