#include <map>

#include "cli/format.h"
#include "cli/verbs.h"

namespace neap::cli {

namespace {

std::string devices_text(std::int64_t milli) {
  std::string text = std::to_string(milli / 1000);
  if (milli % 1000 == 0) return text;
  const std::string part = std::to_string(1000 + milli % 1000);
  return text + "." + part.substr(1, part.find_last_not_of('0'));
}

std::string standing_text(const Value& team) {
  const std::int64_t held = team.number_at("held_milli");
  const std::int64_t guarantee = team.number_at("guarantee_milli");
  const std::int64_t limit = team.number_at("limit_milli", -1);
  if (limit >= 0 && held >= limit) return "at its limit";
  if (guarantee == 0) return "";
  if (held < guarantee) {
    return team.number_at("tasks_waiting") > 0 ? "below its guarantee, and waits"
                                               : "below its guarantee; asks for no more";
  }
  if (held == guarantee) return "has its guarantee";
  return "borrows " + devices_text(held - guarantee);
}

}  // namespace

int teams(const Context& context, const Listing& options) {
  std::string body;
  const auto listing = context.get("/v1/teams", &body);
  if (!listing) return context.failed(listing.error());
  if (options.json) {
    context.terminal().line(body);
    return 0;
  }
  print_pool(context.terminal(), listing->at("pool"));
  Table table({"TEAM", "DEVICES", "GUARANTEED", "AT MOST", "WEIGHT", "CLAIMED", "LEAVING", "RUN",
               "WAIT", "STANDING"});
  std::map<std::string, std::size_t> depth;
  for (const Value& team : listing->list_at("teams")) {
    const std::string& name = team.text_at("name");
    const auto parent = depth.find(team.text_at("parent"));
    const std::size_t deep = parent == depth.end() ? 0 : parent->second + 1;
    depth.emplace(name, deep);
    const std::int64_t limit = team.number_at("limit_milli", -1);
    table.add({{std::string(2 * deep, ' ') + (name.empty() ? "(none)" : name)},
               {devices_text(team.number_at("held_milli"))},
               {devices_text(team.number_at("guarantee_milli"))},
               {limit < 0 ? "" : devices_text(limit)},
               {std::to_string(team.number_at("weight"))},
               {devices_text(team.number_at("claimed_milli"))},
               {devices_text(team.number_at("leaving_milli"))},
               {std::to_string(team.number_at("tasks_holding"))},
               {std::to_string(team.number_at("tasks_waiting"))},
               {standing_text(team)}});
  }
  if (table.empty()) {
    context.terminal().line("no teams: the pool's file lists none, and nothing runs or waits");
  } else {
    table.print(context.terminal());
  }
  return 0;
}

}  // namespace neap::cli
