// The devices of a what-if run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/result.h"
#include "core/model/spec.h"

namespace neap::whatif {

struct ClusterSpec {
  std::string text;  // as it was asked for
  std::vector<NodeSpec> nodes;

  [[nodiscard]] std::int64_t devices() const;
};

// "64x8xA100-80G": 64 nodes of 8 devices; "8xT4": one node; several with a comma between. A model
// whose name does not end in its memory, and is none of the usual ones, has it after a colon:
// "2x8xX1:48GiB".
[[nodiscard]] Result<ClusterSpec> cluster_of_text(std::string_view text);

// A pool file with devices.nodes (or total_gpus), an openb node list, or, where no such file is
// there, the short form.
[[nodiscard]] Result<ClusterSpec> load_cluster(const std::string& text);

}  // namespace neap::whatif
