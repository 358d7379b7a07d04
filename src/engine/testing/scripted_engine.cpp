#include "engine/testing/scripted_engine.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>

#include "core/model/check.h"

namespace neap::engine {

ScriptedEngine::ScriptedEngine() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  NEAP_CHECK(::bind(listener_.get(), plain, sizeof address) == 0);
  NEAP_CHECK(::listen(listener_.get(), 16) == 0);
  NEAP_CHECK(::getsockname(listener_.get(), plain, &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

ScriptedEngine::~ScriptedEngine() {
  closing_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
}

void ScriptedEngine::answers(const std::string& request, int status, const std::string& body) {
  answers_raw(request, "HTTP/1.1 " + std::to_string(status) + " As told\r\nContent-Length: " +
                           std::to_string(body.size()) + "\r\n\r\n" + body);
}

void ScriptedEngine::answers_raw(const std::string& request, const std::string& bytes) {
  const std::lock_guard lock(mutex_);
  answers_[request] = bytes;
}

void ScriptedEngine::hangs(const std::string& request) { answers_raw(request, ""); }

std::vector<std::string> ScriptedEngine::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

void ScriptedEngine::serve() {
  while (!closing_) {
    const posix::Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) return;
    if (refused_ > 0) {
      --refused_;
      continue;
    }
    serve_one(fd.get());
  }
}

void ScriptedEngine::serve_one(int fd) {
  std::string text;
  std::array<char, 4096> chunk{};
  std::size_t end = std::string::npos;
  std::size_t wanted = 0;
  while (end == std::string::npos || text.size() < end + 4 + wanted) {
    const ssize_t got = ::recv(fd, chunk.data(), chunk.size(), 0);
    if (got <= 0) return;
    text.append(chunk.data(), static_cast<std::size_t>(got));
    end = text.find("\r\n\r\n");
    const std::size_t length = text.find("Content-Length: ");
    if (length < end) wanted = std::strtoul(text.c_str() + length + 16, nullptr, 10);
  }
  const std::string request = text.substr(0, text.find(" HTTP/"));
  const std::string body = text.substr(end + 4);
  std::string answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
  {
    const std::lock_guard lock(mutex_);
    asked_.push_back(body.empty() ? request : request + " " + body);
    if (const auto found = answers_.find(request); found != answers_.end()) answer = found->second;
  }
  if (!answer.empty()) {
    (void)::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    return;
  }
  // Until the client has had enough.
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  while (!closing_ && ::poll(&entry, 1, 20) == 0) {
  }
}

}  // namespace neap::engine
