#include "load/response_reader.h"

#include <algorithm>
#include <charconv>

namespace neap::load {
namespace {

constexpr std::size_t line_max = 65536;
constexpr std::size_t tail_max = 4096;
constexpr std::string_view data_field = "data:";
constexpr std::string_view tokens_member = "\"completion_tokens\"";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

template <class Number>
bool parse_number(std::string_view text, Number& out, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

ResponseReader::Progress ResponseReader::feed(std::string_view bytes) {
  Progress progress;
  fed_ = fed_ || !bytes.empty();
  while (state_ == State::reading && !bytes.empty()) {
    if (stage_ == Stage::body_to_end) {
      body(bytes, progress);
      break;
    }
    if (stage_ == Stage::chunk || stage_ == Stage::body_of_size) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
      body(bytes.substr(0, size), progress);
      bytes.remove_prefix(size);
      left_ -= size;
      if (left_ > 0) continue;
      if (stage_ == Stage::chunk) {
        stage_ = Stage::chunk_end;
      } else {
        state_ = State::complete;
      }
      continue;
    }
    if (!take_line(bytes)) break;
    on_line(progress);
    line_.clear();
  }
  if (state_ == State::complete && stage_ != Stage::body_to_end && !bytes.empty()) excess_ = true;
  return progress;
}

bool ResponseReader::reusable() const {
  return state_ == State::complete && stage_ != Stage::body_to_end && !closes_ && !excess_;
}

std::optional<std::int32_t> ResponseReader::completion_tokens() const {
  const std::size_t at = tail_.rfind(tokens_member);
  if (at == std::string::npos) return {};
  std::string_view rest = std::string_view(tail_).substr(at + tokens_member.size());
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == ':')) rest.remove_prefix(1);
  std::int32_t tokens = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), tokens);
  // A number at the very end may go on.
  if (error != std::errc() || end == rest.data() + rest.size() || tokens < 0) return {};
  return tokens;
}

void ResponseReader::end() {
  if (state_ != State::reading) return;
  state_ = stage_ == Stage::body_to_end ? State::complete : State::malformed;
}

bool ResponseReader::take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  line_ += bytes.substr(0, end);
  if (line_.size() > line_max) {
    state_ = State::malformed;
    return false;
  }
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  if (end == std::string_view::npos) return false;
  if (!line_.empty() && line_.back() == '\r') line_.pop_back();
  return true;
}

void ResponseReader::on_line(Progress& progress) {
  switch (stage_) {
    case Stage::head:
      read_head(line_);
      return;
    case Stage::chunk_size: {
      const std::string_view size = trimmed(std::string_view(line_).substr(0, line_.find(';')));
      if (!parse_number(size, left_, 16)) {
        state_ = State::malformed;
      } else {
        stage_ = left_ == 0 ? Stage::trailer : Stage::chunk;
      }
      return;
    }
    case Stage::chunk_end:
      if (line_.empty()) {
        stage_ = Stage::chunk_size;
      } else {
        state_ = State::malformed;
      }
      return;
    case Stage::trailer:
      if (!line_.empty()) return;
      event_line(progress);  // one that its server did not end
      state_ = State::complete;
      return;
    default:
      return;
  }
}

void ResponseReader::read_head(std::string_view line) {
  if (status_ == 0) {
    // HTTP/1.1 200 OK
    if (!line.starts_with("HTTP/1.") || line.size() < 12 ||
        !parse_number(line.substr(9, 3), status_, 10) || status_ < 100) {
      state_ = State::malformed;
    }
    closes_ = line.starts_with("HTTP/1.0");
    return;
  }
  if (line.empty()) return begin_body();
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) {
    state_ = State::malformed;
    return;
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (equal_ignoring_case(name, "Transfer-Encoding")) {
    chunked_ = equal_ignoring_case(value, "chunked");
  } else if (equal_ignoring_case(name, "Content-Length")) {
    has_length_ = parse_number(value, left_, 10);
  } else if (equal_ignoring_case(name, "Content-Type")) {
    event_stream_ = value.starts_with("text/event-stream");
  } else if (equal_ignoring_case(name, "Connection")) {
    closes_ = closes_ || equal_ignoring_case(value, "close");
  } else if (equal_ignoring_case(name, "Retry-After")) {
    std::int32_t seconds = 0;
    if (parse_number(value, seconds, 10) && seconds >= 0) retry_after_ = seconds;
  }
}

void ResponseReader::begin_body() {
  if (status_ < 200) {  // 100 Continue: the answer follows
    status_ = 0;
    return;
  }
  const bool bodiless = status_ == 204 || status_ == 304;
  if (bodiless || (!chunked_ && has_length_ && left_ == 0)) {
    state_ = State::complete;
  } else if (chunked_) {
    stage_ = Stage::chunk_size;
  } else {
    stage_ = has_length_ ? Stage::body_of_size : Stage::body_to_end;
  }
}

void ResponseReader::body(std::string_view bytes, Progress& progress) {
  if (!event_stream_) {
    if (!body_seen_ && !bytes.empty()) progress.first_body_byte = true;
    body_seen_ = body_seen_ || !bytes.empty();
    tail_ += bytes.substr(bytes.size() - std::min(bytes.size(), tail_max));
    if (tail_.size() > 2 * tail_max) tail_.erase(0, tail_.size() - tail_max);
    return;
  }
  for (const char c : bytes) {
    if (c != '\n') {
      // Longer lines are counted by their beginning.
      if (event_line_.size() < line_max) event_line_ += c;
      continue;
    }
    event_line(progress);
  }
}

void ResponseReader::event_line(Progress& progress) {
  std::string_view line = event_line_;
  if (line.starts_with(data_field)) {
    line = trimmed(line.substr(data_field.size()));
    if (!line.empty() && line != "[DONE]") {
      ++progress.events;
      if (!body_seen_) progress.first_body_byte = true;
      body_seen_ = true;
    }
  }
  event_line_.clear();
}

}  // namespace neap::load
