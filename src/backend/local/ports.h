// Ports on 127.0.0.1 for service replicas, from a range that the kernel does not hand out to
// outgoing connections.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

#include "core/model/result.h"

namespace neap::local {

class LoopbackPorts {
 public:
  static constexpr std::int32_t first_port = 20'000;
  static constexpr std::int32_t last_port = 29'999;

  // One that nobody listens on now and that was not given out before.
  [[nodiscard]] Result<std::int32_t> take();
  void reserve(std::int32_t port);  // in use by an adopted replica
  void give_back(std::int32_t port);

 private:
  std::mutex mutex_;
  std::set<std::int32_t> taken_;
  std::int32_t next_ = first_port;
};

}  // namespace neap::local
