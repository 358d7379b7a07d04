// Keeps a forecast of starts fresh beside the loop while somebody asks for it: on a thread of its
// own, on a copy of the state. Of it the wait that is expected in each tier alone reaches the
// state, as events that the loop is handed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/model/state.h"
#include "simulate/forecast/calibration.h"
#include "simulate/forecast/forecast.h"
#include "simulate/forecast/history.h"

namespace neap::daemon {

class StartForecaster {
 public:
  using Look = std::function<void(const PoolState&)>;
  struct Options {
    std::chrono::milliseconds every{30'000};       // from one beginning to the next
    std::chrono::milliseconds most{15'000};        // then it makes do with the draws it has
    std::chrono::milliseconds patience{3'000};     // of who asks, for the first one
    std::chrono::milliseconds kept_fresh{60'000};  // after the last question
    Micros oldest = seconds(60);                   // an older one is not shown
  };

  // `query` lets a look at the state happen, on the loop's thread, soon or never.
  // `tell` is handed what is expected of each tier now, where that is new.
  using Tell = std::function<void(std::vector<WaitExpected>)>;
  StartForecaster(std::function<void(Look)> query, std::function<Time()> clock, Options options,
                  Tell tell = {});
  ~StartForecaster() { stop(); }
  StartForecaster(const StartForecaster&) = delete;
  StartForecaster& operator=(const StartForecaster&) = delete;

  // The newest, nothing when there is none that is fresh. The first question waits a little.
  [[nodiscard]] std::shared_ptr<const forecast::Forecast> wanted();
  // One is made soon; for who does not wait for it.
  void want();
  // Who waits for one goes away without, and a replay that is running ends.
  void stop();

 private:
  struct Copy {
    PoolState state;
    Time made;
  };
  void work(const std::stop_token& stop);
  [[nodiscard]] std::shared_ptr<Copy> copy_of_state(const std::stop_token& stop);
  void make_one(const std::stop_token& stop);
  [[nodiscard]] bool is_fresh() const;

  std::function<void(Look)> query_;
  std::function<Time()> clock_;
  const Options options_;
  const Tell tell_;
  forecast::History history_;  // these two are the thread's alone
  forecast::Calibration calibration_{1};
  std::uint64_t rounds_ = 0;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::shared_ptr<const forecast::Forecast> latest_;
  std::chrono::steady_clock::time_point wanted_until_;
  bool stopping_ = false;
  std::jthread thread_;
};

}  // namespace neap::daemon
