// Any bytes as what the gateway reads: its own configuration file when it takes over a proxy, and
// what the script in the proxy tells. What is understood reads back as itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gateway/haproxy/admission_script.h"
#include "gateway/haproxy/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)neap::gateway::read_counts(text);
  const auto endpoints = neap::gateway::endpoints_in(text);
  if (!endpoints) return 0;
  std::vector<neap::gateway::ServiceSection> sections;
  for (const auto& endpoint : *endpoints) sections.push_back({endpoint, {}});
  const auto again = neap::gateway::endpoints_in(neap::gateway::render_config({}, {}, sections));
  if (!again || *again != *endpoints) std::abort();
  return 0;
}
