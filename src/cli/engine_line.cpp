#include "cli/engine_line.h"

#include <CLI/CLI.hpp>

#include <memory>

#include "cli/engine.h"

namespace neap::cli {

void add_engine_verb(CLI::App& app,
                     const std::function<void(std::function<int(const Context&)>)>& choose) {
  CLI::App* verb = app.add_subcommand(
      "engine",
      "What an engine on this machine can do, and having it done: sleep, KV cache, models");
  auto options = std::make_shared<EngineOptions>();
  verb->add_option("kind", options->kind, "vllm, llama_cpp or neap")
      ->required()
      ->check(CLI::IsMember({"vllm", "llama_cpp", "neap"}));
  verb->add_option("port", options->port, "Of the engine, on 127.0.0.1")
      ->required()
      ->check(CLI::Range(1, 65'535));
  verb->add_option("act", options->act, "What to do; without: what it can, and how it is")
      ->check(CLI::IsMember(
          {"show", "sleep", "wake", "shrink", "offload", "drop", "adapter", "model"}));
  verb->add_option("--level", options->level, "Of sleep, and of what wake ends: 1 or 2")
      ->check(CLI::Range(1, 2))
      ->capture_default_str();
  verb->add_option("--slots", options->slots, "Requests at once that the KV cache keeps room for")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  verb->add_option("--name", options->name, "Of the adapter or model");
  verb->add_option("--path", options->path, "Of the adapter");
  verb->add_flag("--json", options->json, "Print the answer as JSON");
  verb->callback([options, choose] {
    choose([options](const Context& context) { return engine_verb(context, *options); });
  });
}

}  // namespace neap::cli
