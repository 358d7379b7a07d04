// Any bytes as a file of keys: keys that read back as themselves, or a fault with text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/api_keys.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto keys = neap::config::parse_keys(text, "keys");
  if (!keys) {
    if (keys.error().message.empty()) std::abort();
    return 0;
  }
  const auto again = neap::config::parse_keys(neap::config::render_keys(*keys), "keys");
  if (!again || *again != *keys) std::abort();
  return 0;
}
