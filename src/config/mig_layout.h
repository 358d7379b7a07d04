// Devices for MIG planning, from a layout file or from words, and what is wanted of them. The
// layout file is described in docs/operators/mig.md.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"
#include "config/values.h"
#include "core/rules/partition/wants.h"

namespace neap::config {

struct MigLayout {
  std::vector<std::string> names;  // by device, each once
  std::vector<mig::Device> devices;
};

inline constexpr std::size_t mig_devices_max = 10'000;

// The file as understood, every layout in it a legal one, or nothing when `problems` has gained an
// entry.
[[nodiscard]] std::optional<MigLayout> parse_mig_layout(std::string_view text, Problems& problems);

// "4xA100-80G,H100-80G": empty devices, named gpu-0 and so on.
[[nodiscard]] Parsed<MigLayout> parse_mig_devices(std::string_view text);

// "3g.40gb=2,1g.10gb=5*4,24GiB/2g=3": a profile, or the memory needed with compute slices, the
// count, and after * the weight of each, 1 without.
[[nodiscard]] Parsed<std::vector<mig::Want>> parse_mig_demand(std::string_view text);

// What a want asks for, as it is written in a demand: "3g.40gb", "24GiB/2g".
[[nodiscard]] std::string to_text(const mig::Want& want);

// All accepted keys of the layout file.
[[nodiscard]] std::set<std::string> mig_layout_keys();

}  // namespace neap::config
