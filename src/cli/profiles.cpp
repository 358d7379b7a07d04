#include <algorithm>
#include "cli/adoption.h"

#include "cli/format.h"

namespace neap::cli {

namespace {

std::string mib_text(std::int64_t mib) { return mib <= 0 ? "" : memory_text(mib); }

std::string observed_length(const Value& observed) {
  const std::int64_t us = observed.number_at("p90", -1);
  return us < 0 ? "" : length_text(us);
}

// The number beside what was seen most often: of runs for training, of growths for replicas.
std::string count_text(const Value& row) {
  std::int64_t most = 0;
  for (const char* member : {"memory_mib", "work_us", "save_us", "stall_us", "restore_us"}) {
    most = std::max(most, row.at(member).number_at("count"));
  }
  return std::to_string(most);
}

}  // namespace

int profiles(const Context& context, const Listing& options) {
  std::string body;
  const auto listing = context.get("/v1/profiles", &body);
  if (!listing) return context.failed(listing.error());
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(body);
    return 0;
  }
  Table table({"PROFILE", "KIND", "SEEN", "DECLARED", "WEIGHTS", "MEMORY MOST", "WORK P90",
               "SAVE P90", "STALL P90", "RESTORE P90"});
  for (const Value& row : listing->list_at("profiles")) {
    table.add({{harmless(row.text_at("name"))},
               {row.text_at("kind")},
               {count_text(row)},
               {mib_text(row.number_at("declared_mib"))},
               {mib_text(row.number_at("weights_mib"))},
               {mib_text(row.at("memory_mib").number_at("most", 0))},
               {observed_length(row.at("work_us"))},
               {observed_length(row.at("save_us"))},
               {observed_length(row.at("stall_us"))},
               {observed_length(row.at("restore_us"))}});
  }
  if (table.empty()) {
    terminal.line("no profiles yet: nothing was submitted");
  } else {
    table.print(terminal);
  }
  return 0;
}

}  // namespace neap::cli
