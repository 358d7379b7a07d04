#include "backend/local/health_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace neap::local {
namespace {

constexpr std::size_t status_line_limit = 256;
constexpr Micros shortest_pause = milliseconds(10);

}  // namespace

HealthProbe::HealthProbe(EventLoop& loop, SupervisedService service, Told told)
    : loop_(loop), service_(std::move(service)), told_(std::move(told)) {
  next_ = loop_.after(Micros(0), [this] { begin(); });
}

HealthProbe::~HealthProbe() {
  if (next_) loop_.cancel(*next_);
  if (deadline_) loop_.cancel(*deadline_);
  if (socket_.valid()) loop_.forget(socket_.get());
}

void HealthProbe::begin() {
  next_.reset();
  answer_.clear();
  asked_ = false;
  socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(service_.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int rc =
      !socket_.valid()
          ? -1
          : ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (rc != 0 && errno != EINPROGRESS) {
    return conclude(std::string("connect: ") + std::strerror(errno));
  }
  deadline_ = loop_.after(service_.timeout, [this] {
    deadline_.reset();
    conclude("no answer in " + std::to_string(service_.timeout.value / 1'000) + " ms");
  });
  loop_.watch(socket_.get(), EPOLLOUT, [this](std::uint32_t events) { on_socket(events); });
}

void HealthProbe::on_socket(std::uint32_t) {
  if (!asked_) {
    int error = 0;
    socklen_t size = sizeof error;
    (void)::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return conclude(std::string("connect: ") + std::strerror(error));
    // Small enough for any socket buffer, so it goes out at once.
    const std::string request = "GET " + service_.health_path +
                                " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                                "User-Agent: neap\r\n\r\n";
    if (::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
      return conclude("the request could not be sent");
    }
    asked_ = true;
    return loop_.change(socket_.get(), EPOLLIN);
  }
  char chunk[status_line_limit];
  const ssize_t n = ::recv(socket_.get(), chunk, sizeof chunk, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) answer_.append(chunk, static_cast<std::size_t>(n));
  const std::size_t end = answer_.find("\r\n");
  if (end == std::string::npos) {
    if (n <= 0) return conclude("the connection was closed without an answer");
    if (answer_.size() >= status_line_limit) return conclude("the answer is not HTTP");
    return;
  }
  const std::string status = answer_.substr(0, std::min(end, status_line_limit));
  const bool http = status.starts_with("HTTP/1.") && status.size() >= 12 && status[8] == ' ';
  if (!http) return conclude("the answer is not HTTP");
  if (status[9] != '2') return conclude("answered " + status.substr(9));
  conclude(std::nullopt);
}

void HealthProbe::conclude(std::optional<std::string> failure) {
  if (socket_.valid()) loop_.forget(socket_.get());
  socket_.reset();
  if (deadline_) loop_.cancel(*deadline_);
  deadline_.reset();
  failures_ = failure ? failures_ + 1 : 0;
  const bool never_ready = !verdict_.has_value();
  const Micros pause = never_ready && failure ? service_.interval / 10 : service_.interval;
  next_ = loop_.after(std::max(pause, shortest_pause), [this] { begin(); });
  if (!failure && verdict_ != Verdict::ready) {
    verdict_ = Verdict::ready;
    told_(Verdict::ready, "");
  } else if (verdict_ == Verdict::ready && failures_ >= service_.failures) {
    verdict_ = Verdict::unready;
    told_(Verdict::unready, *failure);
  }
}

}  // namespace neap::local
