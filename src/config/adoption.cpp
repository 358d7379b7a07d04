#include "config/adoption.h"

#include <algorithm>

namespace neap::config {

namespace {

// What a preset says beside its ratio. Lengths in µs, parts in millionths.
struct Row {
  Preset preset;
  std::int32_t quarters;  // of the devices, for inference
  Isolation isolation;
  Ppm up_above, down_below;
  Micros up_for, down_for;
  std::int32_t interval_min;  // between checkpoints
  Micros protected_for;
  std::int32_t budget_per_day;
};

constexpr Row rows[] = {
    {Preset::inference_led, 3, Isolation::dedicated_windows, Ppm(600'000), Ppm(200'000), minutes(2),
     minutes(10), 5, minutes(15), 8},
    {Preset::balanced, 2, Isolation::shares, Ppm(700'000), Ppm(200'000), minutes(3), minutes(5), 10,
     minutes(30), 4},
    {Preset::training_led, 1, Isolation::time_slices, Ppm(800'000), Ppm(300'000), minutes(3),
     minutes(5), 15, minutes(60), 2},
};

const Row* row_of(Preset preset) {
  const auto* const found = std::find_if(std::begin(rows), std::end(rows),
                                         [&](const Row& row) { return row.preset == preset; });
  return found == std::end(rows) ? nullptr : found;
}

std::string minutes_text(Micros time) { return std::to_string(time.value / 60'000'000) + "min"; }
std::string part_text(Ppm part) { return std::to_string(part.value / 10'000) + "%"; }

class Deriver {
 public:
  Deriver(const Stated& stated, PoolSpec& into) : stated_(stated), into_(into) {}

  template <class T>
  void give(const char* key, T& target, T value, std::string text) {
    if (stated_(key)) return;
    target = value;
    into_.derived.push_back({key, std::move(text)});
  }

 private:
  const Stated& stated_;
  PoolSpec& into_;
};

}  // namespace

std::int32_t inference_part(Preset preset, std::int32_t devices) {
  const Row* row = row_of(preset);
  return row == nullptr ? 0 : (devices * row->quarters + 3) / 4;
}

void derive(Preset preset, std::int32_t devices, const Stated& stated, PoolSpec& into) {
  const Row* row = row_of(preset);
  if (row == nullptr) return;
  into.isolation = row->isolation;
  Deriver deriver(stated, into);
  const std::int32_t part = inference_part(preset, devices);
  // Half of its part is never lent; what is stated of one of the two leaves the rest to the other.
  const std::int32_t guard =
      stated("pool.elastic_buffer") ? std::max(0, part - into.elastic_buffer) : (part + 1) / 2;
  deriver.give("pool.inference_guard_min", into.inference_guard_min, guard, std::to_string(guard));
  const std::int32_t buffer = std::max(0, part - into.inference_guard_min);
  deriver.give("pool.elastic_buffer", into.elastic_buffer, buffer, std::to_string(buffer));
  deriver.give("scale.up_above", into.scale.up_above, row->up_above, part_text(row->up_above));
  deriver.give("scale.up_for", into.scale.up_for, row->up_for, minutes_text(row->up_for));
  deriver.give("scale.down_below", into.scale.down_below, row->down_below,
               part_text(row->down_below));
  deriver.give("scale.down_for", into.scale.down_for, row->down_for, minutes_text(row->down_for));
  PreemptSpec& preempt = into.preempt;
  deriver.give("preempt.checkpoint_interval_min", preempt.checkpoint_interval,
               minutes(row->interval_min), std::to_string(row->interval_min));
  deriver.give("preempt.protected_for", preempt.protect_min, row->protected_for,
               minutes_text(row->protected_for));
  deriver.give("preempt.budget_per_day", preempt.budget_per_day, row->budget_per_day,
               std::to_string(row->budget_per_day));
}

void read_ratio(Fields& pool, PoolSpec& into) {
  pool.choice<Preset>("preset", into.preset,
                      {{"inference-led", Preset::inference_led},
                       {"balanced", Preset::balanced},
                       {"training-led", Preset::training_led}});
  pool.choice<AdoptionStage>("stage", into.adoption.begin,
                             {{"physical", AdoptionStage::physical},
                              {"memory", AdoptionStage::memory},
                              {"time", AdoptionStage::time}});
}

void read_adoption(Fields adoption, AdoptionSpec& into) {
  adoption.duration("stabilise", into.stabilise, Micros(0), a_year);
  adoption.whole("least_starts", into.least_starts, {0, 1'000'000});
  adoption.whole("most_faults", into.most_faults, {0, 1'000'000});
  adoption.whole("most_breaches", into.most_breaches, {0, 1'000'000});
  adoption.part("most_failed", into.most_failed);
  adoption.part("most_short", into.most_short);
  adoption.part("least_kept", into.least_kept);
  adoption.close();
}

void read_starts(Fields starts, StartsSpec& into) {
  starts.whole("at_once", into.at_once, {0, 100'000});
  starts.duration("apart", into.apart, Micros(0), hours(1));
  starts.duration("loading", into.loading, seconds(1), hours(24));
  starts.close();
}

}  // namespace neap::config
