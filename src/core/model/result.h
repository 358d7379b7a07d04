// Expected failures are values. A bug is a CHECK (check.h), never an Error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace neap {

// Each code maps to one HTTP status and one exit code of the command line.
enum class ErrorCode : std::uint8_t {
  invalid_argument,   // 400, exit 2: the caller's input is wrong
  unauthenticated,    // 401, exit 4
  permission_denied,  // 403, exit 4
  not_found,          // 404, exit 3
  conflict,           // 409, exit 5: a name that exists, a state that forbids it
  too_large,          // 413, exit 2: an input over its limit
  refused,            // 422, exit 6: understood, and not admitted (the failed condition is named)
  exhausted,          // 429, exit 7: a bound of the daemon is reached; try later
  unavailable,        // 503, exit 8: a thing that neap needs is not there
  internal,           // 500, exit 70
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;  // one sentence: what is wrong and what was expected
  std::string context;  // where: "file:line: field", empty when there is no such place
};

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message,
                                                std::string context = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(context)});
}

[[nodiscard]] std::string_view name_of(ErrorCode code);
[[nodiscard]] int http_status_of(ErrorCode code);
[[nodiscard]] int exit_code_of(ErrorCode code);
// "context: message", or the message alone.
[[nodiscard]] std::string to_string(const Error& error);

}  // namespace neap
