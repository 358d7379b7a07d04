// What a forecast of starts says of the wait in each tier, for rules that need one (POLICIES 1, 4):
// stored in the state as events, so that decisions never compute it.
#pragma once

#include <utility>
#include <vector>

#include "core/model/events.h"
#include "core/model/state.h"
#include "simulate/forecast/forecast.h"

namespace neap::daemon {

class ExpectedWaits {
 public:
  // Of the state that the forecast is made of.
  explicit ExpectedWaits(const PoolState& state);

  // For each tier of training whose expected wait has become another one, in whole minutes: the
  // median wait of whoever waits longest there, 0 where nobody waits.
  [[nodiscard]] std::vector<WaitExpected> changed_by(const forecast::Forecast& forecast) const;

 private:
  std::vector<std::pair<TaskId, TierId>> waiting_;
  std::vector<WaitExpected> known_;  // by tier; no name: of inference
};

}  // namespace neap::daemon
