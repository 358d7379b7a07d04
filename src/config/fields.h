// Second stage of reading a file: the fields of one mapping into typed values. Each accessor
// leaves its target as it was (the default) when the field is absent, and reports a problem when
// it is there and wrong; close() reports the fields that nobody asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/document.h"
#include "config/problem.h"
#include "config/values.h"
#include "core/model/units.h"

namespace neap::config {

// What the reading of one file shares.
struct Reading {
  Problems& problems;
  // When set, every field that is asked for is noted here with its path ("[]" for items).
  std::set<std::string>* asked = nullptr;
};

// All keys that a reader asks for: it is given an empty document. `read` is called with a Reading.
template <class Read>
[[nodiscard]] std::set<std::string> keys_asked_by(const Read& read) {
  std::set<std::string> keys;
  Problems problems("");
  Reading reading{problems, &keys};
  read(reading);
  return keys;
}

struct Range {
  std::int64_t min = 0;
  std::int64_t max = 1'000'000;
};

template <class Enum>
struct Choice {
  std::string_view name;
  Enum value;
};

enum class Need : std::uint8_t { optional, required };

class Fields {
 public:
  // `node` may be absent; when it is there and no mapping, that is a problem.
  Fields(const Node& node, std::string path, Reading& reading);

  [[nodiscard]] bool present() const { return node_.kind == Node::Kind::mapping; }
  [[nodiscard]] int line() const { return node_.line; }
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] int line_of(std::string_view key) const;  // the mapping's own when absent
  [[nodiscard]] std::string path_of(std::string_view key) const;
  [[nodiscard]] Reading& reading() const { return reading_; }

  // Free text without line breaks, 1 to `max` bytes.
  bool text(std::string_view key, std::string& into, Need need = Need::optional,
            std::size_t max = 4096);
  // [a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?
  bool name(std::string_view key, std::string& into, Need need = Need::optional);
  // Like a name, and with capitals and underscores: tiers, device models, teams.
  bool word(std::string_view key, std::string& into, Need need = Need::optional);
  bool flag(std::string_view key, bool& into);
  bool whole(std::string_view key, std::int64_t& into, Range range, Need need = Need::optional);
  bool whole(std::string_view key, std::int32_t& into, Range range, Need need = Need::optional);
  bool duration(std::string_view key, Micros& into, Micros min, Micros max);
  bool memory(std::string_view key, MiB& into, Need need = Need::optional);
  bool share(std::string_view key, MilliGpu& into);
  bool part(std::string_view key, Ppm& into);
  // The value through a parser of values.h.
  template <class T>
  bool parsed(std::string_view key, T& into, Parsed<T> (*parse)(std::string_view)) {
    const Node* node = scalar(key, Need::optional);
    if (node == nullptr) return false;
    Parsed<T> value = parse(node->text);
    if (!value) return refuse(key, std::move(value.error()));
    into = std::move(*value);
    return true;
  }
  template <class Enum>
  bool choice(std::string_view key, Enum& into, const std::vector<Choice<Enum>>& choices) {
    const Node* node = scalar(key, Need::optional);
    if (node == nullptr) return false;
    std::vector<std::string_view> names;
    for (const auto& choice : choices) {
      if (choice.name == node->text) {
        into = choice.value;
        return true;
      }
      names.push_back(choice.name);
    }
    return refuse_choice(key, node->text, names);
  }
  // Whether the field is there as just this text; with another, it is left to be read.
  bool says(std::string_view key, std::string_view text);
  // A list of texts, or one text.
  bool texts(std::string_view key, std::vector<std::string>& into, std::size_t max_items);
  bool words(std::string_view key, std::vector<std::string>& into, std::size_t max_items);
  // A mapping of texts with keys of the writer's choice.
  bool dictionary(std::string_view key, std::vector<std::pair<std::string, std::string>>& into,
                  std::size_t max_items);

  // The mapping under `key`, for reading in turn; absent when it is not there.
  Fields section(std::string_view key);
  // Calls `read(Fields)` for each mapping in the list under `key`. While fields are only being
  // listed it is called once with an absent one.
  template <class Read>
  void each(std::string_view key, std::size_t max_items, Read read) {
    if (reading_.asked != nullptr) {
      Fields item(absent_node(), note(key) + "[]", reading_);
      read(item);
      return;
    }
    std::size_t index = 0;
    for (const Node& node : list(key, max_items)) {
      Fields item(node, path_of(key) + "[" + std::to_string(index++) + "]", reading_);
      if (item.present()) read(item);
    }
  }

  // Reports `message` about `key`; returns false, for the accessors.
  bool refuse(std::string_view key, std::string message);
  // Reports that a needed field is not there.
  void missing(std::string_view key, std::string_view expected);
  // Reports every field that was not asked for, with the nearest that was.
  void close();

 private:
  static const Node& absent_node();
  std::string note(std::string_view key);
  const Node* take(std::string_view key, Need need);
  const Node* scalar(std::string_view key, Need need);
  const std::vector<Node>& list(std::string_view key, std::size_t max_items);
  bool refuse_choice(std::string_view key, std::string_view found,
                     const std::vector<std::string_view>& names);

  const Node& node_;
  std::string path_;
  Reading& reading_;
  std::vector<std::string> known_;
};

[[nodiscard]] bool is_name(std::string_view text);
[[nodiscard]] bool is_word(std::string_view text);

}  // namespace neap::config
