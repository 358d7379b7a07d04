// The answers of the daemon as a plain tree, so that one file alone pays for a JSON library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/result.h"

namespace neap::cli {

struct ValueMember;

// A missing member reads as an empty value: a newer daemon may say less or more.
class Value {
 public:
  enum class Kind { null, truth, number, text, list, object };

  // internal, when the daemon's answer is no JSON.
  [[nodiscard]] static Result<Value> parse(std::string_view json);

  [[nodiscard]] const Value& at(std::string_view member) const;
  [[nodiscard]] bool is_null() const { return kind == Kind::null; }
  [[nodiscard]] const std::string& text_at(std::string_view member) const {
    return at(member).text;
  }
  // The number of a member, `otherwise` when it is null or not there.
  [[nodiscard]] std::int64_t number_at(std::string_view member, std::int64_t otherwise = 0) const;
  [[nodiscard]] bool true_at(std::string_view member) const { return at(member).number != 0; }
  [[nodiscard]] const std::vector<Value>& list_at(std::string_view member) const {
    return at(member).items;
  }

  Kind kind = Kind::null;
  std::int64_t number = 0;  // 1 for true; of a fraction, its whole part
  bool fraction = false;    // or beyond 64 bits
  std::string text;
  std::vector<Value> items;
  std::vector<ValueMember> members;
};

struct ValueMember {
  std::string name;
  Value value;
};

// Where a text stops being JSON: both from 1. Of a text that is JSON, 0.
struct JsonFault {
  std::size_t line = 0, column = 0;
};
[[nodiscard]] JsonFault json_fault(std::string_view text);

// {"name": "value", ...}
[[nodiscard]] std::string json_object(
    const std::vector<std::pair<std::string, std::string>>& members);
// "text" in quotes: valid JSON, and valid YAML.
[[nodiscard]] std::string json_text(std::string_view text);
// "name":value, of a value that is JSON.
[[nodiscard]] std::string json_pair(std::string_view name, std::string_view value);
[[nodiscard]] std::string json_pair(std::string_view name, std::int64_t value);

}  // namespace neap::cli
