#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/engine.h"

namespace neap::engine {
namespace {

using Json = nlohmann::json;

constexpr int depth_max = 32;
constexpr std::size_t models_max = 256;
constexpr std::size_t slots_max = 4096;
constexpr std::size_t name_max = 256;
constexpr std::size_t fault_max = 200;

// Null where it is none, or nested too deep.
Json parse(std::string_view text) {
  bool deep = false;
  const auto look = [&deep](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > depth_max;
    return !deep;
  };
  Json json = Json::parse(text, look, false);
  return json.is_discarded() || deep ? Json() : json;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string out(text.substr(0, most));
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

tl::unexpected<Error> not_that(const char* what) {
  return fail(ErrorCode::unavailable, std::string("the engine's answer holds no ") + what);
}

std::optional<std::int64_t> whole(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  const auto value = found->get<std::int64_t>();
  return value < 0 ? std::nullopt : std::optional(value);
}

}  // namespace

Result<std::vector<std::string>> read_models(std::string_view body) {
  const Json json = parse(body);
  if (!json.is_object() || !json.contains("data") || !json["data"].is_array()) {
    return not_that("list of models");
  }
  std::vector<std::string> models;
  for (const Json& row : json["data"]) {
    if (models.size() == models_max) break;
    if (!row.is_object() || !row.contains("id") || !row["id"].is_string()) continue;
    models.push_back(printable(row["id"].get_ref<const std::string&>(), name_max));
  }
  return models;
}

Result<bool> read_sleeping(std::string_view body) {
  const Json json = parse(body);
  if (!json.is_object() || !json.contains("is_sleeping") || !json["is_sleeping"].is_boolean()) {
    return not_that("is_sleeping");
  }
  return json["is_sleeping"].get<bool>();
}

Memory read_memory(std::string_view body) {
  const Json json = parse(body);
  if (!json.is_object()) return {};
  return {whole(json, "device_bytes"), whole(json, "host_bytes")};
}

Result<std::vector<EngineSlot>> read_slots(std::string_view body) {
  const Json json = parse(body);
  if (!json.is_array()) return not_that("list of slots");
  std::vector<EngineSlot> slots;
  for (const Json& row : json) {
    if (slots.size() == slots_max) break;
    if (!row.is_object()) continue;
    const auto id = whole(row, "id");
    if (!id || *id >= static_cast<std::int64_t>(slots_max)) continue;
    const auto busy = row.find("is_processing");
    const bool is_busy = busy != row.end() && busy->is_boolean() && busy->get<bool>();
    slots.push_back({static_cast<std::int32_t>(*id), is_busy});
  }
  return slots;
}

std::string read_fault(std::string_view body) {
  const Json json = parse(body);
  if (json.is_object()) {
    const auto error = json.find("error");
    if (error != json.end() && error->is_object() && error->contains("message") &&
        (*error)["message"].is_string()) {
      return printable((*error)["message"].get_ref<const std::string&>(), fault_max);
    }
    for (const char* key : {"error", "message", "detail"}) {
      const auto found = json.find(key);
      if (found != json.end() && found->is_string()) {
        return printable(found->get_ref<const std::string&>(), fault_max);
      }
    }
  }
  return printable(body.substr(0, body.find('\n')), fault_max);
}

}  // namespace neap::engine
