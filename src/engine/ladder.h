// C3: the KV cache is shrunk, offloaded and dropped, in that order, before a replica goes.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace neap::engine {

enum class Rung : std::uint8_t { shrink, offload, drop, sleep };

struct RungDone {
  Rung rung{};
  Result<Memory> outcome;
};

[[nodiscard]] std::string_view name_of(Rung rung);

// From `first` to `last`. Rungs that the engine lacks are told as such and passed over; one that
// cannot be carried out ends the climb, and what follows is not tried: an engine that does not
// answer is not waited for again.
[[nodiscard]] std::vector<RungDone> give_memory_back(const Engine& engine, Rung first, Rung last);

// "shrink: done, 1.2 MB on the device; offload: unsupported" for the log.
[[nodiscard]] std::string text_of(const std::vector<RungDone>& done);

}  // namespace neap::engine
