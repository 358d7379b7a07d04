#include "engine/engine.h"

#include <nlohmann/json.hpp>

namespace neap::engine {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

bool is_good(const HttpAnswer& answer) { return answer.status >= 200 && answer.status < 300; }

}  // namespace

SleepLevel level_for(Micros expected, Micros break_even) {
  return expected < break_even ? SleepLevel::offload : SleepLevel::discard;
}

Result<HttpAnswer> Engine::ask(const HttpCall& call, std::chrono::milliseconds patience) const {
  CallLimits limits;
  limits.patience = patience;
  auto answer = engine::call(port_, call, limits);
  if (!answer || is_good(*answer)) return answer;
  const std::string what = std::string(name_of(kind_)) + ": " + call.method + " " + call.path +
                           ": status " + std::to_string(answer->status);
  const std::string fault = read_fault(answer->body);
  const std::string text = fault.empty() ? what : what + ": " + fault;
  switch (answer->status) {
    case 404:
    case 405:
    case 501:
      return fail(ErrorCode::refused, text + "; it was started without this call");
    case 409:
      return fail(ErrorCode::conflict, text);
    default:
      return fail(answer->status >= 500 ? ErrorCode::unavailable : ErrorCode::refused, text);
  }
}

Result<void> Engine::offers(Call call) const {
  const Support support = support_of(kind_, call);
  if (support.there) return {};
  return fail(ErrorCode::refused, "unsupported: " + std::string(name_of(call)) + " of engine " +
                                      std::string(name_of(kind_)) + ": " +
                                      std::string(support.how));
}

Result<Health> Engine::health() const {
  Health health;
  CallLimits limits;
  limits.patience = patience_.quick;
  // One that says it is not ready has answered.
  const auto answer = engine::call(port_, {"GET", "/health", ""}, limits);
  if (!answer) return tl::unexpected(answer.error());
  health.ready = is_good(*answer);
  if (const auto listed = ask({"GET", "/v1/models", ""}, patience_.quick)) {
    health.models = read_models(listed->body).value_or(std::vector<std::string>{});
  }
  if (const auto sleeping = is_sleeping()) {
    health.sleeping = *sleeping;
    health.ready = health.ready && !*sleeping;
  }
  return health;
}

Result<bool> Engine::is_sleeping() const {
  if (auto there = offers(Call::sleep); !there) return tl::unexpected(there.error());
  const auto answer = ask({"GET", "/is_sleeping", ""}, patience_.quick);
  if (!answer) return tl::unexpected(answer.error());
  return read_sleeping(answer->body);
}

Result<Memory> Engine::sleep(SleepLevel level) const {
  if (auto there = offers(Call::sleep); !there) return tl::unexpected(there.error());
  const char* path = level == SleepLevel::offload ? "/sleep?level=1" : "/sleep?level=2";
  const auto answer = ask({"POST", path, ""}, patience_.sleep);
  if (!answer) return tl::unexpected(answer.error());
  return read_memory(answer->body);
}

Result<Memory> Engine::wake(SleepLevel level) const {
  if (auto there = offers(Call::wake); !there) return tl::unexpected(there.error());
  // vLLM leaves it to its caller to load weights that were discarded: first room for them alone.
  if (kind_ == Kind::vllm && level == SleepLevel::discard) {
    for (const HttpCall& step :
         {HttpCall{"POST", "/wake_up?tags=weights", ""},
          HttpCall{"POST", "/collective_rpc", R"({"method": "reload_weights"})"},
          HttpCall{"POST", "/wake_up?tags=kv_cache", ""}}) {
      const auto answer = ask(step, patience_.loading);
      if (!answer) return tl::unexpected(answer.error());
    }
    return Memory{};
  }
  const auto answer = ask({"POST", "/wake_up", ""}, patience_.sleep);
  if (!answer) return tl::unexpected(answer.error());
  return read_memory(answer->body);
}

Result<Memory> Engine::kv_cache(const char* action, std::int32_t slots) const {
  const std::string body =
      std::string(R"({"action": ")") + action + R"(", "slots": )" + std::to_string(slots) + "}";
  const auto answer = ask({"POST", "/kv_cache", body}, patience_.memory);
  if (!answer) return tl::unexpected(answer.error());
  return read_memory(answer->body);
}

Result<Memory> Engine::empty_slots(std::int32_t from, Call call) const {
  const auto listed = ask({"GET", "/slots", ""}, patience_.quick);
  if (!listed) return tl::unexpected(listed.error());
  const auto slots = read_slots(listed->body);
  if (!slots) return tl::unexpected(slots.error());
  for (const EngineSlot& slot : *slots) {
    if (slot.id < from || slot.busy) continue;
    const std::string path = "/slots/" + std::to_string(slot.id) + "?action=";
    if (call == Call::offload_kv) {
      const std::string file = "{\"filename\": \"slot-" + std::to_string(slot.id) + ".bin\"}";
      if (auto saved = ask({"POST", path + "save", file}, patience_.memory); !saved) {
        return tl::unexpected(saved.error());
      }
    }
    const auto erased = ask({"POST", path + "erase", ""}, patience_.memory);
    // One that began to serve meanwhile keeps what it has.
    if (!erased && erased.error().code != ErrorCode::conflict) {
      return tl::unexpected(erased.error());
    }
  }
  return Memory{};
}

Result<Memory> Engine::shrink_kv(std::int32_t slots) const {
  if (auto there = offers(Call::shrink_kv); !there) return tl::unexpected(there.error());
  return kv_cache("shrink", slots);
}

Result<Memory> Engine::offload_kv(std::int32_t slots) const {
  if (auto there = offers(Call::offload_kv); !there) return tl::unexpected(there.error());
  if (kind_ == Kind::llama_cpp) return empty_slots(slots, Call::offload_kv);
  return kv_cache("offload", slots);
}

Result<Memory> Engine::drop_kv(std::int32_t slots) const {
  if (auto there = offers(Call::drop_kv); !there) return tl::unexpected(there.error());
  if (kind_ == Kind::llama_cpp) return empty_slots(slots, Call::drop_kv);
  if (kind_ == Kind::neap) return kv_cache("drop", slots);
  const auto answer = ask({"POST", "/reset_prefix_cache", ""}, patience_.memory);
  if (!answer) return tl::unexpected(answer.error());
  return Memory{};
}

Result<void> Engine::load_adapter(const std::string& name, const std::string& path) const {
  if (auto there = offers(Call::load_adapter); !there) return tl::unexpected(there.error());
  const std::string body =
      "{\"lora_name\": " + quoted(name) + ", \"lora_path\": " + quoted(path) + "}";
  const auto answer = ask({"POST", "/v1/load_lora_adapter", body}, patience_.loading);
  if (!answer) return tl::unexpected(answer.error());
  return {};
}

Result<void> Engine::load_model(const std::string& name) const {
  if (auto there = offers(Call::load_model); !there) return tl::unexpected(there.error());
  const HttpCall call = kind_ == Kind::neap
                            ? HttpCall{"POST", "/reload", ""}
                            : HttpCall{"POST", "/models/load", "{\"model\": " + quoted(name) + "}"};
  const auto answer = ask(call, patience_.loading);
  if (!answer) return tl::unexpected(answer.error());
  return {};
}

}  // namespace neap::engine
