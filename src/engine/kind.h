// The engines behind replicas that neap can speak with, and what each of them really offers. What
// an engine has no call for is unsupported, and is said to be; nothing is emulated.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace neap::engine {

enum class Kind : std::uint8_t { none, vllm, llama_cpp, neap };
inline constexpr std::array kinds{Kind::none, Kind::vllm, Kind::llama_cpp, Kind::neap};

[[nodiscard]] std::string_view name_of(Kind kind);
[[nodiscard]] std::optional<Kind> kind_named(std::string_view name);
// Of a service, from its launch text (config/launch.h); none when it names none.
[[nodiscard]] Kind kind_of_launch(std::string_view launch);

enum class Call : std::uint8_t {
  sleep,         // gives the device's memory back, the process stays
  wake,          //
  shrink_kv,     // what nobody uses
  offload_kv,    // to host memory or storage
  drop_kv,       //
  load_adapter,  // beside the model that serves
  load_model,    // another one, or newer weights, by the same process
};
inline constexpr std::array calls{Call::sleep,      Call::wake,    Call::shrink_kv,
                                  Call::offload_kv, Call::drop_kv, Call::load_adapter,
                                  Call::load_model};

[[nodiscard]] std::string_view name_of(Call call);

struct Support {
  bool there = false;
  bool frees_device = false;  // memory of the device is free afterwards, for whoever comes
  std::string_view how;       // the call; where there is none, what to do instead
};

[[nodiscard]] Support support_of(Kind kind, Call call);

}  // namespace neap::engine
