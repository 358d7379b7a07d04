#include "backend/simulated/behaviour.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace neap::simulated {

namespace {

std::int64_t number_of(std::int64_t value) { return value; }
std::int64_t number_of(Micros value) { return value.value; }
std::int64_t number_of(Fault value) { return static_cast<std::int64_t>(value); }
void assign(std::int64_t& field, std::int64_t value) { field = value; }
void assign(Micros& field, std::int64_t value) { field = Micros(value); }
void assign(Fault& field, std::int64_t value) { field = static_cast<Fault>(value); }

constexpr auto last_fault = static_cast<std::int64_t>(Fault::reports_backwards);

// Numbers by name, as a text gives them. Texts that launch_text() wrote are in the order in which
// they are asked for: each is found where the last one was.
class Numbers {
 public:
  // False: there are more than any text has.
  bool set(std::string_view name, std::int64_t value) {
    if (Entry* known = entry(name)) {
      known->value = value;
      return true;
    }
    if (size_ == entries_.size()) return false;
    entries_[size_++] = {name, value, false};
    return true;
  }
  [[nodiscard]] std::optional<std::int64_t> find(std::string_view name) {
    const Entry* known = entry(name);
    return known != nullptr ? std::optional(known->value) : std::nullopt;
  }
  std::optional<std::int64_t> take(std::string_view name) {
    if (next_ < size_ && entries_[next_].name == name) {
      entries_[next_].taken = true;
      return entries_[next_++].value;
    }
    Entry* known = entry(name);
    if (known == nullptr) return {};
    known->taken = true;
    next_ = static_cast<std::size_t>(known - entries_.data()) + 1;
    return known->value;
  }
  // In the order of names.
  [[nodiscard]] std::optional<std::string_view> first_left() const {
    std::optional<std::string_view> first;
    for (std::size_t i = 0; i < size_; ++i) {
      const Entry& left = entries_[i];
      if (!left.taken && (!first || left.name < *first)) first = left.name;
    }
    return first;
  }

 private:
  struct Entry {
    std::string_view name;
    std::int64_t value = 0;
    bool taken = false;
  };
  Entry* entry(std::string_view name) {
    for (std::size_t i = 0; i < size_; ++i) {
      if (entries_[i].name == name) return &entries_[i];
    }
    return nullptr;
  }

  std::array<Entry, 64> entries_{};
  std::size_t size_ = 0, next_ = 0;
};

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
  Numbers numbers;
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
    if (!numbers.set(word.substr(0, equals), value)) {
      return fail(ErrorCode::invalid_argument, "has too many keys", "launch");
    }
  }
  Behaviour behaviour;
  if (const auto fault = numbers.find("fault"); fault && *fault > last_fault) {
    return fail(ErrorCode::invalid_argument, "unknown fault", "launch");
  }
  const auto read = [&](const char* name, auto& field) {
    if (const auto value = numbers.take(name)) assign(field, *value);
  };
  visit_fields(read, behaviour);
  if (const auto left = numbers.first_left()) {
    return fail(ErrorCode::invalid_argument, "unknown key '" + std::string(*left) + "'", "launch");
  }
  return behaviour;
}

Micros undisturbed_work(const Behaviour& b) {
  const Micros stepping = b.step * b.steps;
  const std::int64_t boundaries = b.interval.value > 0 ? stepping.value / b.interval.value : 0;
  return b.spawn + b.load + stepping + b.stall * boundaries;
}

}  // namespace neap::simulated
