// What every verb gets: where to write and how to reach the daemon.
#pragma once

#include <string>
#include <string_view>

#include "api/client.h"
#include "cli/terminal.h"
#include "cli/value.h"
#include "core/model/result.h"

namespace neap::cli {

// Of drills and of the guard: with the option that was typed in place of the field that it set,
// "--max-lost" for "max_lost" or "max_lost_us". Other contexts stay.
[[nodiscard]] Error as_typed(Error error);

// The value of an option cannot be taken.
[[nodiscard]] tl::unexpected<Error> wrong_option(const std::string& option,
                                                 const std::string& message);

// A variable of the environment; empty where there is none.
[[nodiscard]] std::string environment_of_process(const char* name);

// As given on the command line; empty where nothing was.
struct Reach {
  std::string socket;
  std::string url;
  std::string token_file;
};

class Context {
 public:
  Context(Terminal& terminal, Reach reach) : terminal_(terminal), reach_(std::move(reach)) {}

  [[nodiscard]] Terminal& terminal() const { return terminal_; }
  // By --socket or --url, else NEAP_SOCKET_API or NEAP_URL, else where a daemon's socket is by
  // default.
  [[nodiscard]] Result<api::Endpoint> endpoint() const;
  [[nodiscard]] Result<api::Client> client() const;
  // The answer to a GET, parsed; with its bytes in `body` when that is not null.
  [[nodiscard]] Result<Value> get(std::string_view path, std::string* body = nullptr) const;
  // Prints the error; gives the exit code of its kind.
  [[nodiscard]] int failed(const Error& error) const;

 private:
  Terminal& terminal_;
  Reach reach_;
};

// Where relative paths of a submission begin.
[[nodiscard]] Result<std::string> working_folder();

// A name in a path: "/v1/tasks/" + part(name).
[[nodiscard]] std::string part(std::string_view name);

}  // namespace neap::cli
