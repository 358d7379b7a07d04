// Asks a service on 127.0.0.1 for its health and tells when the answer changes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "backend/local/event_loop.h"
#include "backend/local/fd.h"
#include "backend/local/spec.h"

namespace neap::local {

class HealthProbe {
 public:
  enum class Verdict { ready, unready };
  using Told = std::function<void(Verdict, const std::string& reason)>;

  // Ready after one 2xx answer, unready again after `failures` in a row. Until the first ready
  // it asks ten times as often, because somebody waits for it.
  HealthProbe(EventLoop& loop, SupervisedService service, Told told);
  ~HealthProbe();
  HealthProbe(const HealthProbe&) = delete;
  HealthProbe& operator=(const HealthProbe&) = delete;

 private:
  void begin();
  void on_socket(std::uint32_t events);
  void conclude(std::optional<std::string> failure);

  EventLoop& loop_;
  SupervisedService service_;
  Told told_;
  Fd socket_;
  std::string answer_;
  bool asked_ = false;
  std::optional<EventLoop::TimerId> next_;
  std::optional<EventLoop::TimerId> deadline_;
  std::optional<Verdict> verdict_;
  std::int32_t failures_ = 0;
};

}  // namespace neap::local
