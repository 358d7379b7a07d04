#include "cli/format.h"
#include "cli/verbs.h"

namespace neap::cli {

namespace {

std::string holders_text(const Value& device) {
  std::string text;
  for (const Value& holder : device.list_at("holders")) {
    text += (text.empty() ? "" : ", ") + holder.text_at("task");
    const std::int64_t compute = holder.number_at("compute_milli");
    if (compute < 1000) {
      text += " (" + part_text(compute * 1000) + " " + memory_text(holder.number_at("memory_mib")) +
              ")";
    }
  }
  return text;
}

}  // namespace

int gpus(const Context& context, const Listing& options) {
  std::string body;
  const auto listing = context.get("/v1/devices", &body);
  if (!listing) return context.failed(listing.error());
  if (options.json) {
    context.terminal().line(body);
    return 0;
  }
  print_pool(context.terminal(), listing->at("pool"));
  Table table(
      {"DEVICE", "NODE", "MODEL", "ROLE", "STATE", "FREE", "MEMORY FREE", "HELD BY", "WHY"});
  for (const Value& device : listing->list_at("devices")) {
    const std::string& partition = device.text_at("partition");
    table.add({{device.text_at("name")},
               {device.text_at("node")},
               {device.text_at("model")},
               {partition == "dedicated" ? partition : device.text_at("role")},
               {device.text_at("state"), colour_of(device.text_at("state"))},
               {part_text(device.number_at("compute_free_milli") * 1000)},
               {memory_text(device.number_at("memory_free_mib")) + " of " +
                memory_text(device.number_at("memory_mib"))},
               {holders_text(device)},
               {device.text_at("reason")}});
  }
  if (table.empty()) {
    context.terminal().line("no devices");
  } else {
    table.print(context.terminal());
  }
  return 0;
}

}  // namespace neap::cli
