// Any bytes as the order of a baseline and as a kept report: refused with a reason, or within
// bounds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/contention.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace neap;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto order = api::decode_baseline(text);
  if (!order && order.error().message.empty()) std::abort();
  if (order && order->for_us > 120'000'000) std::abort();
  const auto report = api::decode_baseline_report(text);
  if (!report) return 0;
  const auto again = api::decode_baseline_report(encode(*report));
  if (!again || encode(*again) != encode(*report)) std::abort();
  return 0;
}
