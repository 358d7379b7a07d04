// One bounded request to a server on the loopback interface.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/model/result.h"

namespace neap::engine {

struct HttpCall {
  const char* method = "GET";
  std::string path;
  std::string body;  // JSON; none: no body
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// A whole answer to a request in HTTP/1.0, as it stood on its connection. unavailable: no answer,
// or one that was cut.
[[nodiscard]] Result<HttpAnswer> parse_answer(std::string_view text);

struct CallLimits {
  std::chrono::milliseconds patience{500};
  std::size_t bytes_max = 256UL * 1024;  // of the body
  int tries = 2;                         // again where nobody answered; so only what may come twice
};

// Blocks, for `patience` in all. unavailable: no whole answer within it; too_large.
[[nodiscard]] Result<HttpAnswer> call(std::uint16_t port, const HttpCall& call,
                                      const CallLimits& limits);

}  // namespace neap::engine
