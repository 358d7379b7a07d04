// The routes of contention and baselines, the same of services and of tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "api/control.h"
#include "api/http/router.h"

namespace neap::api {

struct ContentionRoutes {
  WorkKind kind{};
  std::string path;  // "/v1/services/{service}"
  // Calls it with the id of what the path names, if the caller may manage that.
  std::function<http::Response(const http::Request&,
                               const std::function<http::Response(std::uint64_t)>&)>
      with;
  std::function<Result<void>(const http::Request&)> may_administer;
  std::function<http::Response(const Error&)> failure;
};

void add_contention_routes(http::Router& router, Control& control, const ContentionRoutes& routes);

}  // namespace neap::api
