// A back-test of the guard as a picture: demand, guard, buffer, violations.
#pragma once

#include <string>

#include "core/model/lead_time/guard.h"
#include "simulate/guard/backtest.h"

namespace neap::whatif {

// A column of a picture: the extremes of the slots that it stands for.
struct GuardColumn {
  std::int64_t demand = 0;       // highest known
  std::int64_t guard = 0;        // lowest
  std::int64_t with_buffer = 0;  // lowest
  bool known = false;            // of a slot at least
  bool violated = false;         // the guard, in a scored slot
};
// Of the scored slots, at most so many.
[[nodiscard]] std::vector<GuardColumn> guard_columns(const simulate::Backtest& result,
                                                     const simulate::SlotDemand& demand,
                                                     std::int64_t most);

// One HTML page. `notes` are paragraphs above the picture.
[[nodiscard]] std::string guard_picture(const lead_time::GuardSpec& spec,
                                        const simulate::Backtest& result,
                                        const simulate::SlotDemand& demand,
                                        const std::vector<std::string>& notes);

}  // namespace neap::whatif
