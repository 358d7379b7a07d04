// Replicas for measurements of the gateway: servers on loopback ports that all run in one thread,
// and answer after a fixed time of service, so many requests at once; more wait inside, as in an
// engine.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <queue>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

namespace neap::bench {

using Clock = std::chrono::steady_clock;

[[nodiscard]] inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

struct Service {
  std::chrono::microseconds time{0};  // of one request
  int slots = 1 << 20;                // at once
  int chunks = 1;                     // of an answer, spread over the time
};

class Backend {
 public:
  Backend() : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_NONBLOCK)) {
    watch(wake_, EPOLLIN);
    thread_ = std::thread([this] { run(); });
  }
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  ~Backend() {
    closing_ = true;
    eventfd_write(wake_, 1);
    thread_.join();
    for (const auto& [fd, connection] : connections_) close(fd);
    for (const auto& [fd, replica] : listeners_) close(fd);
    close(epoll_);
    close(wake_);
  }

  // Port of a new replica.
  std::uint16_t start(const Service& service) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in address = loopback(0);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(fd, 1024) != 0) {
      std::abort();
    }
    socklen_t size = sizeof address;
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    const std::uint16_t port = ntohs(address.sin_port);
    {
      const std::lock_guard lock(mutex_);
      listeners_[fd] = port;
      replicas_[port].service = service;
    }
    watch(fd, EPOLLIN);
    return port;
  }

  // As if its process was killed: connections are reset, streams break off.
  void kill(std::uint16_t port) {
    const std::lock_guard lock(mutex_);
    for (auto at = listeners_.begin(); at != listeners_.end();) {
      if (at->second != port) {
        ++at;
        continue;
      }
      close(at->first);
      at = listeners_.erase(at);
    }
    for (auto at = connections_.begin(); at != connections_.end();) {
      if (at->second.port != port) {
        ++at;
        continue;
      }
      if (at->second.answering) ++broken_;
      const linger now{.l_onoff = 1, .l_linger = 0};
      setsockopt(at->first, SOL_SOCKET, SO_LINGER, &now, sizeof now);
      close(at->first);
      at = connections_.erase(at);
    }
    replicas_.erase(port);
  }

  // Answers that had begun when their replica was killed.
  [[nodiscard]] std::uint64_t broken() const { return broken_; }
  [[nodiscard]] std::uint64_t served() const { return served_; }

 private:
  struct Connection {
    std::uint16_t port = 0;
    std::string input;
    std::uint64_t number = 0;
    bool answering = false;
    int chunks_left = 0;
  };
  struct Replica {
    Service service;
    int busy = 0;
    std::deque<std::pair<int, std::uint64_t>> waiting;
  };
  struct Due {
    Clock::time_point at;
    int fd;
    std::uint64_t number;  // of the connection: the descriptor may be another's by then
    bool operator>(const Due& other) const { return at > other.at; }
  };

  void watch(int fd, std::uint32_t events) {
    epoll_event event{.events = events, .data = {.fd = fd}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  void run() {
    std::array<epoll_event, 256> events{};
    while (!closing_) {
      const int count = epoll_pwait2(epoll_, events.data(), events.size(), patience(), nullptr);
      const std::lock_guard lock(mutex_);
      for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (listeners_.contains(fd)) {
          accept_from(fd);
        } else if (connections_.contains(fd)) {
          receive(fd);
        }
      }
      const auto now = Clock::now();
      while (!due_.empty() && due_.top().at <= now) {
        const Due due = due_.top();
        due_.pop();
        step(due);
      }
    }
  }

  timespec* patience() {
    const std::lock_guard lock(mutex_);
    std::chrono::nanoseconds left = std::chrono::milliseconds(20);
    if (!due_.empty()) {
      left = std::clamp<std::chrono::nanoseconds>(due_.top().at - Clock::now(),
                                                  std::chrono::nanoseconds(0), left);
    }
    patience_ = {.tv_sec = 0, .tv_nsec = left.count()};
    return &patience_;
  }

  void accept_from(int listener) {
    for (;;) {
      const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) return;
      const int yes = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      connections_[fd] = {.port = listeners_[listener], .input = {}, .number = ++numbers_};
      watch(fd, EPOLLIN);
      receive(fd);
    }
  }

  void receive(int fd) {
    Connection& connection = connections_[fd];
    std::array<char, 8192> bytes{};
    for (;;) {
      const ssize_t got = recv(fd, bytes.data(), bytes.size(), 0);
      if (got > 0) {
        connection.input.append(bytes.data(), static_cast<std::size_t>(got));
        if (!connection.input.ends_with("\r\n\r\n")) continue;  // requests without a body
        connection.input.clear();
        begin(fd, connection);
        return;
      }
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      finish(fd, connection);
      return;
    }
  }

  void begin(int fd, Connection& connection) {
    Replica& replica = replicas_[connection.port];
    if (replica.busy >= replica.service.slots) {
      replica.waiting.emplace_back(fd, connection.number);
      return;
    }
    ++replica.busy;
    connection.chunks_left = replica.service.chunks;
    schedule(fd, connection, replica);
  }

  void schedule(int fd, const Connection& connection, const Replica& replica) {
    due_.push(
        {Clock::now() + replica.service.time / replica.service.chunks, fd, connection.number});
    if (replica.service.time.count() == 0) {
      const Due due = due_.top();
      due_.pop();
      step(due);
    }
  }

  void step(const Due& due) {
    const auto found = connections_.find(due.fd);
    if (found == connections_.end() || found->second.number != due.number) return;
    Connection& connection = found->second;
    Replica& replica = replicas_[connection.port];
    std::string out;
    if (!connection.answering) {
      out = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: " +
            std::to_string(9 * replica.service.chunks) + "\r\n\r\n";
      connection.answering = true;
    }
    out += "data: x\n\n";
    --connection.chunks_left;
    const bool last = connection.chunks_left == 0;
    if (last) {
      connection.answering = false;
      ++served_;
      release(replica);
    }
    const ssize_t sent = send(due.fd, out.data(), out.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(out.size())) return finish(due.fd, connection);
    if (!last) schedule(due.fd, connection, replica);
  }

  void release(Replica& replica) {
    --replica.busy;
    while (!replica.waiting.empty()) {
      const auto [fd, number] = replica.waiting.front();
      replica.waiting.pop_front();
      const auto next = connections_.find(fd);
      if (next == connections_.end() || next->second.number != number) continue;
      return begin(fd, next->second);
    }
  }

  void finish(int fd, Connection& connection) {
    const auto replica = replicas_.find(connection.port);
    const bool working = connection.answering || connection.chunks_left > 0;
    connections_.erase(fd);
    close(fd);
    if (replica != replicas_.end() && working) release(replica->second);
  }

  int epoll_;
  int wake_;
  std::atomic<bool> closing_ = false;
  std::atomic<std::uint64_t> broken_ = 0;
  std::atomic<std::uint64_t> served_ = 0;
  std::mutex mutex_;
  std::map<int, std::uint16_t> listeners_;  // guarded by mutex_, as all below
  std::unordered_map<int, Connection> connections_;
  std::map<std::uint16_t, Replica> replicas_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::uint64_t numbers_ = 0;
  timespec patience_{};
  std::thread thread_;
};

}  // namespace neap::bench
