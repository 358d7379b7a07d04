#include "cli/context.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "config/text.h"

namespace neap::cli {

namespace {

// The user's own daemon if there is one, else the machine's.
std::string default_socket() {
  const std::string system = "/var/lib/neap/neap.sock";
  const std::string home = environment_of_process("HOME");
  if (::geteuid() == 0 || home.empty()) return system;
  const std::string own = home + "/.local/state/neap/neap.sock";
  const bool only_system = ::access(own.c_str(), F_OK) != 0 && ::access(system.c_str(), F_OK) == 0;
  return only_system ? system : own;
}

}  // namespace

tl::unexpected<Error> wrong_option(const std::string& option, const std::string& message) {
  return fail(ErrorCode::invalid_argument, message, option);
}

std::string environment_of_process(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Error as_typed(Error error) {
  std::string field = error.context;
  if (field.ends_with("_us")) field.resize(field.size() - 3);
  constexpr std::pair<std::string_view, std::string_view> options[] = {
      {"lead_seconds", "--lead-seconds"},
      {"slot_seconds", "--slot-seconds"},
      {"violations_per_mille", "--x-per-mille"},
      {"idle_cost", "--idle-cost"},
      {"shortage_cost", "--shortage-cost"},
      {"score", "--score"},
      {"service", "--service"},
      {"replicas", "--replicas"},
      {"for", "--for"},
      {"max_preemptions", "--max-preemptions"},
      {"max_lost", "--max-lost"},
      {"ready_within", "--ready-within"},
      {"resume_within", "--resume-within"},
      {"pause", "--pause"},
  };
  for (const auto& [name, option] : options) {
    if (field == name) error.context = option;
  }
  return error;
}

Result<api::Endpoint> Context::endpoint() const {
  api::Endpoint endpoint;
  std::string token_file = reach_.token_file;
  if (!reach_.socket.empty()) {
    endpoint.socket = reach_.socket;
  } else if (!reach_.url.empty()) {
    endpoint.url = reach_.url;
  } else if (!environment_of_process("NEAP_SOCKET_API").empty()) {
    endpoint.socket = environment_of_process("NEAP_SOCKET_API");
  } else if (!environment_of_process("NEAP_URL").empty()) {
    endpoint.url = environment_of_process("NEAP_URL");
  } else {
    endpoint.socket = default_socket();
  }
  if (endpoint.url.empty()) return endpoint;
  if (token_file.empty()) token_file = environment_of_process("NEAP_TOKEN_FILE");
  if (token_file.empty()) {
    return fail(ErrorCode::invalid_argument,
                "over TCP a token is needed; name its file with --token-file or NEAP_TOKEN_FILE");
  }
  auto token = config::read_file(token_file);
  if (!token) return tl::unexpected(token.error());
  while (!token->empty() && (token->back() == '\n' || token->back() == '\r')) token->pop_back();
  endpoint.token = std::move(*token);
  while (endpoint.url.ends_with('/')) endpoint.url.pop_back();
  return endpoint;
}

Result<api::Client> Context::client() const {
  auto where = endpoint();
  if (!where) return tl::unexpected(where.error());
  return api::Client(std::move(*where));
}

Result<Value> Context::get(std::string_view path, std::string* body) const {
  auto reached = client();
  if (!reached) return tl::unexpected(reached.error());
  auto answer = reached->get(path);
  if (!answer) return tl::unexpected(answer.error());
  auto value = Value::parse(*answer);
  if (value && body != nullptr) *body = std::move(*answer);
  return value;
}

int Context::failed(const Error& error) const {
  // With a place the line begins with it, as editors expect.
  terminal_.complain((error.context.empty() ? "neap: " : "") + to_string(error));
  return exit_code_of(error.code);
}

Result<std::string> working_folder() {
  std::error_code error;
  const auto folder = std::filesystem::current_path(error);
  if (!error) return folder.string();
  return fail(ErrorCode::not_found,
              "the folder you are in cannot be named (" + error.message() + "); go to another one");
}

std::string part(std::string_view name) { return api::Client::escaped(name); }

}  // namespace neap::cli
