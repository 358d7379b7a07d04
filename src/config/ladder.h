// The `ladder` section of the pool file: what is done when training slows a service down (B7).
#pragma once

#include <cstdint>
#include <string_view>

#include "core/model/units.h"

namespace neap::config {

class Fields;

enum class LadderMode : std::uint8_t { off, recommend, automatic };
// per_task: each task in a CPU group of its own. shared: all in one, as without isolation.
enum class CpuGroups : std::uint8_t { per_task, shared };

struct LadderSettings {
  LadderMode mode = LadderMode::off;
  CpuGroups groups = CpuGroups::per_task;
  Micros settle = seconds(15);  // what a rung is given to show what it does
  Micros calm = minutes(5);     // before a rung is given back, at first
};

[[nodiscard]] std::string_view name_of(LadderMode mode);
void read_ladder(Fields ladder, LadderSettings& into);

}  // namespace neap::config
