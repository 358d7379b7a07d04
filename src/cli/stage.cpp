#include "cli/adoption.h"
#include "cli/format.h"

namespace neap::cli {

namespace {

constexpr int not_passed = 1;

bool all_met(const Value& detail) {
  for (const Value& gate : detail.list_at("gates")) {
    if (!gate.true_at("met")) return false;
  }
  return true;
}

void print_gates(Terminal& terminal, const Value& detail) {
  if (detail.text_at("next_stage").empty()) {
    terminal.line("the last stage: nothing comes after it");
    return;
  }
  terminal.line("before stage " + detail.text_at("next_stage") + ":");
  Table table({"  CHECK", "STATE", "MEASURED"});
  for (const Value& gate : detail.list_at("gates")) {
    const std::string state = gate.true_at("met") ? "ok" : "missing";
    table.add({{"  " + gate.text_at("name")},
               {state, gate.true_at("met") ? Colour::good : Colour::warning},
               {harmless(gate.text_at("detail"))}});
  }
  table.print(terminal);
}

void print_changes(Terminal& terminal, const Value& detail) {
  if (detail.list_at("changes").empty()) return;
  terminal.line("");
  Table table({"WHEN", "FROM", "TO", "BY", "WHY"});
  for (const Value& change : detail.list_at("changes")) {
    std::string why = change.text_at("why");
    if (change.true_at("forced")) why = "forced, missing " + change.text_at("missing") + ": " + why;
    table.add({{moment_text(change.number_at("time_us"))},
               {change.text_at("from")},
               {change.text_at("to")},
               {harmless(change.text_at("by"))},
               {harmless(why)}});
  }
  table.print(terminal);
}

int change(const Context& context, const std::string& to, const StageOptions& options) {
  auto client = context.client();
  if (!client) return context.failed(client.error());
  const std::string body = "{\"to\":" + json_text(to) + ",\"why\":" + json_text(options.why) +
                           (options.force ? ",\"force\":true}" : "}");
  const auto done = client->post("/v1/stage", body);
  if (!done) return context.failed(done.error());
  context.terminal().line("stage " + to + (options.force ? ", forced" : "") +
                          ": who is where it no longer belongs leaves at its next boundary");
  return 0;
}

}  // namespace

int stage_show(const Context& context, const StageOptions& options) {
  std::string body;
  const auto detail = context.get("/v1/pool", &body);
  if (!detail) return context.failed(detail.error());
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(body);
    return 0;
  }
  print_pool(terminal, detail->at("pool"));
  terminal.line("stage " + detail->at("pool").text_at("stage") + " since " +
                moment_text(detail->number_at("stage_since_us")));
  std::string seen;
  for (const auto& [name, value] : detail->at("seen").members) {
    seen += (seen.empty() ? "" : ", ") + name + " " + value.text;
  }
  terminal.line("measured in it: " + seen);
  for (const auto& [name, value] : detail->at("derived").members) {
    terminal.line("from preset " + detail->at("pool").text_at("preset") + ": " + name + ": " +
                  value.text);
  }
  print_gates(terminal, *detail);
  print_changes(terminal, *detail);
  return 0;
}

int stage_check(const Context& context, const StageOptions& options) {
  std::string body;
  const auto detail = context.get("/v1/pool", &body);
  if (!detail) return context.failed(detail.error());
  if (options.json) {
    context.terminal().line(body);
  } else {
    print_gates(context.terminal(), *detail);
  }
  return all_met(*detail) ? 0 : not_passed;
}

int stage_advance(const Context& context, const StageOptions& options) {
  const auto detail = context.get("/v1/pool");
  if (!detail) return context.failed(detail.error());
  const std::string next = detail->text_at("next_stage");
  if (next.empty()) {
    return context.failed({ErrorCode::conflict, "the pool is in the last stage", ""});
  }
  return change(context, next, options);
}

int stage_back(const Context& context, const StageOptions& options) {
  if (!options.to.empty()) return change(context, options.to, options);
  const auto detail = context.get("/v1/pool");
  if (!detail) return context.failed(detail.error());
  const std::string& now = detail->at("pool").text_at("stage");
  if (now == "physical") {
    return context.failed({ErrorCode::conflict, "the pool is in the first stage", ""});
  }
  return change(context, now == "time" ? "memory" : "physical", options);
}

}  // namespace neap::cli
