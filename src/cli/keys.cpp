#include "cli/keys.h"

#include <chrono>

#include "cli/format.h"
#include "config/api_keys.h"

namespace neap::cli {

namespace {

// The daemon looks at this file each second: no call to it is needed, and none could fail.
Result<std::string> keys_file(const Context& context, const KeysOptions& options) {
  if (!options.file.empty()) return options.file;
  const auto endpoint = context.endpoint();
  if (!endpoint) return tl::unexpected(endpoint.error());
  const std::size_t slash = endpoint->socket.rfind('/');
  if (slash == std::string::npos) {
    return fail(ErrorCode::invalid_argument,
                "keys are a file of the daemon's machine: run this there, or name it with --file");
  }
  return endpoint->socket.substr(0, slash) + "/keys";
}

Time now() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return Time(std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count());
}

}  // namespace

int keys_create(const Context& context, const KeysOptions& options) {
  const auto file = keys_file(context, options);
  if (!file) return context.failed(file.error());
  const auto made = config::create_key(*file, options.team, options.highest, now());
  if (!made) return context.failed(made.error());
  if (options.json) {
    context.terminal().line(
        "{\"id\":" + json_text(made->key.id) + ",\"team\":" + json_text(made->key.team) +
        ",\"class\":" + json_text(made->key.highest) + ",\"key\":" + json_text(made->secret) + "}");
    return 0;
  }
  context.terminal().line("key " + made->key.id + " of team " + made->key.team + ", up to class " +
                          made->key.highest + "; it is shown this once:");
  context.terminal().line(made->secret);
  return 0;
}

int keys_list(const Context& context, const KeysOptions& options) {
  const auto file = keys_file(context, options);
  if (!file) return context.failed(file.error());
  const auto keys = config::load_keys(*file);
  if (!keys) return context.failed(keys.error());
  if (options.json) {
    std::string out;
    for (const config::ApiKey& key : *keys) {
      out += std::string(out.empty() ? "" : ",") + "{\"id\":" + json_text(key.id) +
             ",\"team\":" + json_text(key.team) + ",\"class\":" + json_text(key.highest) +
             ",\"created_us\":" + std::to_string(key.created.us) + "}";
    }
    context.terminal().line("{\"keys\":[" + out + "]}");
    return 0;
  }
  Table table({"ID", "TEAM", "CLASS", "CREATED"});
  for (const config::ApiKey& key : *keys) {
    table.add({{key.id}, {key.team}, {key.highest}, {moment_text(key.created.us)}});
  }
  table.print(context.terminal());
  return 0;
}

int keys_revoke(const Context& context, const KeysOptions& options) {
  const auto file = keys_file(context, options);
  if (!file) return context.failed(file.error());
  const auto done = config::revoke_key(*file, options.id);
  if (!done) return context.failed(done.error());
  context.terminal().line("key " + options.id + " is revoked; within two seconds it is refused");
  return 0;
}

}  // namespace neap::cli
