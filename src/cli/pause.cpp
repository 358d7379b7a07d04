#include "cli/verbs.h"

namespace neap::cli {

int pause(const Context& context, const PauseOptions& options) {
  auto client = context.client();
  if (!client) return context.failed(client.error());
  const auto done = client->post("/v1/pause", json_object({{"reason", options.reason}}));
  if (!done) return context.failed(done.error());
  context.terminal().line(
      "paused: what runs goes on; nothing is preempted or scaled until `neap resume`");
  return 0;
}

}  // namespace neap::cli
