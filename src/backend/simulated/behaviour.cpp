#include "backend/simulated/behaviour.h"

#include <charconv>
#include <map>

namespace neap::simulated {

namespace {

std::int64_t number_of(std::int64_t value) { return value; }
std::int64_t number_of(Micros value) { return value.value; }
std::int64_t number_of(Fault value) { return static_cast<std::int64_t>(value); }
void assign(std::int64_t& field, std::int64_t value) { field = value; }
void assign(Micros& field, std::int64_t value) { field = Micros(value); }
void assign(Fault& field, std::int64_t value) { field = static_cast<Fault>(value); }

constexpr auto last_fault = static_cast<std::int64_t>(Fault::reports_backwards);

}  // namespace

std::string launch_text(const Behaviour& behaviour) {
  std::string text;
  const auto write = [&](const char* name, const auto& value) {
    if (!text.empty()) text += ' ';
    text += name;
    text += '=';
    text += std::to_string(number_of(value));
  };
  visit_fields(write, behaviour);
  return text;
}

Result<Behaviour> parse_launch_text(std::string_view text) {
  std::map<std::string_view, std::int64_t> numbers;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    std::int64_t value = 0;
    const char* const end = word.data() + word.size();
    const char* const begin = equals == std::string_view::npos ? end : word.data() + equals + 1;
    if (const auto [rest, error] = std::from_chars(begin, end, value);
        error != std::errc() || rest != end || value < 0) {
      return fail(ErrorCode::invalid_argument,
                  "expected name=number, found '" + std::string(word) + "'", "launch");
    }
    numbers[word.substr(0, equals)] = value;
  }
  Behaviour behaviour;
  const auto read = [&](const char* name, auto& field) {
    const auto found = numbers.find(name);
    if (found == numbers.end()) return;
    assign(field, found->second);
    numbers.erase(found);
  };
  const auto fault = numbers.find("fault");
  if (fault != numbers.end() && fault->second > last_fault) {
    return fail(ErrorCode::invalid_argument, "unknown fault", "launch");
  }
  visit_fields(read, behaviour);
  if (!numbers.empty()) {
    return fail(ErrorCode::invalid_argument,
                "unknown key '" + std::string(numbers.begin()->first) + "'", "launch");
  }
  return behaviour;
}

Micros undisturbed_work(const Behaviour& b) {
  const Micros stepping = b.step * b.steps;
  const std::int64_t boundaries = b.interval.value > 0 ? stepping.value / b.interval.value : 0;
  return b.spawn + b.load + stepping + b.stall * boundaries;
}

}  // namespace neap::simulated
