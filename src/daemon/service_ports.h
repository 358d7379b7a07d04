// The ports on which services are reached: what the task file asks for, or one that is chosen when
// the service is submitted and belongs to it from then on, so that its address stays the same.
#pragma once

#include <cstdint>

#include "config/task_file.h"
#include "core/model/state.h"

namespace neap::daemon {

class ServicePorts {
 public:
  static constexpr std::uint16_t first_port = 18'000;  // below those of replicas
  static constexpr std::uint16_t last_port = 19'999;

  // Fills in the port of a service. conflict: another service or another process has it.
  // permission_denied: it is for root alone. exhausted: none is free. On the loop's thread alone.
  [[nodiscard]] Result<void> assign(const PoolState& state, config::TaskFile& file);

 private:
  std::uint16_t next_ = first_port;  // two that are submitted at once get different ones
};

}  // namespace neap::daemon
