#include "cli/engine.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/format.h"
#include "engine/engine.h"

namespace neap::cli {
namespace {

using Json = nlohmann::ordered_json;
using engine::Engine;
using engine::Memory;

int show(const Context& context, const EngineOptions& options, const Engine& one) {
  const auto health = one.health();
  Terminal& terminal = context.terminal();
  if (options.json) {
    Json out;
    out["engine"] = options.kind;
    out["answers"] = health.has_value();
    if (health) {
      out["ready"] = health->ready;
      out["models"] = health->models;
      out["sleeping"] = health->sleeping ? Json(*health->sleeping) : Json();
    }
    for (const engine::Call call : engine::calls) {
      const engine::Support support = engine::support_of(one.kind(), call);
      out["calls"][std::string(name_of(call))] = {
          {"there", support.there}, {"frees_device", support.frees_device}, {"how", support.how}};
    }
    terminal.line(out.dump());
    return health ? 0 : exit_code_of(health.error().code);
  }
  Table table({"CALL", "", "FREES DEVICE MEMORY", "HOW"});
  for (const engine::Call call : engine::calls) {
    const engine::Support support = engine::support_of(one.kind(), call);
    table.add({{std::string(name_of(call))},
               {support.there ? "yes" : "unsupported"},
               {support.frees_device ? "yes" : "no"},
               {std::string(support.how)}});
  }
  table.print(terminal);
  if (!health) return context.failed(health.error());
  std::string models;
  for (const std::string& model : health->models) models += (models.empty() ? "" : ", ") + model;
  terminal.line(std::string(health->ready ? "ready" : "not ready") +
                (health->sleeping.value_or(false) ? ", sleeping" : "") +
                (models.empty() ? "" : ", serves " + harmless(models)));
  return 0;
}

Result<Memory> carry_out(const EngineOptions& options, const Engine& one) {
  const auto level = static_cast<engine::SleepLevel>(options.level);
  if (options.act == "sleep") return one.sleep(level);
  if (options.act == "wake") return one.wake(level);
  if (options.act == "shrink") return one.shrink_kv(options.slots);
  if (options.act == "offload") return one.offload_kv(options.slots);
  if (options.act == "drop") return one.drop_kv(options.slots);
  const auto loaded = options.act == "adapter" ? one.load_adapter(options.name, options.path)
                                               : one.load_model(options.name);
  if (!loaded) return tl::unexpected(loaded.error());
  return Memory{};
}

}  // namespace

int engine_verb(const Context& context, const EngineOptions& options) {
  const Engine one(engine::kind_named(options.kind).value_or(engine::Kind::none),
                   static_cast<std::uint16_t>(options.port));
  if (options.act == "show") return show(context, options, one);
  if (options.act == "adapter" && (options.name.empty() || options.path.empty())) {
    return context.failed({ErrorCode::invalid_argument, "adapter needs --name and --path", ""});
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto memory = carry_out(options, one);
  if (!memory) return context.failed(memory.error());
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  if (options.json) {
    Json out{{"act", options.act}, {"took_us", took.count()}};
    if (memory->device) out["device_bytes"] = *memory->device;
    if (memory->host) out["host_bytes"] = *memory->host;
    context.terminal().line(out.dump());
    return 0;
  }
  std::string text = options.act + " done in " + length_text(took.count());
  if (memory->device) text += ", " + std::to_string(*memory->device) + " bytes on the device";
  if (memory->host) text += ", " + std::to_string(*memory->host) + " on the host";
  context.terminal().line(text);
  return 0;
}

}  // namespace neap::cli
