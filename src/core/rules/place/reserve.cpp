#include "core/rules/place/reserve.h"

#include "core/rules/place/leftover_table.h"

namespace neap::leftover {

Reserve::Reserve(std::span<const Want> wants, std::int64_t weight) {
  std::int64_t pods = 0;
  for (const Want& want : wants) pods += want.pods;
  for (const Want& want : wants) {
    if (want.count < 2) continue;
    const std::int64_t part = weight * (billion * want.pods / pods);
    large_.push_back({want.models, want.count, want.cpu, part});
    all_ += part;
  }
}

std::int64_t Reserve::unusable(std::uint8_t model, std::int32_t cpu, std::int32_t free,
                               std::int32_t unused) const {
  std::int64_t fitting = 0;
  for (const Large& large : large_) {
    const bool fits = unused >= large.count && cpu >= large.cpu &&
                      (large.models == 0 || (large.models >> model & 1U) != 0);
    fitting += fits ? large.weight : 0;
  }
  return (all_ * free - fitting * unused * whole) / (billion / potential_unit);
}

}  // namespace neap::leftover
