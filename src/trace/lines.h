// A stream of bytes as lines of bounded length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/result.h"
#include "trace/bytes.h"

namespace neap::trace {

class LineReader {
 public:
  static constexpr std::size_t usual_limit = std::size_t{1} << 20U;

  explicit LineReader(Bytes bytes, std::size_t limit = usual_limit);

  // The next line without its end (LF or CRLF), and without the byte order mark that may begin
  // the first; valid until the next call. Nothing after the last. A last line needs no end.
  [[nodiscard]] Result<std::optional<std::string_view>> next();
  [[nodiscard]] std::int64_t number() const { return number_; }  // of the last line, from 1
  [[nodiscard]] const std::string& name() const { return bytes_->name(); }
  // "file:line: field", or "file:line" without a field.
  [[nodiscard]] std::string place(std::string_view field = {}) const;

 private:
  [[nodiscard]] tl::unexpected<Error> too_long() const;
  [[nodiscard]] Result<bool> fill();  // false at the end

  Bytes bytes_;
  std::size_t limit_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool ended_ = false;
  std::int64_t number_ = 0;
};

}  // namespace neap::trace
