// The counters of an inference engine, from the text that it offers to Prometheus: those of vLLM
// and of llama.cpp's server. What an engine does not say is unknown, never zero.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "core/model/result.h"
#include "core/model/units.h"

namespace neap::measure {

inline constexpr std::size_t metrics_text_max = std::size_t{1} << 20;

struct EngineCounters {
  // Several series of one name (one a model) are added up; of the cache the fullest counts.
  std::optional<std::int64_t> running, waiting;  // requests
  std::optional<Ppm> kv_use;
  std::optional<std::uint64_t> prompt_tokens, generated_tokens;  // since the engine began
  // Gaps between tokens since the engine began: how many were at most so long, as cumulative
  // buckets; Micros::max() is the last. Empty: no such histogram.
  std::map<Micros, std::uint64_t> inter_token;

  [[nodiscard]] bool says_anything() const {
    return running || waiting || kv_use || prompt_tokens || generated_tokens ||
           !inter_token.empty();
  }
};

// Lines that are no samples, and samples of other names, are passed over: engines differ. An error
// only for a text that is over its limit or is no text.
[[nodiscard]] Result<EngineCounters> read_engine_metrics(std::string_view text);

// The quantile of what was added between two readings (an empty one: since the beginning), by a
// straight line within the bucket, as Prometheus does; in the last bucket its lower bound. None
// when nothing was added, or the engine began anew.
[[nodiscard]] std::optional<Micros> bucket_quantile(const std::map<Micros, std::uint64_t>& before,
                                                    const std::map<Micros, std::uint64_t>& after,
                                                    Ppm rank);
[[nodiscard]] std::optional<std::uint64_t> bucket_count(
    const std::map<Micros, std::uint64_t>& before, const std::map<Micros, std::uint64_t>& after);

}  // namespace neap::measure
