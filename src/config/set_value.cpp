#include "config/set_value.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace neap::config {

namespace {

struct Step {
  std::string name;                 // of a member
  std::optional<std::size_t> item;  // or a place in a list
};

// Nothing where the key is no path.
std::optional<std::vector<Step>> steps_of(std::string_view key) {
  std::vector<Step> steps;
  while (!key.empty()) {
    if (key.front() == '[') {
      std::size_t item = 0;
      const char* const end = key.data() + key.size();
      const auto [rest, error] = std::from_chars(key.data() + 1, end, item);
      if (error != std::errc() || rest == end || *rest != ']' || steps.empty()) return {};
      steps.push_back({{}, item});
      key.remove_prefix(static_cast<std::size_t>(rest + 1 - key.data()));
    } else {
      const std::string_view name = key.substr(0, key.find_first_of(".["));
      if (name.empty()) return {};
      steps.push_back({std::string(name), {}});
      key.remove_prefix(name.size());
    }
    if (key.starts_with('.')) {
      key.remove_prefix(1);
      if (key.empty()) return {};
    } else if (!key.empty() && key.front() != '[') {
      return {};
    }
  }
  if (steps.empty() || steps.size() > static_cast<std::size_t>(depth_max)) return {};
  return steps;
}

Member* member_of(Node& node, const std::string& name, int line) {
  if (node.kind == Node::Kind::null || node.kind == Node::Kind::absent) {
    node.kind = Node::Kind::mapping;
    node.line = line;
  }
  if (node.kind != Node::Kind::mapping) return nullptr;
  for (Member& member : node.members) {
    if (member.key == name) return &member;
  }
  Member& added = node.members.emplace_back();
  added.key = name;
  added.line = line;
  added.value.line = line;
  return &added;
}

Node* item_of(Node& node, std::size_t item) {
  if (node.kind != Node::Kind::sequence || item >= node.items.size()) return nullptr;
  return &node.items[item];
}

void renumber(Node& node, int line) {
  node.line = line;
  for (Node& item : node.items) renumber(item, line);
  for (Member& member : node.members) {
    member.line = line;
    renumber(member.value, line);
  }
}

}  // namespace

bool set_value(Node& root, std::string_view key, std::string_view value, int line,
               Problems& problems) {
  const auto steps = steps_of(key);
  if (!steps) {
    problems.add(line, "",
                 in_quotes(key) + " is no key; expected one such as preempt.fixed_cost or " +
                     "priority_tiers[1].weight");
    return false;
  }
  Problems faults("");
  std::optional<Node> parsed = parse_document(value, faults);
  if (!parsed) {
    const bool empty = value.find_first_not_of(" \t") == std::string_view::npos;
    problems.add(line, std::string(key),
                 empty ? "has no value; expected key=value" : faults.found().front().message);
    return false;
  }
  Node* at = &root;
  Member* last = nullptr;  // whose value it is, unless it is an item
  std::string path;
  for (const Step& step : *steps) {
    last = step.item ? nullptr : member_of(*at, step.name, line);
    Node* const next = step.item         ? item_of(*at, *step.item)
                       : last != nullptr ? &last->value
                                         : nullptr;
    if (next == nullptr) {
      problems.add(line, path,
                   step.item ? "has no item " + std::to_string(*step.item) +
                                   "; items are counted from 0, and --set adds none"
                             : "is no section, and has no " + in_quotes(step.name));
      return false;
    }
    path +=
        step.item ? "[" + std::to_string(*step.item) + "]" : (path.empty() ? "" : ".") + step.name;
    at = next;
  }
  renumber(*parsed, line);
  if (last != nullptr) last->line = line;
  *at = std::move(*parsed);
  return true;
}

}  // namespace neap::config
