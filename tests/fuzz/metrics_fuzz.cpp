// Any bytes as the metrics.json of a stage: numbers in order and in bounds, or a reason.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/stage_metrics.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto metrics = neap::daemon::parse_metrics(text);
  if (!metrics) return metrics.error().message.empty() ? (std::abort(), 0) : 0;
  if (metrics->size() > neap::most_metrics) std::abort();
  for (std::size_t i = 0; i < metrics->size(); ++i) {
    if ((*metrics)[i].name.size() > 64) std::abort();
    if (i > 0 && (*metrics)[i].name <= (*metrics)[i - 1].name) std::abort();
  }
  return 0;
}
