// What is wrong with a file that somebody wrote: every fault found, each with its place.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/result.h"

namespace neap::config {

struct Problem {
  int line = 0;         // from 1; 0 when the file as a whole is wrong; below 0: see Problems
  std::string field;    // dotted path such as "pool.total_gpus" or "priority_tiers[2].name"
  std::string message;  // what is wrong, what was expected
};

// The faults of one file, bounded: a file of nothing but faults fills a screen, not the memory.
class Problems {
 public:
  static constexpr std::size_t limit = 50;

  explicit Problems(std::string file) : file_(std::move(file)) {}

  void add(int line, std::string field, std::string message);
  // Values that come from elsewhere than the file, such as "--set key=value": the result is their
  // line number, below 0.
  [[nodiscard]] int add_origin(std::string where);

  [[nodiscard]] bool empty() const { return found_.empty(); }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::vector<Problem>& found() const { return found_; }
  [[nodiscard]] std::size_t dropped() const { return dropped_; }

  // "file:line: field: message", a line each.
  [[nodiscard]] std::string text() const;
  // All of them as one error: the context holds the first one's place.
  [[nodiscard]] Error to_error() const;

 private:
  [[nodiscard]] std::string place(const Problem& problem) const;

  std::vector<std::string> origins_;
  std::string file_;
  std::vector<Problem> found_;
  std::size_t dropped_ = 0;
};

[[nodiscard]] std::string place_of(std::string_view file, const Problem& problem);

// The candidate within two edits of `word` (nearest first), or empty.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       const std::vector<std::string_view>& candidates);

// `text` for an error message: printable, in quotes, cut at 40 characters.
[[nodiscard]] std::string in_quotes(std::string_view text);

}  // namespace neap::config
