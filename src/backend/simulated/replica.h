// A replica of a service: loads, answers its health check, drains when it is told to stop.
#pragma once

#include "backend/simulated/process.h"

namespace neap::simulated {

class Replica : public Process {
 public:
  using Process::Process;
  void ask_yield(ReleaseMode /*mode*/) override {}
  void withdraw_yield() override {}
  void ask_checkpoint() override {}
  [[nodiscard]] bool is_healthy() const { return healthy_ && !is_gone(); }

 private:
  void begin() override;
  void on_term() override;
  void become_healthy();
  void become_sick();

  bool healthy_ = false;
};

}  // namespace neap::simulated
