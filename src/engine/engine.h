// What neap says to the engine of one replica, and hears from it. Every call blocks, is bounded in
// time and size, and may be said twice. Errors of all:
//   refused      the engine has no such call, or was started without it: the message says which
//   conflict     it is not the time for it (requests run)
//   unavailable  no answer within its time, or a failure of the engine (5xx)
//   too_large    an answer over 256 KiB
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "engine/http_call.h"
#include "engine/kind.h"

namespace neap::engine {

// 1: the KV cache goes, the weights go to the host. 2: the weights go too, and are loaded at
// wake().
enum class SleepLevel : std::uint8_t { offload = 1, discard = 2 };

// Waking from level 1 costs a copy from host memory, which it holds meanwhile; from level 2 a load.
// So: level 1 while it is expected to sleep for less than `break_even`.
[[nodiscard]] SleepLevel level_for(Micros expected, Micros break_even);

struct Patience {
  std::chrono::milliseconds quick{500};        // questions
  std::chrono::milliseconds memory{10'000};    // of the KV cache
  std::chrono::milliseconds sleep{60'000};     // to sleep, and to wake
  std::chrono::milliseconds loading{600'000};  // of models
};

struct Health {
  bool ready = false;
  std::vector<std::string> models;  // that it serves, by name; empty where it does not say
  std::optional<bool> sleeping;     // none: it does not say
};

// Bytes where the engine tells them.
struct Memory {
  std::optional<std::int64_t> device;
  std::optional<std::int64_t> host;
};

class Engine {
 public:
  Engine(Kind kind, std::uint16_t port, Patience patience = {})
      : kind_(kind), port_(port), patience_(patience) {}

  [[nodiscard]] Kind kind() const { return kind_; }

  [[nodiscard]] Result<Health> health() const;
  [[nodiscard]] Result<bool> is_sleeping() const;
  [[nodiscard]] Result<Memory> sleep(SleepLevel level) const;
  // `level`: that it sleeps at.
  [[nodiscard]] Result<Memory> wake(SleepLevel level) const;

  // Down to so many requests at once; who has to leave is answered later. llama.cpp: what idle
  // slots hold, from number `slots` on.
  [[nodiscard]] Result<Memory> shrink_kv(std::int32_t slots) const;
  [[nodiscard]] Result<Memory> offload_kv(std::int32_t slots) const;
  [[nodiscard]] Result<Memory> drop_kv(std::int32_t slots) const;

  [[nodiscard]] Result<void> load_adapter(const std::string& name, const std::string& path) const;
  // "": newer weights of the one that serves.
  [[nodiscard]] Result<void> load_model(const std::string& name) const;

 private:
  [[nodiscard]] Result<HttpAnswer> ask(const HttpCall& call,
                                       std::chrono::milliseconds patience) const;
  [[nodiscard]] Result<void> offers(Call call) const;
  [[nodiscard]] Result<Memory> kv_cache(const char* action, std::int32_t slots) const;
  [[nodiscard]] Result<Memory> empty_slots(std::int32_t from, Call call) const;

  Kind kind_;
  std::uint16_t port_;
  Patience patience_;
};

// ---- answers of engines, as JSON: anything may come ------------------------------------------

[[nodiscard]] Result<std::vector<std::string>> read_models(std::string_view body);
[[nodiscard]] Result<bool> read_sleeping(std::string_view body);
[[nodiscard]] Memory read_memory(std::string_view body);
struct EngineSlot {
  std::int32_t id = 0;
  bool busy = false;
};
[[nodiscard]] Result<std::vector<EngineSlot>> read_slots(std::string_view body);
// What an engine says is wrong, one line of at most 200 characters that can be printed.
[[nodiscard]] std::string read_fault(std::string_view body);

}  // namespace neap::engine
