#include "config/scale.h"

namespace neap::config {

namespace {

struct Dwell {
  bool measured = false;
  Micros length;
};

Parsed<Dwell> parse_dwell(std::string_view text) {
  if (text == "measured") return Dwell{true, {}};
  const Parsed<Micros> length = parse_duration(text);
  if (!length) return tl::unexpected(length.error() + ", or `measured`");
  if (*length > hours(24)) {
    return tl::unexpected(to_text(*length) + " is out of range; expected 0s to 24h, or `measured`");
  }
  return Dwell{false, *length};
}

}  // namespace

void read_scale(Fields& scale, ScaleSpec& into) {
  scale.choice<ScaleMode>("mode", into.mode,
                          {{"thresholds", ScaleMode::thresholds}, {"tidal", ScaleMode::tidal}});
  scale.part("up_above", into.up_above);
  scale.duration("up_for", into.up_for, Micros(0), hours(24));
  scale.part("down_below", into.down_below);
  scale.duration("down_for", into.down_for, Micros(0), hours(24));
  scale.duration("stale_after", into.stale_after, seconds(1), hours(1));
  scale.part("headroom", into.headroom);
  Dwell dwell;
  if (scale.parsed("dwell", dwell, parse_dwell)) {
    into.dwell_measured = dwell.measured;
    if (!dwell.measured) into.dwell = dwell.length;
  }
  scale.duration("trend", into.trend, Micros(0), hours(1));
  scale.part("plan", into.plan);
  scale.choice<PlanDays>(
      "plan_days", into.plan_days,
      {{"recent", PlanDays::recent}, {"kind", PlanDays::kind}, {"weekday", PlanDays::weekday}});
  scale.duration("switch_leave", into.switch_leave, Micros(0), hours(24));
  scale.duration("switch_load", into.switch_load, Micros(0), hours(24));
  scale.part("switch_budget", into.switch_budget);
  scale.whole("queue_above", into.queue_above, {0, 1'000'000});
  Micros first_byte;
  if (scale.duration("first_byte_above", first_byte, milliseconds(1), hours(1))) {
    into.first_byte_above = first_byte;
  }
  if (into.down_below >= into.up_above) {
    scale.refuse("down_below", "is not below scale.up_above; replicas would come and go for ever");
  }
  scale.close();
}

}  // namespace neap::config
