#include "config/fields.h"

#include <algorithm>
#include <limits>

namespace neap::config {

namespace {

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_letter_or_digit(char c) { return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z'); }

std::string_view name_of(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::absent:
      return "nothing";
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::scalar:
      return "a single value";
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::mapping:
      return "a mapping";
  }
  return "";
}

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 63 && is_lower_or_digit(text.front()) &&
         is_lower_or_digit(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return is_lower_or_digit(c) || c == '-' || c == '.';
         });
}

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 63 && is_letter_or_digit(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_';
         });
}

Fields::Fields(const Node& node, std::string path, Reading& reading)
    : node_(node), path_(std::move(path)), reading_(reading) {
  if (node.kind != Node::Kind::absent && node.kind != Node::Kind::mapping) {
    reading_.problems.add(node.line, path_,
                          std::string(name_of(node.kind)) +
                              " is not accepted here; expected fields, each `name: value`");
  }
}

const Node& Fields::absent_node() {
  static const Node absent;
  return absent;
}

std::string Fields::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

bool Fields::has(std::string_view key) const { return node_.find(key) != nullptr; }

int Fields::line_of(std::string_view key) const {
  for (const Member& member : node_.members) {
    if (member.key == key) return member.line;
  }
  return node_.line;
}

std::string Fields::note(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  std::string path = path_of(key);
  if (reading_.asked != nullptr) reading_.asked->insert(path);
  return path;
}

const Node* Fields::take(std::string_view key, Need need) {
  note(key);
  const Node* node = node_.find(key);
  if (node != nullptr && node->kind == Node::Kind::null) {
    refuse(key, "has no value; give one or leave the field out");
    return nullptr;
  }
  if (node == nullptr && need == Need::required && present()) missing(key, "");
  return node;
}

const Node* Fields::scalar(std::string_view key, Need need) {
  const Node* node = take(key, need);
  if (node == nullptr || node->kind == Node::Kind::scalar) return node;
  refuse(key, std::string(name_of(node->kind)) + " is not accepted here; expected a single value");
  return nullptr;
}

bool Fields::says(std::string_view key, std::string_view text) {
  note(key);
  const Node* node = node_.find(key);
  return node != nullptr && node->kind == Node::Kind::scalar && node->text == text;
}

bool Fields::refuse(std::string_view key, std::string message) {
  reading_.problems.add(line_of(key), path_of(key), std::move(message));
  return false;
}

void Fields::missing(std::string_view key, std::string_view expected) {
  std::string message = "is missing";
  if (!expected.empty()) message += "; expected " + std::string(expected);
  reading_.problems.add(node_.line, path_of(key), std::move(message));
}

bool Fields::text(std::string_view key, std::string& into, Need need, std::size_t max) {
  const Node* node = scalar(key, need);
  if (node == nullptr) return false;
  if (node->text.empty()) return refuse(key, "is empty");
  if (node->text.size() > max) {
    return refuse(key, "is longer than " + std::to_string(max) + " bytes");
  }
  if (node->text.find('\n') != std::string::npos) return refuse(key, "holds a line break");
  into = node->text;
  return true;
}

bool Fields::name(std::string_view key, std::string& into, Need need) {
  const Node* node = scalar(key, need);
  if (node == nullptr) return false;
  if (!is_name(node->text)) {
    return refuse(key, in_quotes(node->text) +
                           " is not a name; expected at most 63 of a-z, 0-9, '-' and '.', with a "
                           "letter or digit at each end");
  }
  into = node->text;
  return true;
}

bool Fields::word(std::string_view key, std::string& into, Need need) {
  const Node* node = scalar(key, need);
  if (node == nullptr) return false;
  if (!is_word(node->text)) {
    return refuse(key, in_quotes(node->text) +
                           " is not a word; expected at most 63 letters, digits, '-', '_' and '.', "
                           "with a letter or digit first");
  }
  into = node->text;
  return true;
}

bool Fields::flag(std::string_view key, bool& into) {
  const Node* node = scalar(key, Need::optional);
  if (node == nullptr) return false;
  if (node->quoted || (node->text != "true" && node->text != "false")) {
    return refuse(key, in_quotes(node->text) + " is neither true nor false");
  }
  into = node->text == "true";
  return true;
}

bool Fields::whole(std::string_view key, std::int64_t& into, Range range, Need need) {
  const Node* node = scalar(key, need);
  if (node == nullptr) return false;
  Parsed<std::int64_t> value = parse_whole(node->text);
  if (!value) return refuse(key, std::move(value.error()));
  if (*value < range.min || *value > range.max) {
    return refuse(key, std::to_string(*value) + " is out of range; expected " +
                           std::to_string(range.min) + " to " + std::to_string(range.max));
  }
  into = *value;
  return true;
}

bool Fields::whole(std::string_view key, std::int32_t& into, Range range, Need need) {
  std::int64_t value = 0;
  range.max = std::min<std::int64_t>(range.max, std::numeric_limits<std::int32_t>::max());
  if (!whole(key, value, range, need)) return false;
  into = static_cast<std::int32_t>(value);
  return true;
}

bool Fields::duration(std::string_view key, Micros& into, Micros min, Micros max) {
  Micros value;
  if (!parsed(key, value, parse_duration)) return false;
  if (value < min || value > max) {
    return refuse(
        key, to_text(value) + " is out of range; expected " + to_text(min) + " to " + to_text(max));
  }
  into = value;
  return true;
}

bool Fields::memory(std::string_view key, MiB& into, Need need) {
  if (need == Need::required && present() && !has(key)) {
    note(key);
    missing(key, "memory such as 16GiB");
    return false;
  }
  MiB value;
  if (!parsed(key, value, parse_memory)) return false;
  if (value.value == 0) return refuse(key, "is zero; leave it out or give an amount");
  into = value;
  return true;
}

bool Fields::share(std::string_view key, MilliGpu& into) { return parsed(key, into, parse_share); }

bool Fields::part(std::string_view key, Ppm& into) { return parsed(key, into, parse_part); }

bool Fields::refuse_choice(std::string_view key, std::string_view found,
                           const std::vector<std::string_view>& names) {
  std::string message = in_quotes(found) + " is not known; expected ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) message += i + 1 == names.size() ? " or " : ", ";
    message += names[i];
  }
  return refuse(key, std::move(message));
}

bool Fields::texts(std::string_view key, std::vector<std::string>& into, std::size_t max_items) {
  const Node* node = take(key, Need::optional);
  if (node == nullptr) return false;
  if (node->kind == Node::Kind::scalar) {
    into = {node->text};
    return true;
  }
  if (node->kind != Node::Kind::sequence) return refuse(key, "expected a list of texts");
  if (node->items.empty() || node->items.size() > max_items) {
    return refuse(key, "holds " + std::to_string(node->items.size()) + " entries; expected 1 to " +
                           std::to_string(max_items));
  }
  std::vector<std::string> found;
  for (const Node& item : node->items) {
    if (item.kind != Node::Kind::scalar) {
      return refuse(key, "entry " + std::to_string(found.size()) + " is not a text");
    }
    found.push_back(item.text);
  }
  into = std::move(found);
  return true;
}

bool Fields::words(std::string_view key, std::vector<std::string>& into, std::size_t max_items) {
  std::vector<std::string> found;
  if (!texts(key, found, max_items)) return false;
  for (const std::string& word : found) {
    if (!is_word(word)) {
      return refuse(key, in_quotes(word) + " is not a word of letters, digits, '-', '_' and '.'");
    }
  }
  into = std::move(found);
  return true;
}

bool Fields::dictionary(std::string_view key,
                        std::vector<std::pair<std::string, std::string>>& into,
                        std::size_t max_items) {
  const Node* node = take(key, Need::optional);
  if (node == nullptr) return false;
  if (node->kind != Node::Kind::mapping) return refuse(key, "expected lines of `NAME: value`");
  if (node->members.size() > max_items) {
    return refuse(key, "holds more than " + std::to_string(max_items) + " entries");
  }
  for (const Member& member : node->members) {
    if (member.value.kind != Node::Kind::scalar && member.value.kind != Node::Kind::null) {
      reading_.problems.add(member.line, path_of(key) + "." + member.key,
                            "expected a single value");
      continue;
    }
    into.emplace_back(member.key, member.value.text);
  }
  return true;
}

Fields Fields::section(std::string_view key) {
  const Node* node = take(key, Need::optional);
  return Fields(node == nullptr ? absent_node() : *node, path_of(key), reading_);
}

const std::vector<Node>& Fields::list(std::string_view key, std::size_t max_items) {
  static const std::vector<Node> none;
  const Node* node = take(key, Need::optional);
  if (node == nullptr) return none;
  if (node->kind != Node::Kind::sequence) {
    refuse(key, std::string(name_of(node->kind)) + " is not accepted here; expected a list");
    return none;
  }
  if (node->items.size() > max_items) {
    refuse(key, "holds more than " + std::to_string(max_items) + " entries");
    return none;
  }
  return node->items;
}

void Fields::close() {
  const std::vector<std::string_view> known(known_.begin(), known_.end());
  for (const Member& member : node_.members) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    std::string message = "is not a known field";
    const std::string_view suggestion = nearest(member.key, known);
    if (!suggestion.empty()) {
      message += "; did you mean \"" + std::string(suggestion) + "\"?";
    } else {
      message += "; expected one of";
      for (std::size_t i = 0; i < known.size(); ++i) {
        message += (i == 0 ? " " : ", ") + std::string(known[i]);
      }
    }
    std::string shown = in_quotes(member.key);
    reading_.problems.add(member.line, path_of(shown.substr(1, shown.size() - 2)),
                          std::move(message));
  }
}

}  // namespace neap::config
