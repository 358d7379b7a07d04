#include "core/model/result.h"

namespace neap {

namespace {
struct CodeRow {
  std::string_view name;
  int http;
  int exit;
};

CodeRow row_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return {"invalid_argument", 400, 2};
    case ErrorCode::unauthenticated:
      return {"unauthenticated", 401, 4};
    case ErrorCode::permission_denied:
      return {"permission_denied", 403, 4};
    case ErrorCode::not_found:
      return {"not_found", 404, 3};
    case ErrorCode::conflict:
      return {"conflict", 409, 5};
    case ErrorCode::too_large:
      return {"too_large", 413, 2};
    case ErrorCode::refused:
      return {"refused", 422, 6};
    case ErrorCode::exhausted:
      return {"exhausted", 429, 7};
    case ErrorCode::unavailable:
      return {"unavailable", 503, 8};
    case ErrorCode::internal:
      return {"internal", 500, 70};
  }
  return {"internal", 500, 70};
}
}  // namespace

std::string_view name_of(ErrorCode code) { return row_of(code).name; }
int http_status_of(ErrorCode code) { return row_of(code).http; }
int exit_code_of(ErrorCode code) { return row_of(code).exit; }

std::string to_string(const Error& error) {
  return error.context.empty() ? error.message : error.context + ": " + error.message;
}

}  // namespace neap
