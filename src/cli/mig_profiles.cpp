#include <string>

#include "cli/verbs.h"
#include "config/problem.h"
#include "core/rules/partition/profiles.h"

namespace neap::cli {

namespace {

std::string starts_text(const mig::Profile& profile, std::string_view between) {
  std::string text;
  for (std::uint32_t start = 0; start < mig::slices_max; ++start) {
    if (!mig::may_start(profile, start)) continue;
    if (!text.empty()) text += between;
    text += std::to_string(start);
  }
  return text;
}

std::string model_json(const mig::DeviceModel& model) {
  std::string text = "{\"model\":" + json_text(model.name) +
                     ",\"compute_slices\":" + std::to_string(model.compute_slices) +
                     ",\"memory_slices\":" + std::to_string(model.memory_slices) +
                     ",\"profiles\":[";
  for (const mig::Profile& profile : model.profiles()) {
    if (!text.ends_with('[')) text += ",";
    text += "{\"name\":" + json_text(profile.name) +
            ",\"compute_slices\":" + std::to_string(profile.compute_slices) +
            ",\"memory_slices\":" + std::to_string(profile.memory_slices) +
            ",\"memory_mib\":" + std::to_string(profile.memory.value) +
            ",\"count_max\":" + std::to_string(profile.count_max) + ",\"starts\":[" +
            starts_text(profile, ",") + "]}";
  }
  return text + "]}";
}

}  // namespace

int mig_profiles(const Context& context, const MigProfilesOptions& options) {
  const mig::DeviceModel* model = mig::find_model(options.model);
  if (model == nullptr) {
    std::string known;
    for (const mig::DeviceModel& one : mig::models()) {
      known += (known.empty() ? "" : ", ") + std::string(one.name);
    }
    return context.failed(
        {ErrorCode::not_found,
         config::in_quotes(options.model) + " is no model with a table; expected one of " + known,
         "model"});
  }
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(model_json(*model));
    return 0;
  }
  Table table({"PROFILE", "COMPUTE", "SLICES", "MEMORY", "AT MOST", "STARTS"});
  for (const mig::Profile& profile : model->profiles()) {
    table.add({{std::string(profile.name)},
               {std::to_string(profile.compute_slices)},
               {std::to_string(profile.memory_slices)},
               {std::to_string(profile.memory.value) + "MiB"},
               {std::to_string(profile.count_max)},
               {starts_text(profile, " ")}});
  }
  table.print(terminal);
  return 0;
}

}  // namespace neap::cli
