#include "trace/lines.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace neap::trace {

namespace {
constexpr std::size_t first_bytes = 64 * 1024;
}

LineReader::LineReader(Bytes bytes, std::size_t limit)
    : bytes_(std::move(bytes)), limit_(limit), buffer_(std::min(first_bytes, limit + 2)) {}

std::string LineReader::place(std::string_view field) const {
  std::string text = name() + ":" + std::to_string(number_);
  if (!field.empty()) text.append(": ").append(field);
  return text;
}

tl::unexpected<Error> LineReader::too_long() const {
  return fail(ErrorCode::too_large, "the line is longer than " + std::to_string(limit_) + " bytes",
              place());
}

Result<bool> LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    if (buffer_.size() >= limit_ + 2) {
      ++number_;
      return too_long();
    }
    buffer_.resize(std::min(buffer_.size() * 2, limit_ + 2));
  }
  const auto got = bytes_->read(std::span<char>(buffer_).subspan(end_));
  if (!got) return tl::unexpected(got.error());
  end_ += *got;
  return *got > 0;
}

Result<std::optional<std::string_view>> LineReader::next() {
  std::size_t searched = 0;
  while (true) {
    const char* from = buffer_.data() + begin_;
    const std::size_t held = end_ - begin_;
    const void* stop =
        searched < held ? std::memchr(from + searched, '\n', held - searched) : nullptr;
    if (stop != nullptr || (ended_ && held > 0)) {
      const auto length =
          stop != nullptr ? static_cast<std::size_t>(static_cast<const char*>(stop) - from) : held;
      begin_ += length + (stop != nullptr ? 1 : 0);
      std::string_view line(from, length);
      if (number_++ == 0 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.size() > limit_) return too_long();
      return std::optional(line);
    }
    if (ended_) return std::optional<std::string_view>();
    searched = held;
    const auto more = fill();
    if (!more) return tl::unexpected(more.error());
    ended_ = !*more;
  }
}

}  // namespace neap::trace
