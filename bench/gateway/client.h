// An open-loop client for measurements of the gateway: requests start when their schedule says,
// and all times count from then. One thread; connections are kept and used again.
#pragma once

#include <poll.h>

#include <cmath>
#include <functional>
#include <optional>

#include "bench/gateway/backend.h"
#include "load/random.h"

namespace neap::bench {

struct Ask {
  double at = 0;  // s after the start
  int kind = 0;   // index of its head
};

struct Answer {
  Ask ask;
  int status = 0;     // 0: none came
  double first = -1;  // s after `ask.at`; < 0: no body
  double last = -1;   // s after `ask.at`, of the end
  double retry_s = 0;
  double retry_ms = 0;
  bool whole = false;
};

// What a kind of request sends, up to the empty line, and where.
struct Kind {
  std::uint16_t port = 0;
  std::string head;
};

class Client {
 public:
  explicit Client(std::vector<Kind> kinds) : kinds_(std::move(kinds)) {}

  // Runs to the end of the schedule and `tail` seconds more at most.
  std::vector<Answer> run(const std::vector<Ask>& asks, double tail) {
    answers_.assign(asks.size(), {});
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    start_ = Clock::now();
    std::size_t next = 0;
    const double end = (asks.empty() ? 0 : asks.back().at) + tail;
    std::array<epoll_event, 512> events{};
    while (next < asks.size() || (open_ > 0 && now() < end)) {
      while (next < asks.size() && asks[next].at <= now()) {
        begin(next, asks[next]);
        ++next;
      }
      double wait = 0.02;
      if (next < asks.size()) wait = std::clamp(asks[next].at - now(), 0.0, 0.02);
      const timespec patience{.tv_sec = 0, .tv_nsec = static_cast<long>(wait * 1e9)};
      const int count = epoll_pwait2(epoll_, events.data(), events.size(), &patience, nullptr);
      for (int i = 0; i < count; ++i) ready(events[static_cast<std::size_t>(i)].data.fd);
    }
    for (const auto& [fd, connection] : connections_) close(fd);
    connections_.clear();
    for (auto& idle : idle_) idle.second.clear();
    close(epoll_);
    return std::move(answers_);
  }

 private:
  struct Connection {
    std::uint16_t port = 0;
    std::size_t index = 0;
    bool busy = false;
    bool used_before = false;
    bool sent = false;
    std::string head;
    std::size_t left = 0;
    bool in_body = false;
  };

  [[nodiscard]] double now() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

  void begin(std::size_t index, const Ask& ask) {
    answers_[index].ask = ask;
    const Kind& kind = kinds_[static_cast<std::size_t>(ask.kind)];
    std::vector<int>& idle = idle_[kind.port];
    ++open_;
    if (!idle.empty()) {
      const int fd = idle.back();
      idle.pop_back();
      Connection& connection = connections_[fd];
      connection.index = index;
      connection.busy = true;
      send_request(fd, connection);
      return;
    }
    connect_new(index, kind);
  }

  void connect_new(std::size_t index, const Kind& kind) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const sockaddr_in address = loopback(kind.port);
    Connection& connection = connections_[fd];
    connection = {.port = kind.port, .index = index, .busy = true};
    if (fd < 0 || (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
                   errno != EINPROGRESS)) {
      end(fd, connection, false);
      return;
    }
    epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.fd = fd}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  void send_request(int fd, Connection& connection) {
    const Answer& answer = answers_[connection.index];
    const std::string& head = kinds_[static_cast<std::size_t>(answer.ask.kind)].head;
    const ssize_t sent = send(fd, head.data(), head.size(), MSG_NOSIGNAL);
    connection.sent = sent == static_cast<ssize_t>(head.size());
    if (!connection.sent && errno != EAGAIN && errno != ENOTCONN) end(fd, connection, false);
  }

  void ready(int fd) {
    const auto found = connections_.find(fd);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    if (connection.busy && !connection.sent) {
      pollfd entry{.fd = fd, .events = POLLOUT, .revents = 0};
      if (poll(&entry, 1, 0) == 1 && (entry.revents & POLLOUT) != 0) send_request(fd, connection);
      if (!connections_.contains(fd)) return;
    }
    std::array<char, 16384> bytes{};
    for (;;) {
      const ssize_t got = recv(fd, bytes.data(), bytes.size(), 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0) {
        end(fd, connection, false);
        return;
      }
      if (!take(fd, connection, {bytes.data(), static_cast<std::size_t>(got)})) return;
    }
  }

  // False when the connection's answer is whole.
  bool take(int fd, Connection& connection, std::string_view bytes) {
    if (!connection.busy) return true;
    Answer& answer = answers_[connection.index];
    if (!connection.in_body) {
      connection.head += bytes;
      const std::size_t at = connection.head.find("\r\n\r\n");
      if (at == std::string::npos) return true;
      const std::string_view head = std::string_view(connection.head).substr(0, at);
      answer.status = std::atoi(connection.head.c_str() + 9);
      connection.left = static_cast<std::size_t>(number(head, "content-length: "));
      answer.retry_s = number(head, "retry-after: ");
      answer.retry_ms = number(head, "retry-after-ms: ");
      connection.in_body = true;
      const std::string body = connection.head.substr(at + 4);
      return take_body(fd, connection, answer, body.size());
    }
    return take_body(fd, connection, answer, bytes.size());
  }

  bool take_body(int fd, Connection& connection, Answer& answer, std::size_t size) {
    if (size > 0 && answer.first < 0) answer.first = now() - answer.ask.at;
    connection.left -= std::min(connection.left, size);
    if (connection.left > 0) return true;
    end(fd, connection, true);
    return false;
  }

  static double number(std::string_view head, std::string_view name) {
    for (std::size_t at = 0; at + name.size() < head.size(); ++at) {
      const auto same = [](char a, char b) { return std::tolower(a) == b; };
      if (std::equal(name.begin(), name.end(), head.begin() + static_cast<std::ptrdiff_t>(at),
                     [&](char b, char a) { return same(a, b); })) {
        return std::atof(std::string(head.substr(at + name.size(), 20)).c_str());
      }
    }
    return 0;
  }

  void end(int fd, Connection& connection, bool whole) {
    const std::uint16_t port = connection.port;
    const std::size_t index = connection.index;
    const bool busy = connection.busy;
    // A kept connection that was closed meanwhile: the request was not taken, it goes on a new one.
    const bool stale =
        busy && !whole && connection.used_before && connection.head.empty() && !connection.in_body;
    if (busy && !stale) {
      Answer& answer = answers_[index];
      answer.last = now() - answer.ask.at;
      answer.whole = whole;
      --open_;
    }
    if (whole) {
      connection.busy = connection.sent = connection.in_body = false;
      connection.used_before = true;
      connection.head.clear();
      idle_[port].push_back(fd);
      return;
    }
    std::erase(idle_[port], fd);
    connections_.erase(fd);
    close(fd);
    if (stale) connect_new(index, kinds_[static_cast<std::size_t>(answers_[index].ask.kind)]);
  }

  std::vector<Kind> kinds_;
  int epoll_ = -1;
  Clock::time_point start_;
  std::unordered_map<int, Connection> connections_;
  std::map<std::uint16_t, std::vector<int>> idle_;
  std::size_t open_ = 0;
  std::vector<Answer> answers_;
};

// Poisson arrivals of each kind, merged.
[[nodiscard]] inline std::vector<Ask> poisson(const std::vector<double>& rates, double length,
                                              std::uint64_t seed, double from = 0) {
  std::vector<Ask> asks;
  load::Random random(seed);
  for (std::size_t kind = 0; kind < rates.size(); ++kind) {
    if (rates[kind] <= 0) continue;
    for (double at = from - std::log(random.unit()) / rates[kind]; at < from + length;
         at -= std::log(random.unit()) / rates[kind]) {
      asks.push_back({at, static_cast<int>(kind)});
    }
  }
  std::ranges::sort(asks, {}, &Ask::at);
  return asks;
}

[[nodiscard]] inline std::string head_of(const std::string& headers) {
  return "GET /v1/completions HTTP/1.1\r\nHost: bench\r\n" + headers + "\r\n";
}

}  // namespace neap::bench
