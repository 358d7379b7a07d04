#include "posix/testing/tiny_http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/model/check.h"

namespace neap::posix {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

Fd listen_somewhere() {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(0);
  NEAP_CHECK(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  NEAP_CHECK(listen(fd.get(), 128) == 0);
  return fd;
}

std::uint16_t port_of(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  NEAP_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

bool send_all(int fd, const std::string& text) {
  return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::string receive_until(int fd, const std::string& mark) {
  std::string text;
  std::array<char, 4096> chunk{};
  while (text.find(mark) == std::string::npos) {
    const ssize_t got = recv(fd, chunk.data(), chunk.size(), 0);
    if (got <= 0) return {};
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}

// What follows the head, as far as it was not read with it: an answer before would cut it off.
void take_body(int fd, const std::string& request) {
  const std::size_t at = request.find("ontent-Length: ");
  const std::size_t lower = request.find("ontent-length: ");
  const std::size_t field = std::min(at, lower);
  if (field == std::string::npos) return;
  std::size_t left = std::strtoul(request.c_str() + field + 15, nullptr, 10);
  left -= std::min(left, request.size() - request.find("\r\n\r\n") - 4);
  std::array<char, 16384> chunk{};
  while (left > 0) {
    const ssize_t got = recv(fd, chunk.data(), std::min(left, chunk.size()), 0);
    if (got <= 0) return;
    left -= static_cast<std::size_t>(got);
  }
}

}  // namespace

TinyServer::TinyServer()
    : listener_(listen_somewhere()),
      port_(port_of(listener_.get())),
      accepting_([this] { accept_all(); }) {}

TinyServer::~TinyServer() {
  closing_ = true;
  release();
  shutdown(listener_.get(), SHUT_RDWR);
  accepting_.join();
  for (std::thread& connection : connections_) connection.join();
}

void TinyServer::release() {
  const std::lock_guard lock(mutex_);
  open_ = true;
  released_.notify_all();
}

void TinyServer::set_metrics(std::string text) {
  const std::lock_guard lock(mutex_);
  metrics_ = std::move(text);
}

void TinyServer::accept_all() {
  while (!closing_) {
    const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const std::lock_guard lock(mutex_);
    connections_.emplace_back([this, fd] { serve(fd); });
  }
}

void TinyServer::serve(int fd) {
  const Fd owner(fd);
  for (long answered = 0;; ++answered) {
    const std::string request = receive_until(fd, "\r\n\r\n");
    if (request.empty()) return;
    take_body(fd, request);
    const std::size_t from = request.find('/') + 1;
    const std::string path = request.substr(from, request.find(' ', from) - from);
    const bool keeps = path.starts_with("keep/");
    if (keeps && answered == std::strtol(path.c_str() + 5, nullptr, 10)) return;
    const int now = ++at_once_;
    int most = most_at_once_;
    while (now > most && !most_at_once_.compare_exchange_weak(most, now)) {
    }
    if (answer(fd, path)) ++served_;
    if (!keeps) return;
  }
}

bool TinyServer::answer(int fd, const std::string& path) {
  const std::string last = path.substr(path.find('/') + 1);
  // Before its last byte: whoever has that may send the next request at once.
  const auto send_last = [this, fd](const std::string& bytes) {
    --at_once_;
    return send_all(fd, bytes);
  };
  if (path.starts_with("status/")) {
    const std::string retry = last == "429" ? "Retry-After: 3\r\n" : "";
    return send_last("HTTP/1.1 " + last + " As asked\r\n" + retry + "Content-Length: 0\r\n\r\n");
  }
  if (path == "metrics") {
    std::unique_lock lock(mutex_);
    const std::string body = metrics_;
    lock.unlock();
    return send_last("HTTP/1.0 200 OK\r\n\r\n" + body);
  }
  if (path.starts_with("keep/")) {
    const std::string body = R"({"usage": {"completion_tokens": 7, "total_tokens": 9}})";
    return send_last("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) +
                     "\r\n\r\n" + body);
  }
  if (path == "hang") {
    char ignored = 0;
    const bool more = recv(fd, &ignored, 1, 0) > 0;
    --at_once_;
    return more;
  }
  const bool cut = path.starts_with("cut/");
  const bool gate = path == "gate";
  const long chunks = gate ? 2 : std::strtol(cut ? last.c_str() : path.c_str(), nullptr, 10);
  const long gap_ms = cut || gate ? 0 : std::strtol(last.c_str(), nullptr, 10);
  bool sent = send_all(fd,
                       "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                       "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
  for (long i = 0; i < chunks && sent && !closing_; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(gap_ms));
    if (gate && i == 1) {
      std::unique_lock lock(mutex_);
      released_.wait(lock, [this] { return open_; });
    }
    sent = send_all(fd, "9\r\ndata: x\n\n\r\n");
  }
  if (sent && !cut && !closing_) return send_last("0\r\n\r\n");
  --at_once_;
  return false;
}

TinyResponse tiny_get(std::uint16_t port, const std::string& path) {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const sockaddr_in address = loopback(port);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return {};
  }
  send_all(fd.get(), "GET " + path + " HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
  std::string text;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t got = recv(fd.get(), chunk.data(), chunk.size(), 0);
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  TinyResponse response;
  if (text.starts_with("HTTP/1.1 ")) response.status = std::atoi(text.c_str() + 9);
  response.whole = text.ends_with("0\r\n\r\n");
  for (std::size_t at = 0; (at = text.find("data: x", at)) != std::string::npos; ++at) {
    ++response.chunks;
  }
  return response;
}

std::uint16_t free_port() {
  const Fd fd = listen_somewhere();
  return port_of(fd.get());
}

}  // namespace neap::posix
