// Which disk a path lies on, and which processors are near a device: what limits of the host are
// written in terms of.
#pragma once

#include <string>
#include <vector>

#include "core/model/result.h"

namespace neap::local {

// "8:0" of the whole disk (limits are of disks, not of partitions) that holds `path`, or the
// nearest folder above that is there. unavailable, with the kind of file system, where no one
// disk does: memory, network, layers.
[[nodiscard]] Result<std::string> disk_of(const std::string& path);

struct HostTrees {  // tests look elsewhere
  std::string driver = "/proc/driver/nvidia/gpus";
  std::string pci = "/sys/bus/pci/devices";
};
// The processors of the NUMA nodes of these devices: "0-15,64-79". Empty when they are simulated:
// then none is nearer than another.
[[nodiscard]] Result<std::string> processors_near(const std::vector<std::string>& devices,
                                                  const HostTrees& trees = {});

}  // namespace neap::local
