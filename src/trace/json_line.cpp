#include "trace/json_line.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace neap::trace {

using Tree = nlohmann::json;

struct JsonLine::Parsed {
  Tree object;
};

namespace {

constexpr int deepest = 8;

// Nothing when the text is no JSON, is nested too deep, or has a member twice.
std::optional<Tree> parse(std::string_view text) {
  bool refused = false;
  std::vector<std::vector<std::string>> members;
  const auto look = [&](int depth, Tree::parse_event_t event, Tree& value) {
    if (depth > deepest) refused = true;
    if (event == Tree::parse_event_t::object_start) members.emplace_back();
    if (event == Tree::parse_event_t::object_end && !members.empty()) members.pop_back();
    if (event == Tree::parse_event_t::key && !members.empty()) {
      std::vector<std::string>& seen = members.back();
      const auto& name = value.get_ref<const std::string&>();
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) refused = true;
      if (seen.size() > 64) refused = true;
      seen.push_back(name);
    }
    return !refused;
  };
  Tree tree = Tree::parse(text.begin(), text.end(), look, false);
  if (refused || tree.is_discarded()) return {};
  return tree;
}

std::string bounds(Range range) {
  return "a whole number from " + std::to_string(range.first) + " to " + std::to_string(range.last);
}

std::optional<std::int64_t> whole_of(const Tree& value, Range range) {
  if (!value.is_number_integer()) return {};
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return {};
  const auto number = value.get<std::int64_t>();
  if (number < range.first || number > range.last) return {};
  return number;
}

}  // namespace

JsonLine::JsonLine(std::unique_ptr<Parsed> parsed, const LineReader& lines)
    : parsed_(std::move(parsed)), lines_(&lines) {}
JsonLine::~JsonLine() = default;
JsonLine::JsonLine(JsonLine&&) noexcept = default;
JsonLine& JsonLine::operator=(JsonLine&&) noexcept = default;

Result<std::optional<JsonLine>> JsonLine::next(LineReader& lines) {
  while (true) {
    const auto line = lines.next();
    if (!line) return tl::unexpected(line.error());
    if (!*line) return std::optional<JsonLine>();
    if ((*line)->find_first_not_of(" \t") == std::string_view::npos) continue;
    auto tree = parse(**line);
    if (!tree || !tree->is_object()) {
      return fail(ErrorCode::invalid_argument, "expected a JSON object without repeated members",
                  lines.place());
    }
    return JsonLine(std::make_unique<Parsed>(Parsed{std::move(*tree)}), lines);
  }
}

bool JsonLine::has(std::string_view member) const {
  return parsed_->object.contains(std::string(member));
}

void JsonLine::reject(std::string_view member, std::string_view expected) {
  if (problem_) return;
  problem_ = Error{ErrorCode::invalid_argument, "expected " + std::string(expected),
                   lines_->place(member)};
}

std::int64_t JsonLine::whole(std::string_view member, Range range) {
  const auto at = parsed_->object.find(std::string(member));
  if (at != parsed_->object.end()) {
    if (const auto number = whole_of(*at, range)) return *number;
  }
  reject(member, bounds(range));
  return range.first;
}

std::int64_t JsonLine::whole_or(std::string_view member, Range range, std::int64_t otherwise) {
  return has(member) ? whole(member, range) : otherwise;
}

std::string JsonLine::text(std::string_view member) {
  const auto at = parsed_->object.find(std::string(member));
  if (at == parsed_->object.end()) return {};
  if (at->is_string()) return at->get<std::string>();
  reject(member, "a text");
  return {};
}

std::vector<std::int64_t> JsonLine::list(std::string_view member, Range range) {
  std::vector<std::int64_t> numbers;
  const auto at = parsed_->object.find(std::string(member));
  if (at == parsed_->object.end()) return numbers;
  if (!at->is_array()) {
    reject(member, "a list");
    return numbers;
  }
  for (const Tree& item : *at) {
    const auto number = whole_of(item, range);
    if (!number) {
      reject(member, "a list of whole numbers from " + std::to_string(range.first) + " to " +
                         std::to_string(range.last));
      break;
    }
    numbers.push_back(*number);
  }
  return numbers;
}

Result<void> JsonLine::finish(const std::vector<std::string_view>& known) {
  if (!known.empty()) {
    for (const auto& [name, value] : parsed_->object.items()) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        reject(name.substr(0, 40), "no such member");
      }
    }
  }
  if (!problem_) return {};
  return tl::unexpected(*problem_);
}

std::string json_string(std::string_view text) {
  return Tree(text).dump(-1, ' ', false, Tree::error_handler_t::replace);
}

}  // namespace neap::trace
