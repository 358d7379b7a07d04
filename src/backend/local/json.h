// A small strict JSON reader and writer for one-line messages. The supervisor lives once per
// task and must stay tiny, so it does not carry a JSON library.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/result.h"

namespace neap::local {

struct JsonMember;

inline constexpr std::int64_t json_integer_max = std::numeric_limits<std::int64_t>::max();

struct Json {
  enum class Kind : std::uint8_t { null, boolean, integer, real, string, array, object };

  Kind kind = Kind::null;
  std::int64_t integer = 0;  // integers, and 0 or 1 for booleans
  double real = 0;           // integers and reals
  std::string text;
  std::vector<Json> items;
  std::vector<JsonMember> members;

  [[nodiscard]] const Json* find(std::string_view key) const;
};

struct JsonMember {
  std::string name;
  Json value;
};

// Refuses what RFC 8259 refuses, and duplicate keys, invalid UTF-8, integers beyond 64 bits,
// numbers that are not finite, nesting beyond `depth_limit`, and anything after the value. The
// message begins with the column.
[[nodiscard]] Result<Json> parse_json(std::string_view text, int depth_limit = 8);

// Typed access to the members of an object; each error names the field and what was expected.
class JsonFields {
 public:
  // `where` is the prefix of the field names in errors, such as "service.".
  JsonFields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  [[nodiscard]] Result<std::int64_t> integer(std::string_view key, std::int64_t low,
                                             std::int64_t high) const;
  [[nodiscard]] Result<std::int64_t> integer_or(std::string_view key, std::int64_t low,
                                                std::int64_t high, std::int64_t absent) const;
  // Seconds as a JSON number, given back in µs; 0 to 10^9 s.
  [[nodiscard]] Result<std::int64_t> seconds_us(std::string_view key) const;
  [[nodiscard]] Result<std::string> string(std::string_view key, std::size_t limit) const;
  [[nodiscard]] Result<std::vector<std::string>> strings(std::string_view key,
                                                         std::size_t count_limit,
                                                         std::size_t size_limit) const;
  [[nodiscard]] bool has(std::string_view key) const { return object_.find(key) != nullptr; }
  // The first member that is not in `known`.
  [[nodiscard]] std::optional<std::string> unknown(
      std::initializer_list<std::string_view> known) const;

 private:
  [[nodiscard]] Error wrong(std::string_view key, std::string_view expected) const;

  const Json& object_;
  std::string where_;
};

// Builds one object, in the order of the calls; `line()` has no line feed.
class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::int64_t value);
  JsonObject& add(std::string_view key, std::string_view value);
  JsonObject& add(std::string_view key, const std::vector<std::string>& values);
  JsonObject& add_integers(std::string_view key, const std::vector<std::int64_t>& values);
  JsonObject& add_object(std::string_view key, const JsonObject& value);
  [[nodiscard]] std::string line() const { return text_ + "}"; }

 private:
  void begin(std::string_view key);

  std::string text_ = "{";
};

// Quoted and escaped; bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view value);
// Length of the valid UTF-8 sequence at the front of `text`, 0 when there is none.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

}  // namespace neap::local
