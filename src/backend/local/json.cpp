#include "backend/local/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace neap::local {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | (code >> 6U));
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | (code >> 12U));
    put(0x80U | ((code >> 6U) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | (code >> 18U));
    put(0x80U | ((code >> 12U) & 0x3FU));
    put(0x80U | ((code >> 6U) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

class Parser {
 public:
  Parser(std::string_view text, int depth_limit) : text_(text), depth_left_(depth_limit) {}

  Result<Json> document() {
    Json value;
    if (!parse_value(value)) return failure();
    skip_space();
    if (at_ != text_.size()) {
      (void)stop("expected the end of the line");
      return failure();
    }
    return value;
  }

 private:
  [[nodiscard]] tl::unexpected<Error> failure() const {
    return fail(ErrorCode::invalid_argument,
                "column " + std::to_string(at_ + 1) + ": " + std::string(reason_));
  }
  bool stop(std::string_view reason) {
    reason_ = reason;
    return false;
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r' || peek() == '\n') ++at_;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return stop("expected a value");
    at_ += word.size();
    return true;
  }

  bool parse_value(Json& out) {
    skip_space();
    if (at_ >= text_.size()) return stop("expected a value, found the end of the line");
    switch (peek()) {
      case '{':
        return parse_object(out);
      case '[':
        return parse_array(out);
      case '"':
        out.kind = Json::Kind::string;
        return parse_string(out.text);
      case 't':
        out.kind = Json::Kind::boolean;
        out.integer = 1;
        return take_word("true");
      case 'f':
        out.kind = Json::Kind::boolean;
        return take_word("false");
      case 'n':
        return take_word("null");
      default:
        return parse_number(out);
    }
  }

  bool parse_object(Json& out) {
    if (depth_left_-- <= 0) return stop("nested too deeply");
    out.kind = Json::Kind::object;
    ++at_;
    skip_space();
    if (take('}')) return ++depth_left_, true;
    for (;;) {
      skip_space();
      std::string key;
      if (peek() != '"') return stop("expected a field name in quotes");
      if (!parse_string(key)) return false;
      if (out.find(key) != nullptr) return stop("a field stands twice");
      skip_space();
      if (!take(':')) return stop("expected ':'");
      Json value;
      if (!parse_value(value)) return false;
      out.members.push_back({std::move(key), std::move(value)});
      if (out.members.size() > max_members) return stop("more than 256 fields");
      skip_space();
      if (take('}')) return ++depth_left_, true;
      if (!take(',')) return stop("expected ',' or '}'");
    }
  }

  bool parse_array(Json& out) {
    if (depth_left_-- <= 0) return stop("nested too deeply");
    out.kind = Json::Kind::array;
    ++at_;
    skip_space();
    if (take(']')) return ++depth_left_, true;
    for (;;) {
      Json value;
      if (!parse_value(value)) return false;
      out.items.push_back(std::move(value));
      skip_space();
      if (take(']')) return ++depth_left_, true;
      if (!take(',')) return stop("expected ',' or ']'");
    }
  }

  bool parse_string(std::string& out) {
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') return ++at_, true;
      if (c == '\\') {
        if (!parse_escape(out)) return false;
        continue;
      }
      if (static_cast<unsigned char>(c) < 0x20) return stop("control character in a string");
      const std::size_t length = utf8_length(text_.substr(at_));
      if (length == 0) return stop("invalid UTF-8");
      out.append(text_, at_, length);
      at_ += length;
    }
    return stop("a string without its closing quote");
  }

  bool parse_hex4(std::uint32_t& out) {
    const std::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
    if (digits.size() != 4 || error != std::errc{} || end != digits.data() + 4) {
      return stop("expected four hexadecimal digits");
    }
    at_ += 4;
    return true;
  }

  bool parse_escape(std::string& out) {
    ++at_;
    const char c = peek();
    ++at_;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out.push_back(c);
        return true;
      case 'b':
        out.push_back('\b');
        return true;
      case 'f':
        out.push_back('\f');
        return true;
      case 'n':
        out.push_back('\n');
        return true;
      case 'r':
        out.push_back('\r');
        return true;
      case 't':
        out.push_back('\t');
        return true;
      case 'u':
        break;
      default:
        --at_;
        return stop("unknown escape");
    }
    std::uint32_t code = 0;
    if (!parse_hex4(code)) return false;
    if (code >= 0xDC00 && code <= 0xDFFF) return stop("a lone surrogate");
    if (code >= 0xD800 && code <= 0xDBFF) {
      std::uint32_t low = 0;
      if (!take('\\') || !take('u')) return stop("a lone surrogate");
      if (!parse_hex4(low)) return false;
      if (low < 0xDC00 || low > 0xDFFF) return stop("a lone surrogate");
      code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
    }
    append_utf8(out, code);
    return true;
  }

  bool take_digits() {
    if (!is_digit(peek())) return false;
    while (is_digit(peek())) ++at_;
    return true;
  }

  bool parse_number(Json& out) {
    const std::size_t begin = at_;
    take('-');
    if (!take('0') && !take_digits()) return stop("expected a value");
    bool whole = true;
    if (take('.')) {
      whole = false;
      if (!take_digits()) return stop("expected a digit after the point");
    }
    if (peek() == 'e' || peek() == 'E') {
      whole = false;
      ++at_;
      if (!take('+')) take('-');
      if (!take_digits()) return stop("expected a digit in the exponent");
    }
    const char* first = text_.data() + begin;
    const char* last = text_.data() + at_;
    if (whole) {
      out.kind = Json::Kind::integer;
      if (std::from_chars(first, last, out.integer).ec != std::errc{}) {
        return stop("an integer beyond 64 bits");
      }
      out.real = static_cast<double>(out.integer);
      return true;
    }
    out.kind = Json::Kind::real;
    const auto error = std::from_chars(first, last, out.real).ec;
    if (error != std::errc{} || !std::isfinite(out.real)) return stop("a number out of range");
    return true;
  }

  static constexpr std::size_t max_members = 256;  // find() is linear
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_left_;
  std::string_view reason_ = "not JSON";
};

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0U) == 0x80U; };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (!tail(1) || !tail(2)) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

Result<Json> parse_json(std::string_view text, int depth_limit) {
  return Parser(text, depth_limit).document();
}

Error JsonFields::wrong(std::string_view key, std::string_view expected) const {
  std::string message = where_;
  message.append(key).append(has(key) ? ": expected " : " is missing: expected ");
  message.append(expected);
  return Error{ErrorCode::invalid_argument, std::move(message), {}};
}

Result<std::int64_t> JsonFields::integer(std::string_view key, std::int64_t low,
                                         std::int64_t high) const {
  const Json* value = object_.find(key);
  if (value == nullptr || value->kind != Json::Kind::integer || value->integer < low ||
      value->integer > high) {
    return tl::unexpected(
        wrong(key, "an integer from " + std::to_string(low) + " to " + std::to_string(high)));
  }
  return value->integer;
}

Result<std::int64_t> JsonFields::integer_or(std::string_view key, std::int64_t low,
                                            std::int64_t high, std::int64_t absent) const {
  if (!has(key)) return absent;
  return integer(key, low, high);
}

Result<std::int64_t> JsonFields::seconds_us(std::string_view key) const {
  constexpr double most = 1e9;
  const Json* value = object_.find(key);
  const bool number =
      value != nullptr && (value->kind == Json::Kind::integer || value->kind == Json::Kind::real);
  if (!number || !(value->real >= 0 && value->real <= most)) {
    return tl::unexpected(wrong(key, "seconds, a number from 0 to 1000000000"));
  }
  return static_cast<std::int64_t>(std::llround(value->real * 1e6));
}

Result<std::string> JsonFields::string(std::string_view key, std::size_t limit) const {
  const Json* value = object_.find(key);
  if (value == nullptr || value->kind != Json::Kind::string || value->text.size() > limit) {
    return tl::unexpected(wrong(key, "a string of at most " + std::to_string(limit) + " bytes"));
  }
  return value->text;
}

Result<std::vector<std::string>> JsonFields::strings(std::string_view key, std::size_t count_limit,
                                                     std::size_t size_limit) const {
  const auto refuse = [&] {
    return tl::unexpected(wrong(key, "a list of at most " + std::to_string(count_limit) +
                                         " strings of at most " + std::to_string(size_limit) +
                                         " bytes"));
  };
  const Json* value = object_.find(key);
  if (value == nullptr || value->kind != Json::Kind::array) return refuse();
  if (value->items.size() > count_limit) return refuse();
  std::vector<std::string> out;
  out.reserve(value->items.size());
  for (const Json& item : value->items) {
    if (item.kind != Json::Kind::string || item.text.size() > size_limit) return refuse();
    out.push_back(item.text);
  }
  return out;
}

std::optional<std::string> JsonFields::unknown(
    std::initializer_list<std::string_view> known) const {
  for (const auto& [name, value] : object_.members) {
    if (std::find(known.begin(), known.end(), name) == known.end()) return where_ + name;
  }
  return std::nullopt;
}

void append_json_string(std::string& out, std::string_view value) {
  out.push_back('"');
  while (!value.empty()) {
    const char c = value.front();
    const std::size_t length = utf8_length(value);
    if (length == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out.append(value, 0, length);
    }
    value.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out.push_back('"');
}

void JsonObject::begin(std::string_view key) {
  if (text_.size() > 1) text_.push_back(',');
  append_json_string(text_, key);
  text_.push_back(':');
}

JsonObject& JsonObject::add(std::string_view key, std::int64_t value) {
  begin(key);
  text_ += std::to_string(value);
  return *this;
}

JsonObject& JsonObject::add(std::string_view key, std::string_view value) {
  begin(key);
  append_json_string(text_, value);
  return *this;
}

JsonObject& JsonObject::add(std::string_view key, const std::vector<std::string>& values) {
  begin(key);
  text_.push_back('[');
  for (const std::string& value : values) {
    if (&value != &values.front()) text_.push_back(',');
    append_json_string(text_, value);
  }
  text_.push_back(']');
  return *this;
}

JsonObject& JsonObject::add_integers(std::string_view key,
                                     const std::vector<std::int64_t>& values) {
  begin(key);
  text_.push_back('[');
  for (const std::int64_t& value : values) {
    if (&value != &values.front()) text_.push_back(',');
    text_ += std::to_string(value);
  }
  text_.push_back(']');
  return *this;
}

JsonObject& JsonObject::add_object(std::string_view key, const JsonObject& value) {
  begin(key);
  text_ += value.line();
  return *this;
}

}  // namespace neap::local
