#include "load/generator.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "load/response_reader.h"
#include "posix/fd.h"

namespace neap::load {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t events_at_once = 64;
// Numbers of requests are small; these mark the other two in epoll's data.
constexpr std::uint64_t timer_mark = ~std::uint64_t{0};
constexpr std::uint64_t stop_mark = timer_mark - 1;

struct Running {
  RequestResult result;
  posix::Fd socket;
  std::string unsent;
  ResponseReader reader;
  std::vector<Micros> gaps;  // between tokens
  Micros last_token{0};
};

std::string request_text(const Target& target, std::uint64_t number) {
  std::string body = target.body;
  if (const std::size_t at = body.find("{n}"); at != std::string::npos) {
    body.replace(at, 3, std::to_string(number));
  }
  const bool post = !body.empty();
  std::string text = (post ? "POST " : "GET ") + target.path +
                     " HTTP/1.1\r\nHost: " + target.address +
                     "\r\nConnection: close\r\nAccept: text/event-stream\r\n";
  if (post) {
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  return text + "\r\n" + body;
}

class Run {
 public:
  Run(const LoadOptions& options, const LoadObserver& observer)
      : options_(options),
        observer_(observer),
        arrivals_(options.curve, options.seed),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
        stop_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  Result<LoadSummary> go(const std::stop_token& stop) {
    if (Result<void> ready = prepare(); !ready) return tl::unexpected(ready.error());
    const std::stop_callback wake(stop, [this] { eventfd_write(stop_.get(), 1); });
    start_ = Clock::now();
    next_arrival_ = arrivals_.next();
    next_progress_ = options_.progress_every;
    while (!stop.stop_requested() && (next_arrival_ || !running_.empty())) {
      arm_timer();
      std::array<epoll_event, events_at_once> events{};
      const int count = epoll_wait(epoll_.get(), events.data(), events_at_once, -1);
      start_due();
      for (int i = 0; i < count; ++i) on_event(events[static_cast<std::size_t>(i)]);
      expire();
      report_progress();
    }
    const Micros end = now();
    while (!running_.empty()) finish(running_.begin()->second, Outcome::interrupted, end);
    return std::move(summary_);
  }

 private:
  [[nodiscard]] Micros now() const {
    return Micros(
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start_).count());
  }

  Result<void> prepare() {
    address_.sin_family = AF_INET;
    address_.sin_port = htons(options_.target.port);
    if (inet_pton(AF_INET, options_.target.address.c_str(), &address_.sin_addr) != 1 ||
        options_.target.port == 0) {
      return fail(ErrorCode::invalid_argument, "expected a numeric IPv4 address and a port",
                  "target");
    }
    if (options_.in_flight_max == 0 || options_.timeout <= Micros(0)) {
      return fail(ErrorCode::invalid_argument, "limits are above 0", "in_flight_max, timeout");
    }
    if (!epoll_.valid() || !timer_.valid() || !stop_.valid() ||
        !watch(timer_.get(), EPOLLIN, timer_mark) || !watch(stop_.get(), EPOLLIN, stop_mark)) {
      return fail(ErrorCode::unavailable, std::string("epoll: ") + std::strerror(errno));
    }
    return {};
  }

  bool watch(int fd, std::uint32_t what, std::uint64_t mark) const {
    epoll_event event{.events = what, .data = {.u64 = mark}};
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }

  // To the earliest of: next arrival, next timeout, next report.
  void arm_timer() const {
    Micros due = next_progress_;
    if (next_arrival_) due = std::min(due, *next_arrival_);
    if (!by_deadline_.empty()) due = std::min(due, by_deadline_.front().second);
    const auto since_boot =
        std::chrono::duration_cast<std::chrono::nanoseconds>(start_.time_since_epoch()) +
        std::chrono::microseconds(std::max<std::int64_t>(1, due.value));
    constexpr std::int64_t second = 1'000'000'000;
    const itimerspec when{.it_interval = {},
                          .it_value = {.tv_sec = since_boot.count() / second,
                                       .tv_nsec = since_boot.count() % second}};
    timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
  }

  void start_due() {
    while (next_arrival_ && *next_arrival_ <= now()) {
      begin(*next_arrival_);
      next_arrival_ = arrivals_.next();
    }
  }

  void begin(Micros scheduled) {
    Running one;
    one.result.number = ++summary_.scheduled;
    one.result.scheduled = scheduled;
    one.result.started = now();
    if (running_.size() >= options_.in_flight_max) {
      return finish(one, Outcome::dropped, one.result.started);
    }
    summary_.lateness.record(one.result.started - scheduled);
    one.socket.reset(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    setsockopt(one.socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int connected =
        connect(one.socket.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_);
    if ((connected != 0 && errno != EINPROGRESS) ||
        !watch(one.socket.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP, one.result.number)) {
      return finish(one, Outcome::refused, now());
    }
    one.unsent = request_text(options_.target, one.result.number);
    by_deadline_.emplace_back(one.result.number, scheduled + options_.timeout);
    running_.emplace(one.result.number, std::move(one));
  }

  void on_event(const epoll_event& event) {
    const std::uint64_t mark = event.data.u64;  // a copy: the kernel's struct is packed
    if (mark == timer_mark || mark == stop_mark) {
      std::uint64_t ignored = 0;
      const int fd = mark == timer_mark ? timer_.get() : stop_.get();
      if (read(fd, &ignored, sizeof ignored) < 0) return;
      return;
    }
    const auto found = running_.find(mark);
    if (found == running_.end()) return;
    Running& one = found->second;
    if (!one.unsent.empty() && !send_rest(one)) return;
    if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) receive(one);
  }

  // False when the request ended here.
  bool send_rest(Running& one) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(one.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      finish(one, Outcome::refused, now());
      return false;
    }
    const ssize_t sent = send(one.socket.get(), one.unsent.data(), one.unsent.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
      finish(one, Outcome::refused, now());
      return false;
    }
    if (sent > 0) one.unsent.erase(0, static_cast<std::size_t>(sent));
    if (one.unsent.empty()) {
      epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = one.result.number}};
      epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, one.socket.get(), &event);
    }
    return true;
  }

  void receive(Running& one) {
    std::array<char, 16384> chunk{};
    for (;;) {
      const ssize_t got = recv(one.socket.get(), chunk.data(), chunk.size(), 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      const Micros at = now();
      if (got <= 0) {
        if (got == 0) one.reader.end();
        const bool whole = one.reader.state() == ResponseReader::State::complete;
        return finish(one, whole ? by_status(one) : Outcome::cut, at);
      }
      note(one, one.reader.feed({chunk.data(), static_cast<std::size_t>(got)}), at);
      if (one.reader.state() == ResponseReader::State::complete) {
        return finish(one, by_status(one), at);
      }
      if (one.reader.state() == ResponseReader::State::malformed) {
        return finish(one, Outcome::cut, at);
      }
    }
  }

  void note(Running& one, const ResponseReader::Progress& progress, Micros at) {
    if (progress.first_body_byte) one.result.first_byte = at;
    for (std::int32_t i = 0; i < progress.events; ++i) {
      // Events of one piece came together: the gaps between them are 0.
      if (one.result.tokens > 0) one.gaps.push_back(at - one.last_token);
      ++one.result.tokens;
      one.last_token = at;
    }
  }

  static Outcome by_status(const Running& one) {
    const std::int32_t status = one.reader.status();
    return status >= 200 && status < 300 ? Outcome::ok : Outcome::bad_status;
  }

  void finish(Running& one, Outcome outcome, Micros at) {
    one.socket.reset();
    RequestResult& result = one.result;
    result.outcome = outcome;
    result.finished = at;
    result.status = one.reader.status();
    ++summary_.by_outcome[static_cast<std::size_t>(outcome)];
    summary_.tokens += static_cast<std::uint64_t>(result.tokens);
    if (outcome == Outcome::ok) {
      summary_.first_byte.record(result.first_byte.value_or(at) - result.scheduled);
      summary_.total.record(at - result.scheduled);
      for (const Micros gap : one.gaps) summary_.inter_token.record(gap);
    }
    const RequestResult copy = result;
    running_.erase(result.number);  // `one` may be gone from here on
    if (observer_.result) observer_.result(copy);
  }

  void expire() {
    while (!by_deadline_.empty()) {
      const auto [number, deadline] = by_deadline_.front();
      const auto found = running_.find(number);
      if (found != running_.end() && deadline > now()) return;
      by_deadline_.pop_front();
      if (found != running_.end()) finish(found->second, Outcome::timed_out, now());
    }
  }

  void report_progress() {
    const Micros at = now();
    if (at < next_progress_) return;
    next_progress_ = at + options_.progress_every;
    if (!observer_.progress) return;
    LoadProgress progress{.elapsed = at,
                          .rate = options_.curve.rate_at(at),
                          .in_flight = static_cast<std::uint32_t>(running_.size()),
                          .so_far = &summary_};
    for (const auto& [number, deadline] : by_deadline_) {
      const auto found = running_.find(number);
      if (found == running_.end() || found->second.result.first_byte) continue;
      progress.oldest_wait = at - found->second.result.scheduled;
      break;
    }
    observer_.progress(progress);
  }

  const LoadOptions& options_;
  const LoadObserver& observer_;
  Arrivals arrivals_;
  posix::Fd epoll_;
  posix::Fd timer_;
  posix::Fd stop_;
  sockaddr_in address_{};
  Clock::time_point start_;
  std::optional<Micros> next_arrival_;
  Micros next_progress_{0};
  std::unordered_map<std::uint64_t, Running> running_;
  std::deque<std::pair<std::uint64_t, Micros>> by_deadline_;  // in order of schedule
  LoadSummary summary_;
};

}  // namespace

std::string_view name_of(Outcome outcome) {
  constexpr std::array<std::string_view, outcome_count> names{
      "ok", "refused", "bad status", "cut off", "timed out", "dropped", "interrupted"};
  return names[static_cast<std::size_t>(outcome)];
}

std::uint64_t LoadSummary::failed() const {
  std::uint64_t all = 0;
  for (const std::uint64_t part : by_outcome) all += part;
  return all - count(Outcome::ok) - count(Outcome::interrupted);
}

Result<LoadSummary> run_load(const LoadOptions& options, const LoadObserver& observer,
                             std::stop_token stop) {
  return Run(options, observer).go(stop);
}

}  // namespace neap::load
