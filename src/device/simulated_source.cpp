#include <utility>

#include "device/device_source.h"

namespace neap::device {

namespace {

class SimulatedSource final : public DeviceSource {
 public:
  explicit SimulatedSource(std::vector<NodeSpec> nodes) : nodes_(std::move(nodes)) {}

  std::string name() const override { return "simulated"; }

  Result<std::vector<NodeSpec>> discover() override {
    if (nodes_.empty()) {
      return fail(ErrorCode::invalid_argument, "no simulated node is described", "devices.nodes");
    }
    std::vector<NodeSpec> nodes = nodes_;
    for (NodeSpec& node : nodes) {
      int index = 0;
      for (DeviceSpec& device : node.devices) {
        if (device.uuid.empty()) {
          device.uuid = "SIM-" + node.name + "-" + std::to_string(index);
        }
        ++index;
      }
    }
    return nodes;
  }

 private:
  std::vector<NodeSpec> nodes_;
};

}  // namespace

std::unique_ptr<DeviceSource> simulated_source(std::vector<NodeSpec> nodes) {
  return std::make_unique<SimulatedSource>(std::move(nodes));
}

}  // namespace neap::device
