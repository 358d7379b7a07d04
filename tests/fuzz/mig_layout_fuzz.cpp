// Any bytes as a layout file, as devices and as a demand: understood or refused with text, never
// both or neither; and what was understood can be planned, with a plan that holds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/mig_layout.h"
#include "core/rules/partition/plan.h"

namespace {

void plan(const neap::config::MigLayout& layout, const std::vector<neap::mig::Want>& wants) {
  // Large pools cost time and show no more.
  if (layout.devices.size() > 6 || layout.devices.size() != layout.names.size()) return;
  const auto plan = neap::mig::make_plan(layout.devices, wants);
  if (!plan) std::abort();  // what the readers let through is in range
  if (!neap::mig::holds(*plan, neap::mig::review(*plan, layout.devices))) std::abort();
  if (plan->score.worth > plan->worth_bound) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  neap::config::Problems problems("mig.yaml");
  const auto layout = neap::config::parse_mig_layout(text, problems);
  if (layout.has_value() != problems.empty()) std::abort();
  if (!layout && problems.text().empty()) std::abort();
  const auto fixed = neap::config::parse_mig_demand("3g.40gb=2,1g.10gb=3*2,9GiB/2g=1").value();
  if (layout) plan(*layout, fixed);
  const auto devices = neap::config::parse_mig_devices(text);
  if (!devices && devices.error().empty()) std::abort();
  if (devices) plan(*devices, fixed);
  const auto wants = neap::config::parse_mig_demand(text);
  if (!wants && wants.error().empty()) std::abort();
  if (wants) plan(neap::config::parse_mig_devices("2xA100-80G,A30-24G").value(), *wants);
  return 0;
}
