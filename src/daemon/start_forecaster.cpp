#include "daemon/start_forecaster.h"

#include <malloc.h>
#include <sys/resource.h>

#include <utility>

#include "daemon/expected_waits.h"

namespace neap::daemon {

StartForecaster::StartForecaster(std::function<void(Look)> query, std::function<Time()> clock,
                                 Options options, Tell tell)
    : query_(std::move(query)),
      clock_(std::move(clock)),
      options_(options),
      tell_(std::move(tell)),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

bool StartForecaster::is_fresh() const {
  return latest_ && clock_() - latest_->made <= options_.oldest;
}

std::shared_ptr<const forecast::Forecast> StartForecaster::wanted() {
  std::unique_lock lock(mutex_);
  wanted_until_ = std::chrono::steady_clock::now() + options_.kept_fresh;
  changed_.notify_all();
  changed_.wait_for(lock, options_.patience, [this] { return stopping_ || is_fresh(); });
  return is_fresh() ? latest_ : nullptr;
}

void StartForecaster::want() {
  const std::scoped_lock lock(mutex_);
  wanted_until_ = std::chrono::steady_clock::now() + options_.kept_fresh;
  changed_.notify_all();
}

void StartForecaster::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.request_stop();
}

void StartForecaster::work(const std::stop_token& stop) {
  ::setpriority(PRIO_PROCESS, 0, 19);  // of this thread: nothing of the pool waits for it
  const auto is_wanted = [this] { return std::chrono::steady_clock::now() < wanted_until_; };
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, is_wanted)) return;
    }
    const auto begin = std::chrono::steady_clock::now();
    make_one(stop);
    ::malloc_trim(0);  // the many small parts of copies would stay with the process
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, stop, begin + options_.every, [] { return false; });
  }
}

// Shared with the look: who gave up must not be written to.
std::shared_ptr<StartForecaster::Copy> StartForecaster::copy_of_state(const std::stop_token& stop) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable_any arrived;
    std::shared_ptr<Copy> copy;
  };
  const auto answer = std::make_shared<Answer>();
  query_([answer, clock = clock_](const PoolState& state) {
    auto copy = std::make_shared<Copy>(Copy{state, std::max(clock(), state.now)});
    const std::scoped_lock lock(answer->mutex);
    answer->copy = std::move(copy);
    answer->arrived.notify_all();
  });
  std::unique_lock lock(answer->mutex);
  answer->arrived.wait(lock, stop, [&] { return answer->copy != nullptr; });
  return std::exchange(answer->copy, nullptr);
}

void StartForecaster::make_one(const std::stop_token& stop) {
  auto copy = copy_of_state(stop);
  if (!copy) return;
  history_.read(copy->state);
  calibration_.settle(copy->state, copy->made);
  forecast::StartForecast draws(copy->state, copy->made, history_, ++rounds_);
  const ExpectedWaits waits(copy->state);
  copy.reset();
  const auto enough = std::chrono::steady_clock::now() + options_.most;
  while (draws.draws() < (draws.nobody_waits() ? 1 : forecast::usual_draws)) {
    if (!draws.draw(stop)) return;
    if (std::chrono::steady_clock::now() >= enough) break;
  }
  const forecast::Forecast plain = draws.result();
  if (tell_) tell_(waits.changed_by(plain));
  auto shown = std::make_shared<const forecast::Forecast>(calibration_.corrected(plain));
  calibration_.note(plain);
  {
    const std::scoped_lock lock(mutex_);
    latest_ = std::move(shown);
  }
  changed_.notify_all();
}

}  // namespace neap::daemon
