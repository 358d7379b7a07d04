// Recorded traffic as what was offered in each slot: what a guard is derived from (SPEC D4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "simulate/run/source.h"

namespace neap::whatif {

struct Traffic {
  // Of requests and rates; of jobs in a file that holds nothing else.
  enum class Of : std::uint8_t { requests, devices };

  Of of = Of::requests;
  Time from;  // the first slot begins with the first arrival
  Micros slot;
  // Millionths of requests a second, or of devices: the highest minute of the slot. Nothing where
  // the trace tells nothing of it. The last slot is one that the trace covers in full.
  std::vector<std::optional<std::int64_t>> offered;
};

inline constexpr std::int64_t most_slots = 6'000'000;  // more than ten years of minutes

// Any format but a journal. `slot` is whole minutes; ServeGen tells windows of ten minutes, and a
// slot has to be made of whole ones.
[[nodiscard]] Result<Traffic> read_traffic(const std::string& path, Format format, Micros slot);

}  // namespace neap::whatif
