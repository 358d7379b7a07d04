#include "cli/verbs.h"

namespace neap::cli {

int scale(const Context& context, const ScaleOptions& options) {
  const std::int64_t min = options.min >= 0 ? options.min : options.replicas;
  const std::int64_t max = options.max >= 0 ? options.max : options.replicas;
  if (min < 0 && max < 0) {
    return context.failed(
        {ErrorCode::invalid_argument, "expected a number of replicas, --min, --max or both", ""});
  }
  auto client = context.client();
  if (!client) return context.failed(client.error());
  std::string body = "{";
  if (min >= 0) body += "\"min\": " + std::to_string(min);
  if (min >= 0 && max >= 0) body += ", ";
  if (max >= 0) body += "\"max\": " + std::to_string(max);
  const auto done = client->post("/v1/services/" + part(options.name) + "/scale", body + "}");
  if (!done) return context.failed(done.error());
  std::string said = options.name + " keeps";
  if (min >= 0) said += " at least " + std::to_string(min);
  if (min >= 0 && max >= 0) said += " and";
  if (max >= 0) said += " at most " + std::to_string(max);
  context.terminal().line(said + " replicas");
  return 0;
}

}  // namespace neap::cli
