#include "daemon/fetch_text.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "posix/fd.h"

namespace neap::daemon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t head_max = 64 * 1024;

tl::unexpected<Error> no(const std::string& why) { return fail(ErrorCode::unavailable, why); }

bool ready(int fd, short what, Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  pollfd entry{.fd = fd, .events = what, .revents = 0};
  return left.count() > 0 && ::poll(&entry, 1, static_cast<int>(left.count())) > 0;
}

Result<posix::Fd> connect_to(std::uint16_t port, Clock::time_point until) {
  posix::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!fd.valid()) return no(std::strerror(errno));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EINPROGRESS || !ready(fd.get(), POLLOUT, until)) return no("nobody listens");
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return no(std::strerror(error));
  }
  return fd;
}

Result<std::string> body_of(const std::string& answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  // Asked in HTTP/1.0, an answer has no chunks and ends with its connection.
  if (end == std::string::npos || answer.size() < 12 || !answer.starts_with("HTTP/1.")) {
    return no("no answer in HTTP");
  }
  if (answer.compare(9, 3, "200") != 0) return no("status " + answer.substr(9, 3));
  return answer.substr(end + 4);
}

}  // namespace

Result<std::string> fetch_text(std::uint16_t port, const std::string& path, std::size_t bytes_max,
                               std::chrono::milliseconds patience) {
  const Clock::time_point until = Clock::now() + patience;
  Result<posix::Fd> fd = connect_to(port, until);
  if (!fd) return tl::unexpected(fd.error());
  const std::string request =
      "GET " + path + " HTTP/1.0\r\nHost: 127.0.0.1\r\nAccept: text/plain\r\n\r\n";
  if (send(fd->get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return no("the request was not taken");
  }
  std::string answer;
  std::array<char, 16384> chunk{};
  while (ready(fd->get(), POLLIN, until)) {
    const ssize_t got = recv(fd->get(), chunk.data(), chunk.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return got == 0 ? body_of(answer) : no(std::strerror(errno));
    answer.append(chunk.data(), static_cast<std::size_t>(got));
    if (answer.size() > bytes_max + head_max) {
      return fail(ErrorCode::too_large,
                  "the answer is over " + std::to_string(bytes_max) + " bytes");
    }
  }
  return no("no whole answer in time");
}

}  // namespace neap::daemon
