#include "load/request_text.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace neap::load {
namespace {

constexpr std::int64_t usual_tokens = 16;  // where a trace does not say

bool one_line(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c != '\x7f'; });
}

bool is_token(std::string_view text) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

tl::unexpected<Error> bad(std::string why, std::string where) {
  return fail(ErrorCode::invalid_argument, std::move(why), std::move(where));
}

Result<void> check(const LoadOptions& options) {
  const Target& target = options.target;
  if (!target.path.starts_with('/') || !one_line(target.path) ||
      target.path.find(' ') != std::string::npos) {
    return bad("expected a path that begins with / and has no space", "path");
  }
  if (!one_line(target.host)) return bad("expected one line", "host");
  if (target.body.size() > RequestText::body_max) return bad("is over 1 MiB", "body");
  for (const std::string& header : target.headers) {
    const std::size_t colon = header.find(':');
    if (colon == std::string::npos || !is_token(header.substr(0, colon)) || !one_line(header)) {
      return bad("expected \"Name: value\" on one line", "header");
    }
  }
  if (!options.classes.empty() && !is_token(options.class_header)) {
    return bad("expected a name of a header", "class_header");
  }
  for (const LoadClass& one : options.classes) {
    if (!is_token(one.name) || one.weight == 0) {
      return bad("expected a name without spaces and a weight above 0", "classes");
    }
  }
  if (!one_line(options.request_ids)) return bad("expected one line", "request_ids");
  return {};
}

}  // namespace

Result<RequestText> RequestText::make(const LoadOptions& options) {
  if (Result<void> checked = check(options); !checked) return tl::unexpected(checked.error());
  const Target& target = options.target;
  RequestText made;
  made.request_ids_ = options.request_ids;
  const std::string host = target.host.empty() ? target.address : target.host;
  made.head_ = (target.body.empty() ? "GET " : "POST ") + target.path +
               " HTTP/1.1\r\nHost: " + host + "\r\n";
  if (options.keep_idle == Micros(0)) made.head_ += "Connection: close\r\n";
  const auto given = [&](std::string_view name) {
    return std::ranges::any_of(target.headers, [&](std::string_view header) {
      return std::ranges::equal(
          header.substr(0, header.find(':')), name, {},
          [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; },
          [](char c) { return static_cast<int>(c); });
    });
  };
  if (!given("accept")) made.head_ += "Accept: text/event-stream\r\n";
  if (!target.body.empty() && !given("content-type")) {
    made.head_ += "Content-Type: application/json\r\n";
  }
  for (const std::string& header : target.headers) made.head_ += header + "\r\n";
  for (const LoadClass& one : options.classes) {
    made.class_lines_.push_back(options.class_header + ": " + one.name + "\r\n");
  }
  using Kind = Piece::Kind;
  constexpr std::array<std::pair<std::string_view, Kind>, 4> marks{
      {{"{n}", Kind::number},
       {"{input_tokens}", Kind::input_tokens},
       {"{output_tokens}", Kind::output_tokens},
       {"{input_text}", Kind::input_text}}};
  std::string_view rest = target.body;
  std::string plain;
  while (!rest.empty()) {
    const auto mark =
        std::ranges::find_if(marks, [&](const auto& one) { return rest.starts_with(one.first); });
    if (mark == marks.end()) {
      plain += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    made.body_.push_back({Kind::text, std::exchange(plain, {})});
    made.body_.push_back({mark->second, {}});
    rest.remove_prefix(mark->first.size());
  }
  if (!plain.empty()) made.body_.push_back({Kind::text, plain});
  return made;
}

std::string RequestText::of(std::uint64_t number, std::uint32_t load_class,
                            const TraceArrival& arrival) const {
  std::string body;
  const auto tokens = [](std::int64_t known) { return known < 0 ? usual_tokens : known; };
  for (const Piece& piece : body_) {
    switch (piece.kind) {
      case Piece::Kind::text:
        body += piece.text;
        break;
      case Piece::Kind::number:
        body += std::to_string(number);
        break;
      case Piece::Kind::input_tokens:
        body += std::to_string(tokens(arrival.input_tokens));
        break;
      case Piece::Kind::output_tokens:
        body += std::to_string(std::max<std::int64_t>(1, tokens(arrival.output_tokens)));
        break;
      case Piece::Kind::input_text:
        for (std::int64_t i = std::min(words_max, tokens(arrival.input_tokens)); i > 0; --i) {
          body += i > 1 ? "tide " : "tide";
        }
        break;
    }
  }
  std::string text = head_;
  if (!class_lines_.empty()) text += class_lines_[load_class];
  if (!request_ids_.empty()) {
    text += "X-Request-Id: " + request_ids_ + "-" + std::to_string(number) + "\r\n";
  }
  if (!body_.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

}  // namespace neap::load
