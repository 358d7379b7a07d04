// Ports on 127.0.0.1 for service replicas, from a range that the kernel does not hand out to
// outgoing connections.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "backend/local/fd.h"
#include "core/model/result.h"

namespace neap::local {

class LoopbackPorts {
 public:
  static constexpr std::int32_t first_port = 20'000;
  static constexpr std::int32_t last_port = 29'999;

  // One that nobody listens on now, and that no pool of this machine has given out.
  [[nodiscard]] Result<std::int32_t> take();
  void reserve(std::int32_t port);  // in use by an adopted replica
  void give_back(std::int32_t port);

 private:
  std::mutex mutex_;
  std::map<std::int32_t, Fd> taken_;  // with the claim that keeps other pools off
  std::int32_t next_ = first_port;
};

}  // namespace neap::local
