// The bearer token of the TCP listener.
#pragma once

#include <string>
#include <string_view>

#include "core/model/result.h"

namespace neap::api::http {

class Token {
 public:
  // One line of at least 32 characters in a file that only its owner can read. The token is in
  // no message. permission_denied: group or others may read the file, or it is not the caller's.
  [[nodiscard]] static Result<Token> read(const std::string& path);

  // Whether a header's value is "Bearer <token>"; takes the same time for every wrong one.
  [[nodiscard]] bool opens(std::string_view authorization) const;

 private:
  explicit Token(std::string secret) : secret_(std::move(secret)) {}
  std::string secret_;
};

}  // namespace neap::api::http
