#include <string>
#include <utility>

#include "cli/format.h"
#include "cli/verbs.h"

namespace neap::cli {

namespace {

std::string joined_texts(const std::vector<Value>& texts) {
  std::string out;
  for (const Value& one : texts) out += (out.empty() ? "" : ", ") + one.text;
  return out;
}

std::string metrics_text(const Value& stage) {
  std::string out;
  for (const auto& [name, value] : stage.at("metrics").members) {
    out += (out.empty() ? "" : ", ") + name + " " + value.text;
  }
  return out;
}

std::string stages_text(const Value& pipeline) {
  std::string out;
  for (const Value& stage : pipeline.list_at("stages")) {
    out += (out.empty() ? "" : ", ") + stage.text_at("name") + " " + stage.text_at("state");
  }
  return out;
}

}  // namespace

void print_pipelines(Terminal& terminal, const Value& listing) {
  Table table({"PIPELINE", "STATE", "AGE", "STAGES"});
  const std::int64_t now = listing.at("pool").number_at("now_us");
  for (const Value& pipeline : listing.list_at("pipelines")) {
    if (!pipeline.at("finished_us").is_null()) continue;
    table.add({{pipeline.text_at("name")},
               {pipeline.text_at("state"), colour_of(pipeline.text_at("state"))},
               {length_text(now - pipeline.number_at("submitted_us"))},
               {stages_text(pipeline)}});
  }
  if (table.empty()) return;
  terminal.line("");
  table.print(terminal);
}

int describe_pipeline(const Context& context, const NamedOptions& options) {
  std::string body;
  const auto detail = context.get("/v1/pipelines/" + part(options.name), &body);
  if (!detail) return context.failed(detail.error());
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(body);
    return 0;
  }
  print_pool(terminal, detail->at("pool"));
  const Value& pipeline = detail->at("pipeline");
  const std::string& state = pipeline.text_at("state");
  terminal.line("pipeline " + harmless(pipeline.text_at("name")) + " (" +
                terminal.painted(state, colour_of(state)) + ") of " +
                harmless(pipeline.text_at("user")) + ", submitted " +
                moment_text(pipeline.number_at("submitted_us")));
  Table table({"STAGE", "STATE", "WORK", "AFTER", "METRICS", "WHY"});
  for (const Value& stage : pipeline.list_at("stages")) {
    table.add({{stage.text_at("name")},
               {stage.text_at("state"), colour_of(stage.text_at("state"))},
               {stage.text_at("work")},
               {joined_texts(stage.list_at("after"))},
               {metrics_text(stage)},
               {stage.text_at("reason")}});
  }
  table.print(terminal);
  terminal.line("");
  for (const Value& stage : pipeline.list_at("stages")) {
    if (stage.text_at("artifacts").empty()) continue;
    terminal.line("artefacts of " + harmless(stage.text_at("name")) + ": " +
                  harmless(stage.text_at("artifacts")));
  }
  return 0;
}

}  // namespace neap::cli
