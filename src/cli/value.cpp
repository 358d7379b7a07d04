#include "cli/value.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace neap::cli {

namespace {

using Json = nlohmann::ordered_json;

Value from(const Json& json) {
  Value value;
  switch (json.type()) {
    case Json::value_t::boolean:
      value.kind = Value::Kind::truth;
      value.number = json.get<bool>() ? 1 : 0;
      break;
    case Json::value_t::number_integer:
      value.kind = Value::Kind::number;
      value.number = json.get<std::int64_t>();
      break;
    case Json::value_t::number_unsigned:
      value.kind = Value::Kind::number;
      value.number = json.get<std::int64_t>();
      value.fraction = json.get<std::uint64_t>() > INT64_MAX;
      break;
    case Json::value_t::number_float:
      value.kind = Value::Kind::number;
      value.fraction = true;
      if (std::abs(json.get<double>()) < 9e18) value.number = json.get<std::int64_t>();
      break;
    case Json::value_t::string:
      value.kind = Value::Kind::text;
      value.text = json.get<std::string>();
      break;
    case Json::value_t::array:
      value.kind = Value::Kind::list;
      for (const Json& item : json) value.items.push_back(from(item));
      break;
    case Json::value_t::object:
      value.kind = Value::Kind::object;
      for (const auto& [key, member] : json.items()) value.members.push_back({key, from(member)});
      break;
    default:
      break;
  }
  return value;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<Value> Value::parse(std::string_view json) {
  const Json parsed = Json::parse(json, nullptr, false);
  if (parsed.is_discarded()) {
    return fail(ErrorCode::internal, "the daemon's answer is not JSON; is it another version?");
  }
  return from(parsed);
}

const Value& Value::at(std::string_view member) const {
  static const Value nothing;
  for (const auto& [name, value] : members) {
    if (name == member) return value;
  }
  return nothing;
}

std::int64_t Value::number_at(std::string_view member, std::int64_t otherwise) const {
  const Value& found = at(member);
  return found.kind == Kind::number ? found.number : otherwise;
}

JsonFault json_fault(std::string_view text) {
  try {
    [[maybe_unused]] const Json parsed = Json::parse(text);
  } catch (const Json::parse_error& error) {
    const std::string_view before = text.substr(0, error.byte == 0 ? 0 : error.byte - 1);
    const std::size_t line_begin = before.rfind('\n') + 1;  // 0 where there is none
    return {static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1,
            before.size() - line_begin + 1};
  }
  return {};
}

std::string json_object(const std::vector<std::pair<std::string, std::string>>& members) {
  Json json = Json::object();
  for (const auto& [name, value] : members) json[name] = value;
  return dump(json);
}

std::string json_text(std::string_view text) { return dump(Json(text)); }

std::string json_pair(std::string_view name, std::string_view value) {
  return json_text(name) + ":" + std::string(value);
}

std::string json_pair(std::string_view name, std::int64_t value) {
  return json_pair(name, std::to_string(value));
}

}  // namespace neap::cli
