#include "engine/http_call.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <thread>

#include "posix/fd.h"

namespace neap::engine {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t head_max = 64UL * 1024;
constexpr auto before_again = std::chrono::milliseconds(20);

tl::unexpected<Error> no(const std::string& why) { return fail(ErrorCode::unavailable, why); }

bool ready(int fd, short what, Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  pollfd entry{.fd = fd, .events = what, .revents = 0};
  return left.count() > 0 && ::poll(&entry, 1, static_cast<int>(left.count())) > 0;
}

Result<posix::Fd> connect_to(std::uint16_t port, Clock::time_point until) {
  posix::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return no(std::strerror(errno));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return fd;
  }
  if (errno != EINPROGRESS || !ready(fd.get(), POLLOUT, until)) return no("nobody listens");
  int error = 0;
  socklen_t size = sizeof error;
  (void)::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return no(std::strerror(error));
  return fd;
}

std::string text_of(const HttpCall& call) {
  std::string text = std::string(call.method) + " " + call.path +
                     " HTTP/1.0\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n";
  if (!call.body.empty() || std::strcmp(call.method, "POST") == 0) {
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(call.body.size()) +
        "\r\n";
  }
  return text + "\r\n" + call.body;
}

Result<void> send_all(int fd, std::string_view text, Clock::time_point until) {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      text.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EINTR) {
      continue;
    } else if (errno != EAGAIN || !ready(fd, POLLOUT, until)) {
      return no("the request was not taken");
    }
  }
  return {};
}

struct Attempt {
  Result<HttpAnswer> answer;
  bool began = false;  // some of an answer came
};

Attempt attempt(std::uint16_t port, const std::string& request, std::size_t bytes_max,
                Clock::time_point until) {
  const Result<posix::Fd> fd = connect_to(port, until);
  if (!fd) return {tl::unexpected(fd.error())};
  if (auto sent = send_all(fd->get(), request, until); !sent) {
    return {tl::unexpected(sent.error())};
  }
  std::string text;
  std::array<char, 16384> chunk{};
  while (ready(fd->get(), POLLIN, until)) {
    const ssize_t got = ::recv(fd->get(), chunk.data(), chunk.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0) return {no(std::strerror(errno)), !text.empty()};
    if (got == 0) return {parse_answer(text), !text.empty()};
    text.append(chunk.data(), static_cast<std::size_t>(got));
    if (text.size() > bytes_max + head_max) {
      return {
          fail(ErrorCode::too_large, "the answer is over " + std::to_string(bytes_max) + " bytes"),
          true};
    }
  }
  return {no("no whole answer in time"), true};
}

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::optional<std::size_t> number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace

Result<HttpAnswer> parse_answer(std::string_view text) {
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos || end > head_max) return no("no answer in HTTP");
  std::string_view head = text.substr(0, end);
  std::string_view body = text.substr(end + 4);
  if (!head.starts_with("HTTP/1.") || head.size() < 12 || head[8] != ' ') {
    return no("no answer in HTTP");
  }
  const auto status = number(head.substr(9, 3));
  if (!status || *status < 200 || *status > 599) return no("no status that ends a request");
  while (!head.empty()) {
    const std::size_t next = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, next);
    head.remove_prefix(std::min(next + 2, head.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, colon);
    if (same_letters(name, "transfer-encoding")) return no("an encoding that was not asked for");
    if (!same_letters(name, "content-length")) continue;
    const auto length = number(line.substr(colon + 1));
    if (!length || body.size() < *length) return no("the answer was cut");
    body = body.substr(0, *length);
  }
  return HttpAnswer{static_cast<int>(*status), std::string(body)};
}

Result<HttpAnswer> call(std::uint16_t port, const HttpCall& call, const CallLimits& limits) {
  const Clock::time_point until = Clock::now() + limits.patience;
  const std::string request = text_of(call);
  for (int left = std::max(limits.tries, 1);; --left) {
    Attempt one = attempt(port, request, limits.bytes_max, until);
    if (one.answer || one.began || left == 1 || Clock::now() + before_again >= until) {
      return std::move(one.answer);
    }
    std::this_thread::sleep_for(before_again);
  }
}

}  // namespace neap::engine
