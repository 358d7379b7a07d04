// What the query of a request says.
#pragma once

#include <cstdint>
#include <string>

#include "api/http/message.h"
#include "core/model/result.h"

namespace neap::api {

// `otherwise` where the query does not have it; invalid_argument, with the name as context, for
// what is no whole number.
[[nodiscard]] Result<std::int64_t> number_in_query(const http::Request& request,
                                                   const std::string& name, std::int64_t otherwise,
                                                   std::int64_t least = INT64_MIN);
// "follow", unless it is "0" or "false".
[[nodiscard]] bool follows(const http::Request& request);

}  // namespace neap::api
