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
#include <tuple>
#include <unordered_map>
#include <utility>

#include "load/request_text.h"
#include "load/response_reader.h"
#include "load/totals.h"
#include "posix/fd.h"

namespace neap::load {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t events_at_once = 64;
// Numbers of requests are small; these mark the others in epoll's data.
constexpr std::uint64_t timer_mark = ~std::uint64_t{0};
constexpr std::uint64_t stop_mark = timer_mark - 1;
constexpr std::uint64_t idle_mark = std::uint64_t{1} << 63U;  // with the descriptor
constexpr std::uint32_t listening = EPOLLIN | EPOLLRDHUP;

struct Running {
  RequestResult result;
  posix::Fd socket;
  std::string text;
  std::size_t sent = 0;
  bool connecting = false;
  bool used_again = false;  // the connection served another request before
  ResponseReader reader;
  std::vector<Micros> gaps;  // between tokens
  Micros last_token{0};
};

struct Idle {
  posix::Fd socket;
  Micros since;
};

class Run {
 public:
  Run(const LoadOptions& options, const LoadObserver& observer, RequestText text)
      : options_(options),
        observer_(observer),
        text_(std::move(text)),
        arrivals_(options.curve, options.seed, options.spacing),
        classes_(options.classes, options.seed),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
        stop_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    summary_.classes.resize(options.classes.size());
  }

  Result<LoadSummary> go(const std::stop_token& stop) {
    if (Result<void> ready = prepare(); !ready) return tl::unexpected(ready.error());
    const std::stop_callback wake(stop, [this] { eventfd_write(stop_.get(), 1); });
    start_ = Clock::now();
    next_arrival_ = next_arrival();
    next_progress_ = options_.progress_every;
    while (!stop.stop_requested() && (next_arrival_ || !running_.empty())) {
      arm_timer();
      std::array<epoll_event, events_at_once> events{};
      const int count = epoll_wait(epoll_.get(), events.data(), events_at_once, -1);
      start_due();
      for (int i = 0; i < count; ++i) {
        on_event(events[static_cast<std::size_t>(i)]);
        start_due();  // what comes in does not hold up what goes out
      }
      expire();
      report_progress();
    }
    const Micros end = now();
    while (!running_.empty()) finish(running_.begin()->second, Outcome::interrupted, end);
    summary_.length = end;
    return std::move(summary_);
  }

 private:
  [[nodiscard]] Micros now() const {
    return Micros(
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start_).count());
  }

  Result<void> prepare() {
    const Target& target = options_.target;
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address_);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address_);
    if (inet_pton(AF_INET, target.address.c_str(), &v4->sin_addr) == 1) {
      v4->sin_family = AF_INET;
      v4->sin_port = htons(target.port);
      address_size_ = sizeof *v4;
    } else if (inet_pton(AF_INET6, target.address.c_str(), &v6->sin6_addr) == 1) {
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(target.port);
      address_size_ = sizeof *v6;
    }
    if (address_size_ == 0 || target.port == 0) {
      return fail(ErrorCode::invalid_argument, "expected a numeric IP address and a port",
                  "target");
    }
    if (options_.in_flight_max == 0 || options_.timeout <= Micros(0)) {
      return fail(ErrorCode::invalid_argument, "limits are above 0", "in_flight_max, timeout");
    }
    if (!std::ranges::is_sorted(options_.trace, {}, &TraceArrival::at)) {
      return fail(ErrorCode::invalid_argument, "expected times that do not fall", "trace");
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
  void watch_for(int fd, std::uint32_t what, std::uint64_t mark) const {
    epoll_event event{.events = what, .data = {.u64 = mark}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }

  std::optional<TraceArrival> next_arrival() {
    if (options_.trace.empty()) {
      const std::optional<Micros> at = arrivals_.next();
      return at ? std::optional(TraceArrival{.at = *at}) : std::nullopt;
    }
    if (traced_ == options_.trace.size()) return {};
    return options_.trace[traced_++];
  }

  // To the earliest of: next arrival, next timeout, next report.
  void arm_timer() {
    Micros due = next_progress_;
    if (next_arrival_) due = std::min(due, next_arrival_->at);
    if (!by_deadline_.empty()) due = std::min(due, by_deadline_.front().second);
    if (due == armed_ && due > now()) return;
    armed_ = due;
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
    while (next_arrival_ && next_arrival_->at <= now()) {
      begin(*next_arrival_);
      next_arrival_ = next_arrival();
    }
  }

  void begin(const TraceArrival& arrival) {
    Running one;
    one.result.number = ++summary_.scheduled;
    one.result.scheduled = arrival.at;
    one.result.started = now();
    one.result.load_class = classes_.choose();
    if (!summary_.classes.empty()) ++summary_.classes[one.result.load_class].scheduled;
    if (running_.size() >= options_.in_flight_max) {
      return finish(one, Outcome::dropped, one.result.started);
    }
    summary_.lateness.record(one.result.started - arrival.at);
    one.text = text_.of(one.result.number, one.result.load_class, arrival);
    by_deadline_.emplace_back(one.result.number, arrival.at + options_.timeout);
    const auto [entry, is_new] = running_.emplace(one.result.number, std::move(one));
    Running& started = entry->second;
    if (!take_idle(started)) return connect_anew(started);
    std::ignore = send_rest(started);
  }

  // The connection that was used last: the others may come to be of no use.
  bool take_idle(Running& one) {
    const Micros oldest = now() - options_.keep_idle;
    if (idle_.empty()) return false;
    if (idle_.back().since < oldest) {
      idle_.clear();
      return false;
    }
    one.socket = std::move(idle_.back().socket);
    idle_.pop_back();
    one.used_again = true;
    watch_for(one.socket.get(), listening, one.result.number);
    return true;
  }

  void connect_anew(Running& one) {
    one.sent = 0;
    one.used_again = false;
    one.connecting = true;
    ++summary_.connections;
    one.socket.reset(socket(address_.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    setsockopt(one.socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int connected =
        connect(one.socket.get(), reinterpret_cast<const sockaddr*>(&address_), address_size_);
    if ((connected != 0 && errno != EINPROGRESS) ||
        !watch(one.socket.get(), listening | EPOLLOUT, one.result.number)) {
      finish(one, Outcome::refused, now());
    }
  }

  // True when the request goes on, on a new connection: nothing of an answer came through one that
  // its server had closed as idle.
  bool sent_again(Running& one) {
    if (!one.used_again || one.result.sent_again || one.reader.begun()) return false;
    one.result.sent_again = true;
    connect_anew(one);
    return true;
  }

  void on_event(const epoll_event& event) {
    const std::uint64_t mark = event.data.u64;  // a copy: the kernel's struct is packed
    if (mark == timer_mark || mark == stop_mark) {
      std::uint64_t ignored = 0;
      const int fd = mark == timer_mark ? timer_.get() : stop_.get();
      if (read(fd, &ignored, sizeof ignored) < 0) return;
      return;
    }
    if ((mark & idle_mark) != 0) {  // closed by its server
      const auto fd = static_cast<int>(mark & ~idle_mark);
      std::erase_if(idle_, [fd](const Idle& one) { return one.socket.get() == fd; });
      return;
    }
    const auto found = running_.find(mark);
    if (found == running_.end()) return;
    Running& one = found->second;
    if (one.sent < one.text.size() && !send_rest(one)) return;
    if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) receive(one);
  }

  // False when the request ended here, or began again on another connection.
  bool send_rest(Running& one) {
    if (one.connecting) {
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(one.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) {
        finish(one, Outcome::refused, now());
        return false;
      }
    }
    const ssize_t sent = send(one.socket.get(), one.text.data() + one.sent,
                              one.text.size() - one.sent, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
      if (!sent_again(one)) finish(one, Outcome::refused, now());
      return false;
    }
    if (sent > 0) one.sent += static_cast<std::size_t>(sent);
    if (one.sent < one.text.size()) {
      watch_for(one.socket.get(), listening | EPOLLOUT, one.result.number);
    } else if (one.connecting) {
      one.connecting = false;
      watch_for(one.socket.get(), listening, one.result.number);
    }
    return true;
  }

  void receive(Running& one) {
    std::array<char, 16384>& chunk = chunk_;
    for (;;) {
      const ssize_t got = recv(one.socket.get(), chunk.data(), chunk.size(), 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      const Micros at = now();
      if (got <= 0) {
        if (sent_again(one)) return;
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
      if (static_cast<std::size_t>(got) < chunk.size()) return;
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

  void keep_or_close(Running& one, Outcome outcome, Micros at) {
    const bool answered = outcome == Outcome::ok || outcome == Outcome::bad_status;
    if (!answered || options_.keep_idle == Micros(0) || one.sent < one.text.size() ||
        !one.reader.reusable()) {
      one.socket.reset();
      return;
    }
    watch_for(one.socket.get(), listening,
              idle_mark | static_cast<std::uint64_t>(one.socket.get()));
    idle_.push_back({std::move(one.socket), at});
  }

  void finish(Running& one, Outcome outcome, Micros at) {
    keep_or_close(one, outcome, at);
    RequestResult& result = one.result;
    result.outcome = outcome;
    result.finished = at;
    result.status = one.reader.status();
    result.retry_after = one.reader.retry_after();
    if (result.tokens == 0 && outcome == Outcome::ok) {
      result.tokens = one.reader.completion_tokens().value_or(0);
    }
    add(summary_, result, one.gaps, options_.objective);
    if (!summary_.classes.empty()) {
      add(summary_.classes[result.load_class], result, one.gaps, options_.objective);
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
  RequestText text_;
  Arrivals arrivals_;
  ClassChoice classes_;
  std::size_t traced_ = 0;
  posix::Fd epoll_;
  posix::Fd timer_;
  posix::Fd stop_;
  sockaddr_storage address_{};
  socklen_t address_size_ = 0;
  Clock::time_point start_;
  std::optional<TraceArrival> next_arrival_;
  Micros armed_{-1};
  Micros next_progress_{0};
  std::unordered_map<std::uint64_t, Running> running_;
  std::vector<Idle> idle_;                                    // the last used at the end
  std::deque<std::pair<std::uint64_t, Micros>> by_deadline_;  // in order of schedule
  std::array<char, 16384> chunk_{};
  LoadSummary summary_;
};

}  // namespace

Result<LoadSummary> run_load(const LoadOptions& options, const LoadObserver& observer,
                             std::stop_token stop) {
  Result<RequestText> text = RequestText::make(options);
  if (!text) return tl::unexpected(text.error());
  return Run(options, observer, std::move(*text)).go(stop);
}

}  // namespace neap::load
