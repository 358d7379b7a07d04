#include "engine/kind.h"

#include <nlohmann/json.hpp>

namespace neap::engine {
namespace {

// https://docs.vllm.ai: features/sleep_mode, features/lora.
Support vllm(Call call) {
  switch (call) {
    case Call::sleep:
      return {true, true, "POST /sleep?level=1|2 (--enable-sleep-mode, VLLM_SERVER_DEV_MODE=1)"};
    case Call::wake:
      return {true, false, "POST /wake_up; after level 2 the weights are loaded in between"};
    case Call::shrink_kv:
      return {false, false, "its KV cache has one size from start to end; sleep frees it"};
    case Call::offload_kv:
      return {false, false, "decided when it starts (KV connectors); sleep level 1 drops it"};
    case Call::drop_kv:
      return {true, false, "POST /reset_prefix_cache; the blocks stay allocated"};
    case Call::load_adapter:
      return {true, false,
              "POST /v1/load_lora_adapter (--enable-lora, VLLM_ALLOW_RUNTIME_LORA_UPDATING=1)"};
    case Call::load_model:
      return {false, false, "a new replica beside it: neap submit --replace"};
  }
  return {};
}

// tools/server/README.md of llama.cpp.
Support llama_cpp(Call call) {
  switch (call) {
    case Call::sleep:
    case Call::wake:
      return {false, false, "it has no such call; replicas.min: 0 ends the process instead"};
    case Call::shrink_kv:
      return {false, false, "its slots are allocated when it starts"};
    case Call::offload_kv:
      return {true, false, "POST /slots/N?action=save, then erase (--slot-save-path)"};
    case Call::drop_kv:
      return {true, false, "POST /slots/N?action=erase; the cells stay allocated"};
    case Call::load_adapter:
      return {false, false, "adapters are named when it starts; /lora-adapters only weighs them"};
    case Call::load_model:
      return {true, false, "POST /models/load (of a router); else neap submit --replace"};
  }
  return {};
}

// examples/llm/control.py.
Support own(Call call) {
  switch (call) {
    case Call::sleep:
      return {true, true, "POST /sleep?level=1|2"};
    case Call::wake:
      return {true, false, "POST /wake_up"};
    case Call::shrink_kv:
      return {true, true, "POST /kv_cache, action shrink"};
    case Call::offload_kv:
      return {true, true, "POST /kv_cache, action offload"};
    case Call::drop_kv:
      return {true, true, "POST /kv_cache, action drop"};
    case Call::load_adapter:
      return {false, false, "it knows no adapters"};
    case Call::load_model:
      return {true, false, "POST /reload, and by itself when a newer checkpoint is there"};
  }
  return {};
}

}  // namespace

std::string_view name_of(Kind kind) {
  constexpr std::array names{"none", "vllm", "llama_cpp", "neap"};
  return names[static_cast<std::size_t>(kind)];
}

std::optional<Kind> kind_named(std::string_view name) {
  for (const Kind kind : kinds) {
    if (name_of(kind) == name) return kind;
  }
  return std::nullopt;
}

Kind kind_of_launch(std::string_view launch) {
  const auto json = nlohmann::json::parse(launch, nullptr, false);
  if (!json.is_object()) return Kind::none;
  const auto found = json.find("engine");
  if (found == json.end() || !found->is_string()) return Kind::none;
  return kind_named(found->get_ref<const std::string&>()).value_or(Kind::none);
}

std::string_view name_of(Call call) {
  constexpr std::array names{"sleep", "wake", "shrink", "offload", "drop", "adapter", "model"};
  return names[static_cast<std::size_t>(call)];
}

Support support_of(Kind kind, Call call) {
  switch (kind) {
    case Kind::none:
      return {false, false, "the service names no engine (service.engine)"};
    case Kind::vllm:
      return vllm(call);
    case Kind::llama_cpp:
      return llama_cpp(call);
    case Kind::neap:
      return own(call);
  }
  return {};
}

}  // namespace neap::engine
