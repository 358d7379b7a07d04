// Any bytes as the limits of the host that a pool has, as kept results of checks, as a limit of a
// disk: understood or refused with text, and what was understood comes back as it was.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "backend/local/host_limits.h"
#include "backend/local/verify.h"

namespace {

namespace local = neap::local;

void choose(const local::HostPolicy& policy) {
  const local::HostFacts facts{
      [](const std::string&) -> neap::Result<std::string> { return std::string("8:0"); },
      []() -> neap::Result<std::string> { return std::string("0"); }};
  for (const auto kind : {local::KindOfWork::inference, local::KindOfWork::training}) {
    const auto chosen = local::choose_limits(policy.training, kind, policy, facts);
    if (!chosen) std::abort();
    if (chosen->limits.io.size() > 1) std::abort();  // one disk: one limit
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto policy = local::parse_host_policy(text);
  if (!policy && policy.error().message.empty()) std::abort();
  if (policy) choose(*policy);
  if (const auto checks = local::parse_checks(text, "here")) {
    const auto again = local::parse_checks(local::checks_text("here", *checks), "here");
    if (!again || again->size() != checks->size()) std::abort();
  }
  if (const auto limit = local::parse_io_text(text)) {
    if (local::parse_io_text(local::io_text(*limit)) != limit) std::abort();
  }
  return 0;
}
