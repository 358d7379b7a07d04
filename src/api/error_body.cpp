#include "api/error_body.h"

#include <nlohmann/json.hpp>

namespace neap::api {

namespace {

using Json = nlohmann::ordered_json;

// Text from files and peers may hold broken UTF-8; an error must be sent all the same.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json place(const std::string& file, const config::Problem& problem) {
  Json out;
  out["message"] = problem.message;
  if (!problem.field.empty()) out["field"] = problem.field;
  out["file"] = file;
  if (problem.line > 0) out["line"] = problem.line;
  return out;
}

}  // namespace

std::string error_body(const Error& error) {
  Json out;
  out["error"] = {{"code", name_of(error.code)}, {"message", error.message}};
  if (!error.context.empty()) out["error"]["field"] = error.context;
  return dump(out);
}

std::string error_body(const config::Problems& problems) {
  if (problems.empty()) return error_body(problems.to_error());
  Json out;
  out["error"] = {{"code", name_of(ErrorCode::invalid_argument)}};
  out["error"].update(place(problems.file(), problems.found().front()));
  out["problems"] = Json::array();
  for (const config::Problem& problem : problems.found()) {
    out["problems"].push_back(place(problems.file(), problem));
  }
  if (problems.dropped() > 0) out["problems_dropped"] = problems.dropped();
  return dump(out);
}

}  // namespace neap::api
