#include <dlfcn.h>

#include <memory>
#include <utility>

#include "device/device_source.h"

namespace neap::device {

namespace {

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};

class NvmlSource final : public DeviceSource {
 public:
  explicit NvmlSource(std::string library) : library_(std::move(library)) {}

  std::string name() const override { return "nvml"; }

  Result<std::vector<NodeSpec>> discover() override {
    const std::unique_ptr<void, CloseLibrary> library(
        ::dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!library) {
      return fail(ErrorCode::unavailable,
                  "no NVIDIA driver is installed here (" + library_ +
                      " cannot be loaded); use devices.source: simulated",
                  "devices.source");
    }
    if (::dlsym(library.get(), "nvmlInit_v2") == nullptr) {
      return fail(ErrorCode::unavailable,
                  library_ + " is not the management library of an NVIDIA driver",
                  "devices.source");
    }
    return fail(ErrorCode::unavailable,
                "an NVIDIA driver is installed, but this release of neap cannot use its devices "
                "yet; use devices.source: simulated",
                "devices.source");
  }

 private:
  std::string library_;
};

}  // namespace

std::unique_ptr<DeviceSource> nvml_source(std::string library) {
  return std::make_unique<NvmlSource>(std::move(library));
}

}  // namespace neap::device
