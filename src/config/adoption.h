// Presets of the ratio between the two kinds of work (D10) and the stages of adoption (F8), as the
// pool file gives them.
#pragma once

#include <functional>
#include <string_view>

#include "config/fields.h"
#include "core/model/spec.h"

namespace neap::config {

// `pool.preset` and `pool.stage`.
void read_ratio(Fields& pool, PoolSpec& into);
void read_adoption(Fields adoption, AdoptionSpec& into);
void read_starts(Fields starts, StartsSpec& into);

// The fewest devices that a preset divides.
inline constexpr std::int32_t preset_devices_min = 4;
// Of `devices`, for inference: three quarters, a half or a quarter, rounded up.
[[nodiscard]] std::int32_t inference_part(Preset preset, std::int32_t devices);

// What the file does not state, from the preset. `stated` tells by key, such as
// "pool.elastic_buffer"; whoever stated it wins. Notes in into.derived what it gave.
using Stated = std::function<bool(std::string_view)>;
void derive(Preset preset, std::int32_t devices, const Stated& stated, PoolSpec& into);

}  // namespace neap::config
