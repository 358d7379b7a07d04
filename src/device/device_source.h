// Where the pool's devices come from. A port: simulated devices now, the driver's later.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "core/model/spec.h"

namespace neap::device {

class DeviceSource {
 public:
  DeviceSource() = default;
  DeviceSource(const DeviceSource&) = delete;
  DeviceSource& operator=(const DeviceSource&) = delete;
  virtual ~DeviceSource() = default;

  [[nodiscard]] virtual std::string name() const = 0;  // "simulated", "nvml"
  // The devices of this machine, one NodeSpec per node. unavailable: there is nothing to ask.
  [[nodiscard]] virtual Result<std::vector<NodeSpec>> discover() = 0;
};

// Pretends these devices; the processes that run on them are real. Fills in UUIDs and memory
// where the file gives none.
[[nodiscard]] std::unique_ptr<DeviceSource> simulated_source(std::vector<NodeSpec> nodes);

// Asks the NVIDIA driver through its management library, looked up at run time.
// `library` is a soname or a path.
[[nodiscard]] std::unique_ptr<DeviceSource> nvml_source(std::string library = "libnvidia-ml.so.1");

}  // namespace neap::device
