#include "api/error_body.h"

#include <nlohmann/json.hpp>

#include "api/encode_json.h"

namespace neap::api {

namespace {

using Json = OrderedJson;

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
