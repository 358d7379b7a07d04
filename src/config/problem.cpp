#include "config/problem.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace neap::config {

namespace {

// Insertions, deletions, replacements and swaps of neighbours that make one word of the other.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> next(b.size() + 1);
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      next[j] = std::min({replaced, row[j] + 1, next[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    before = std::exchange(row, std::move(next));
  }
  return row[b.size()];
}

}  // namespace

void Problems::add(int line, std::string field, std::string message) {
  if (found_.size() == limit) {
    ++dropped_;
    return;
  }
  found_.push_back({line, std::move(field), std::move(message)});
}

std::string place_of(std::string_view file, const Problem& problem) {
  std::string place(file);
  if (problem.line > 0) place += ":" + std::to_string(problem.line);
  if (!problem.field.empty()) place += ": " + problem.field;
  return place;
}

int Problems::add_origin(std::string where) {
  origins_.push_back(std::move(where));
  return -static_cast<int>(origins_.size());
}

std::string Problems::place(const Problem& problem) const {
  const bool elsewhere = problem.line < 0;
  return place_of(elsewhere ? origins_[static_cast<std::size_t>(-problem.line) - 1] : file_,
                  problem);
}

std::string Problems::text() const {
  std::string all;
  for (const Problem& problem : found_) {
    if (!all.empty()) all += "\n";
    all += place(problem) + ": " + problem.message;
  }
  if (dropped_ > 0) all += "\nand " + std::to_string(dropped_) + " more";
  return all;
}

Error Problems::to_error() const {
  if (found_.empty()) return {ErrorCode::internal, "no problem was found", file_};
  std::string message = found_.front().message;
  for (std::size_t i = 1; i < found_.size(); ++i) {
    message += "\n" + place(found_[i]) + ": " + found_[i].message;
  }
  if (dropped_ > 0) message += "\nand " + std::to_string(dropped_) + " more";
  return {ErrorCode::invalid_argument, std::move(message), place(found_.front())};
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  if (word.size() > 64) return {};
  std::string_view best;
  // Two edits in a short word make another word.
  std::size_t best_edits = word.size() < 5 ? 2 : 3;
  for (const std::string_view candidate : candidates) {
    const std::size_t edits = edits_between(word, candidate);
    if (edits < best_edits) {
      best = candidate;
      best_edits = edits;
    }
  }
  return best;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t shown = 40;
  std::string out = "\"";
  for (const char c : text.substr(0, shown)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  // A cut in the middle of a UTF-8 character leaves bytes that no terminal shows.
  if (text.size() > shown) {
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0x80) != 0) out.pop_back();
    out += "...";
  }
  return out + "\"";
}

}  // namespace neap::config
