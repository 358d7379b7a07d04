#include "config/scale.h"

namespace neap::config {

void read_scale(Fields& scale, ScaleSpec& into) {
  scale.choice<ScaleMode>("mode", into.mode,
                          {{"thresholds", ScaleMode::thresholds}, {"tidal", ScaleMode::tidal}});
  scale.part("up_above", into.up_above);
  scale.duration("up_for", into.up_for, Micros(0), hours(24));
  scale.part("down_below", into.down_below);
  scale.duration("down_for", into.down_for, Micros(0), hours(24));
  scale.duration("stale_after", into.stale_after, seconds(1), hours(1));
  scale.part("headroom", into.headroom);
  scale.duration("dwell", into.dwell, Micros(0), hours(24));
  scale.duration("trend", into.trend, Micros(0), hours(1));
  scale.part("plan", into.plan);
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
