#include "simulate/assess/assess.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <span>

#include "simulate/assess/ppm.h"

namespace neap::assess {

namespace {

constexpr std::int64_t milli_of_one = 1'000;
constexpr std::int64_t coincident_below_ppm = 100'000;  // complementary, of curves that coincide

std::int64_t up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

Wide sum_of(std::span<const std::int64_t> values) {
  Wide sum = 0;
  for (const std::int64_t value : values) sum += value;
  return sum;
}

// What inference may need until lent devices are back, with its reserve: thousandths of devices.
std::vector<std::int64_t> claims_of(const AssessSpec& spec, std::span<const std::int64_t> use,
                                    Micros slot) {
  const auto ahead = static_cast<std::size_t>(up(spec.lead.value, slot.value));
  std::vector<std::int64_t> claims(use.size());
  std::deque<std::size_t> most;  // of the slots from this one on, falling use
  for (std::size_t i = use.size() + ahead; i-- > 0;) {
    if (i < use.size()) {
      while (!most.empty() && use[most.front()] <= use[i]) most.pop_front();
      most.push_front(i);
    }
    if (i >= use.size()) continue;
    while (most.back() > i + ahead) most.pop_back();
    const std::int64_t peak = use[most.back()];
    claims[i] = up(up(peak * (million + spec.reserve.value), million), milli_of_one) * milli_of_one;
  }
  return claims;
}

struct Shared {
  std::int64_t switches = 0;  // devices that changed sides, and back
  std::int64_t longest = 0;   // slots that work was put off by
};

// Training beside inference on so many devices, slot by slot: what may be interrupted runs where
// there is room and is put off where there is none. Nothing: they are too few.
class Trial {
 public:
  Trial(const AssessSpec& spec, std::span<const std::int64_t> training,
        std::span<const std::int64_t> inference, std::span<const std::int64_t> claims, Micros slot)
      : spec_(spec), training_(training), inference_(inference), claims_(claims), slot_(slot) {}

  // The traces twice in a row: at the end of the second time no more may wait than of the first.
  [[nodiscard]] std::optional<Shared> run(std::int64_t devices) const {
    const std::size_t slots = training_.size();
    const auto most_delay = static_cast<std::size_t>(spec_.most_delay.value / slot_.value);
    Shared shared;
    std::deque<Work> waiting;
    // Training takes devices from one end, inference from the other: so many were training's last.
    std::int64_t trainings = 0;
    Wide backlog = 0;
    for (std::size_t now = 0; now < 2 * slots; ++now) {
      if (now == slots) {
        shared = Shared();
        backlog = sum_of(waiting);
      }
      const std::size_t i = now % slots;
      if (inference_[i] > devices * milli_of_one) return std::nullopt;
      const auto movable =
          static_cast<std::int64_t>(Wide{training_[i]} * spec_.interruptible.value / million);
      const std::int64_t room = devices * milli_of_one -
                                std::min(devices * milli_of_one, claims_[i]) -
                                (training_[i] - movable);
      if (room < 0) return std::nullopt;
      if (movable > 0) waiting.push_back({now, movable});
      const std::int64_t served = serve(waiting, room, now, shared);
      // Whole devices that inference takes back; one that merely has no work changes no side. What
      // they cost is work to do again, of what was interrupted.
      const std::int64_t left = devices - std::min(devices, up(claims_[i], milli_of_one));
      if (const std::int64_t back = trainings - left; back > 0) {
        shared.switches += back;
        const auto lost =
            static_cast<std::int64_t>(Wide{back} * spec_.switch_cost.value * milli_of_one *
                                      spec_.interruptible.value / million);
        const std::int64_t again = up(lost, slot_.value);
        if (again > 0) waiting.push_front({waiting.empty() ? now : waiting.front().arrived, again});
        trainings = left;
      }
      trainings = std::max(trainings, up(training_[i] - movable + served, milli_of_one));
      if (!waiting.empty() && now - waiting.front().arrived >= most_delay) return std::nullopt;
    }
    if (sum_of(waiting) > backlog) return std::nullopt;
    return shared;
  }

 private:
  struct Work {
    std::size_t arrived;  // slot
    std::int64_t left;    // thousandths of a device, for a slot
  };

  static Wide sum_of(const std::deque<Work>& waiting) {
    Wide sum = 0;
    for (const Work& work : waiting) sum += work.left;
    return sum;
  }

  // First come, first served; what was served.
  static std::int64_t serve(std::deque<Work>& waiting, std::int64_t room, std::size_t now,
                            Shared& shared) {
    std::int64_t served = 0;
    while (!waiting.empty() && served < room) {
      Work& first = waiting.front();
      const std::int64_t part = std::min(first.left, room - served);
      served += part;
      first.left -= part;
      shared.longest = std::max(shared.longest, static_cast<std::int64_t>(now - first.arrived));
      if (first.left == 0) waiting.pop_front();
    }
    return served;
  }

  const AssessSpec& spec_;
  std::span<const std::int64_t> training_, inference_, claims_;
  Micros slot_;
};

Result<void> check(const AssessSpec& spec, const UseTrace& training, const UseTrace& inference) {
  const auto wrong = [](const char* field, const char* message) -> Result<void> {
    return fail(ErrorCode::invalid_argument, message, field);
  };
  const auto is_part = [](Ppm part) { return part.value >= 0 && part.value <= million; };
  if (training.slot != inference.slot) return wrong("slot", "expected the same for both traces");
  const auto slots =
      static_cast<std::int64_t>(std::min(training.milli.size(), inference.milli.size()));
  if (training.slot < minutes(1) || hours(1).value % training.slot.value != 0) {
    return wrong("slot", "expected 1min to 1h, and a divisor of an hour");
  }
  if (slots * training.slot.value < hours(24).value) {
    return wrong("traces", "expected a day or more that both traces cover");
  }
  if (!is_part(spec.interruptible)) return wrong("interruptible", "expected 0 % to 100 %");
  if (!is_part(spec.reserve)) return wrong("reserve", "expected 0 % to 100 %");
  if (!is_part(spec.least_gain)) return wrong("least_gain", "expected 0 % to 100 %");
  if (spec.lead < Micros(0) || spec.lead > hours(24)) return wrong("lead", "expected 0s to 24h");
  if (spec.switch_cost < Micros(0) || spec.switch_cost > hours(24)) {
    return wrong("switch_cost", "expected 0s to 24h");
  }
  if (spec.most_delay < training.slot || spec.most_delay > hours(24 * 30)) {
    return wrong("most_delay", "expected a slot to 30d");
  }
  return {};
}

Result<std::int64_t> size_of(std::int64_t given, std::span<const std::int64_t> use,
                             const char* field) {
  const std::int64_t peak = up(*std::max_element(use.begin(), use.end()), milli_of_one);
  if (given == 0) return std::max<std::int64_t>(1, peak);
  if (given >= peak && given <= most_use_devices) return given;
  return fail(ErrorCode::invalid_argument,
              "expected at least the " + std::to_string(peak) + " devices that its trace uses",
              field);
}

void fill_curves(std::span<const std::int64_t> training, std::span<const std::int64_t> inference,
                 Micros slot, Assessment& out) {
  std::array<Wide, 24> a{}, b{};
  std::array<std::int64_t, 24> counted{};
  for (std::size_t i = 0; i < training.size(); ++i) {
    const auto hour =
        static_cast<std::size_t>(static_cast<std::int64_t>(i) * slot.value / hours(1).value % 24);
    a[hour] += training[i];
    b[hour] += inference[i];
    ++counted[hour];
  }
  std::int64_t peak_a = 0, peak_b = 0, peak_both = 0;
  for (std::size_t h = 0; h < 24; ++h) {
    out.training[h] = static_cast<std::int64_t>(a[h] / counted[h]);
    out.inference[h] = static_cast<std::int64_t>(b[h] / counted[h]);
    peak_a = std::max(peak_a, out.training[h]);
    peak_b = std::max(peak_b, out.inference[h]);
    peak_both = std::max(peak_both, out.training[h] + out.inference[h]);
  }
  out.complementary_ppm = ppm_of(peak_a + peak_b - peak_both, std::min(peak_a, peak_b));
}

std::string why_not(const AssessSpec& spec, const Assessment& a) {
  if (spec.interruptible.value * 2 < million) {
    return "only " + percent(spec.interruptible.value) + " of the training may be interrupted";
  }
  if (a.mean_over_peak_ppm >= flat_from_ppm) {
    return "inference is flat: its mean is " + percent(a.mean_over_peak_ppm) +
           " of its peak, and little can be lent";
  }
  if (a.use_apart_ppm >= flat_from_ppm) {
    return "both are busy already: " + percent(a.use_apart_ppm) + " of their devices are in use";
  }
  if (a.complementary_ppm < coincident_below_ppm) {
    return "both peak at the same hours, and training would be put off too long";
  }
  return "what one leaves free is too little or too short for the other";
}

void judge(const AssessSpec& spec, Assessment& out) {
  const std::int64_t least =
      std::max<std::int64_t>(1, up(out.apart * spec.least_gain.value, million));
  const std::string use =
      percent(out.use_apart_ppm) + " of " + std::to_string(out.apart) + " devices in use apart";
  if (out.saved < least) {
    out.gain = Gain::none;
    out.verdict = "no gain: " + why_not(spec, out) + " (" + use + "; " + std::to_string(out.saved) +
                  " devices saved, at least " + std::to_string(least) + " would be a gain)";
    return;
  }
  out.gain = spec.interruptible.value * 2 < million ? Gain::limited : Gain::full;
  out.verdict = std::string(out.gain == Gain::limited ? "limited gain: " : "gain: ") +
                std::to_string(out.saved) + " of " + std::to_string(out.apart) +
                " devices are saved; " + use + ", " + percent(out.use_together_ppm) + " of " +
                std::to_string(out.together) + " together";
  if (out.gain == Gain::limited) {
    out.verdict +=
        "; only " + percent(spec.interruptible.value) + " of the training may be interrupted";
  }
}

}  // namespace

Result<Assessment> assess(const AssessSpec& spec, const UseTrace& training_trace,
                          const UseTrace& inference_trace) {
  if (auto good = check(spec, training_trace, inference_trace); !good) {
    return tl::unexpected(good.error());
  }
  const Micros slot = training_trace.slot;
  const std::size_t slots = std::min(training_trace.milli.size(), inference_trace.milli.size());
  const auto training = std::span(training_trace.milli).first(slots);
  const auto inference = std::span(inference_trace.milli).first(slots);
  const auto for_training = size_of(spec.training_devices, training, "training_devices");
  if (!for_training) return tl::unexpected(for_training.error());
  const auto for_inference = size_of(spec.inference_devices, inference, "inference_devices");
  if (!for_inference) return tl::unexpected(for_inference.error());

  Assessment out;
  out.slots = static_cast<std::int64_t>(slots);
  out.apart = *for_training + *for_inference;
  const Wide used = sum_of(training) + sum_of(inference);
  const Wide each = Wide{out.slots} * milli_of_one;
  out.use_apart_ppm = ppm_of(used, each * out.apart);
  fill_curves(training, inference, slot, out);
  const std::int64_t peak = *std::max_element(inference.begin(), inference.end());
  out.mean_over_peak_ppm = ppm_of(sum_of(inference), Wide{peak} * out.slots);

  const std::vector<std::int64_t> claims = claims_of(spec, inference, slot);
  const Trial trial(spec, training, inference, claims, slot);
  // One device more is never worse; as many as apart may be too few, with a reserve on top.
  std::int64_t few = 0, enough = out.apart + 1;
  std::optional<Shared> shared;
  while (enough - few > 1) {
    const std::int64_t middle = few + (enough - few) / 2;
    if (const auto found = trial.run(middle)) {
      enough = middle;
      shared = found;
    } else {
      few = middle;
    }
  }
  out.together = std::min(enough, out.apart);
  out.saved = out.apart - out.together;
  out.use_together_ppm = ppm_of(used, each * out.together);
  if (shared) {
    const Wide length = Wide{out.slots} * slot.value;
    out.switches_per_day_milli =
        static_cast<std::int64_t>(Wide{shared->switches} * milli_of_one * hours(24).value / length);
    out.switching_ppm =
        ppm_of(Wide{shared->switches} * spec.switch_cost.value, length * out.together);
    out.longest_delay = slot * shared->longest;
  }
  judge(spec, out);
  return out;
}

}  // namespace neap::assess
