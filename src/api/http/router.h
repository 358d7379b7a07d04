// Routes with named parts: "/v1/tasks/{task}/log".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/http/message.h"

namespace neap::api::http {

class Router {
 public:
  void add(std::string_view method, std::string_view pattern, Handler handler);
  // The matching handler's answer; 404 when no pattern matches, 405 when only the method differs.
  [[nodiscard]] Response route(Request& request) const;
  // "GET /v1/tasks", in the order of adding.
  [[nodiscard]] std::vector<std::string> routes() const;

 private:
  struct Route {
    std::string method;
    std::string pattern;
    std::vector<std::string> parts;
    Handler handler;
  };
  std::vector<Route> routes_;
};

}  // namespace neap::api::http
