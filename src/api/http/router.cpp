#include "api/http/router.h"

#include <utility>

#include "api/error_body.h"

namespace neap::api::http {

namespace {

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(path.front() == '/' ? 1 : 0);
    const std::size_t end = path.find('/');
    parts.emplace_back(path.substr(0, end));
    if (end == std::string_view::npos) break;
    path.remove_prefix(end);
  }
  return parts;
}

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string>& path,
             std::map<std::string, std::string>& parameters) {
  if (pattern.size() != path.size()) return false;
  parameters.clear();
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string& part = pattern[i];
    if (part.starts_with('{')) {
      if (path[i].empty()) return false;
      parameters[part.substr(1, part.size() - 2)] = path[i];
    } else if (part != path[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

void Router::add(std::string_view method, std::string_view pattern, Handler handler) {
  routes_.push_back(
      {std::string(method), std::string(pattern), split(pattern), std::move(handler)});
}

Response Router::route(Request& request) const {
  const std::vector<std::string> path = split(request.path);
  bool known_path = false;
  for (const Route& route : routes_) {
    if (!matches(route.parts, path, request.parameters)) continue;
    known_path = true;
    if (route.method == request.method) return route.handler(request);
  }
  if (known_path) {
    return {405, error_body({ErrorCode::invalid_argument,
                             request.method.substr(0, 16) + " is not offered here", "method"})};
  }
  return {404,
          error_body({ErrorCode::not_found, "no such address; see docs/operators/api.md", ""})};
}

std::vector<std::string> Router::routes() const {
  std::vector<std::string> all;
  for (const Route& route : routes_) all.push_back(route.method + " " + route.pattern);
  return all;
}

}  // namespace neap::api::http
