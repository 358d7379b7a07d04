#include "cli/verbs.h"

namespace neap::cli {

namespace {

int cancel_versions(const Context& context, api::Client& client,
                    const std::vector<std::string>& names) {
  int code = 0;
  for (const std::string& name : names) {
    const auto done = client.remove("/v1/services/" + part(name) + "/version");
    if (done) {
      context.terminal().line(name + " goes on with the version before");
    } else {
      code = context.failed(done.error());
    }
  }
  return code;
}

}  // namespace

int cancel(const Context& context, const CancelOptions& options) {
  auto client = context.client();
  if (!client) return context.failed(client.error());
  if (options.version) return cancel_versions(context, *client, options.names);
  int code = 0;
  for (const std::string& name : options.names) {
    auto done = client->remove("/v1/tasks/" + part(name));
    if (!done && done.error().code == ErrorCode::not_found) {
      auto service = client->remove("/v1/services/" + part(name));
      if (service || service.error().code != ErrorCode::not_found) done = std::move(service);
    }
    if (!done && done.error().code == ErrorCode::not_found) {
      auto pipeline = client->remove("/v1/pipelines/" + part(name));
      if (pipeline || pipeline.error().code != ErrorCode::not_found) done = std::move(pipeline);
    }
    if (done) {
      context.terminal().line(name + " will stop");
    } else {
      code = context.failed(done.error());
    }
  }
  return code;
}

}  // namespace neap::cli
