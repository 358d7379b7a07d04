// First stage of reading a file: YAML text into a plain tree that remembers lines. What YAML
// allows and people regret is refused here: duplicate keys, anchors and aliases, tags, several
// documents, deep nesting. What a value means is the second stage's business.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"

namespace neap::config {

struct Member;

struct Node {
  enum class Kind { absent, null, scalar, sequence, mapping };

  Kind kind = Kind::absent;
  bool quoted = false;  // a scalar in quotes is text, never a number or a truth value
  int line = 0;
  std::string text;             // of a scalar
  std::vector<Node> items;      // of a sequence
  std::vector<Member> members;  // of a mapping, in the file's order

  [[nodiscard]] const Node* find(std::string_view key) const;
};

struct Member {
  std::string key;
  int line = 0;
  Node value;
};

inline constexpr int depth_max = 32;
inline constexpr std::size_t nodes_max = 100'000;

// The tree of the text's one document, or nothing when `problems` has gained an entry.
[[nodiscard]] std::optional<Node> parse_document(std::string_view text, Problems& problems);

}  // namespace neap::config
