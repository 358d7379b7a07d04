#include "api/query.h"

#include <charconv>

namespace neap::api {

Result<std::int64_t> number_in_query(const http::Request& request, const std::string& name,
                                     std::int64_t otherwise, std::int64_t least) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return otherwise;
  const std::string& text = found->second;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(ErrorCode::invalid_argument, "is not a whole number", name);
  }
  if (value < least) {
    return fail(ErrorCode::invalid_argument, "is less than " + std::to_string(least), name);
  }
  return value;
}

bool follows(const http::Request& request) {
  const auto found = request.query.find("follow");
  return found != request.query.end() && found->second != "0" && found->second != "false";
}

}  // namespace neap::api
