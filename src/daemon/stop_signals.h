// The signals that end the daemon.
#pragma once

#include <csignal>

#include <ctime>
#include <functional>
#include <stop_token>
#include <thread>

#include "daemon/log.h"

namespace neap::daemon {

// SIGTERM and SIGINT end the loop; blocked everywhere else.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  void watch(std::function<void()> on_signal) {
    thread_ = std::jthread([this, on_signal](const std::stop_token& stop) {
      const timespec patience{0, 200'000'000};
      while (!stop.stop_requested()) {
        if (sigtimedwait(&set_, nullptr, &patience) > 0) {
          log_info("stopping; tasks go on");
          on_signal();
          return;
        }
      }
    });
  }

 private:
  sigset_t set_{};
  std::jthread thread_;
};

}  // namespace neap::daemon
