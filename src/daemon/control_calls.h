// How the calls of the control port reach the loop and wait for it. For control_*.cpp alone.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "daemon/control_port.h"

namespace neap::daemon {

inline constexpr auto call_patience = std::chrono::seconds(5);

[[nodiscard]] inline tl::unexpected<Error> too_busy() {
  return fail(ErrorCode::unavailable, "the daemon did not answer within 5 s");
}

template <class T>
Result<T> ControlPort::ask(std::function<Result<T>(const PoolState&, const Books&)> question) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto answer = promise->get_future();
  loop_.query(
      [promise, question = std::move(question)](const PoolState& state, const Books& books) {
        promise->set_value(question(state, books));
      });
  if (answer.wait_for(call_patience) != std::future_status::ready) return too_busy();
  return answer.get();
}

inline Result<Loop::Outcome> ControlPort::tell(Event event) {
  auto promise = std::make_shared<std::promise<Result<Loop::Outcome>>>();
  auto answer = promise->get_future();
  loop_.submit(std::move(event), [promise](Result<Loop::Outcome> outcome) {
    promise->set_value(std::move(outcome));
  });
  if (answer.wait_for(call_patience) != std::future_status::ready) return too_busy();
  return answer.get();
}

}  // namespace neap::daemon
