#include "cli/verbs.h"

namespace neap::cli {

int resume(const Context& context) {
  auto client = context.client();
  if (!client) return context.failed(client.error());
  const auto done = client->post("/v1/resume", "");
  if (!done) return context.failed(done.error());
  context.terminal().line("resumed");
  return 0;
}

}  // namespace neap::cli
