// Any bytes as the metrics of an engine: counters in their bounds, quantiles in order.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "measure/engine_metrics.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using neap::Ppm;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = neap::measure::read_engine_metrics(text);
  if (!read) return read.error().message.empty() ? (std::abort(), 0) : 0;
  if (read->running.value_or(0) < 0 || read->waiting.value_or(0) < 0) std::abort();
  if (read->kv_use.value_or(Ppm(0)) > neap::all_ppm) std::abort();
  if (read->inter_token.size() > 256) std::abort();
  const auto half = neap::measure::bucket_quantile({}, read->inter_token, Ppm(500'000));
  const auto most = neap::measure::bucket_quantile({}, read->inter_token, Ppm(990'000));
  if (half.has_value() != most.has_value() || (half && *half > *most)) std::abort();
  return 0;
}
