// One JSON object a line, read by member. The only door to the JSON library in this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/result.h"
#include "trace/csv.h"
#include "trace/lines.h"

namespace neap::trace {

class JsonLine {
 public:
  // The next line that is not empty as an object; nothing after the last.
  [[nodiscard]] static Result<std::optional<JsonLine>> next(LineReader& lines);
  ~JsonLine();
  JsonLine(JsonLine&&) noexcept;
  JsonLine& operator=(JsonLine&&) noexcept;

  [[nodiscard]] bool has(std::string_view member) const;
  // As with rows of CSV, the first wrong member is kept for `finish`.
  std::int64_t whole(std::string_view member, Range range);
  std::int64_t whole_or(std::string_view member, Range range, std::int64_t otherwise);
  // Empty where the member is not there.
  std::string text(std::string_view member);
  std::vector<std::int64_t> list(std::string_view member, Range range);
  void reject(std::string_view member, std::string_view expected);
  // Also refuses members that nobody has asked for, when `known` names those there may be.
  [[nodiscard]] Result<void> finish(const std::vector<std::string_view>& known = {});

 private:
  struct Parsed;
  JsonLine(std::unique_ptr<Parsed> parsed, const LineReader& lines);

  std::unique_ptr<Parsed> parsed_;
  const LineReader* lines_;
  std::optional<Error> problem_;
};

// With quotes and escapes.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace neap::trace
