#include "backend/local/event_loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "backend/local/clock.h"
#include "core/model/check.h"

namespace neap::local {
namespace {

// A descriptor number may be used again within one batch of events: the generation tells.
std::uint64_t tag(int fd, std::uint32_t generation) {
  return (static_cast<std::uint64_t>(generation) << 32U) | static_cast<std::uint32_t>(fd);
}

}  // namespace

EventLoop::EventLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) { NEAP_CHECK(epoll_.valid()); }

void EventLoop::watch(int fd, std::uint32_t events, Handler handler) {
  Watched entry{next_generation_++, std::make_shared<Handler>(std::move(handler))};
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag(fd, entry.generation);
  NEAP_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  watched_[fd] = std::move(entry);
}

void EventLoop::change(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag(fd, watched_.at(fd).generation);
  NEAP_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0);
}

void EventLoop::forget(int fd) {
  if (watched_.erase(fd) == 0) return;
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::TimerId EventLoop::after(Micros delay, std::function<void()> handler) {
  const TimerId id{steady_now() + delay, next_timer_++};
  timers_.emplace(id, std::move(handler));
  return id;
}

void EventLoop::cancel(TimerId timer) { timers_.erase(timer); }

void EventLoop::run_timers() {
  const Time now = steady_now();
  while (!timers_.empty() && timers_.begin()->first.due <= now) {
    const auto node = timers_.extract(timers_.begin());
    node.mapped()();
  }
}

void EventLoop::run_once(Micros longest) {
  std::int64_t wait_us = longest.value;
  if (!timers_.empty()) {
    wait_us = std::min(wait_us, (timers_.begin()->first.due - steady_now()).value);
  }
  wait_us = std::clamp<std::int64_t>(wait_us, 0, 3'600'000'000);
  std::array<epoll_event, 32> events{};
  // Rounded up: waking before a timer is due would only spin.
  const int wait_ms = static_cast<int>((wait_us + 999) / 1'000);
  const int n = ::epoll_wait(epoll_.get(), events.data(), events.size(), wait_ms);
  NEAP_CHECK(n >= 0 || errno == EINTR);
  for (int i = 0; i < n; ++i) {
    const epoll_event& event = events.at(static_cast<std::size_t>(i));
    const auto found = watched_.find(static_cast<int>(event.data.u64 & 0xFFFFFFFFU));
    if (found == watched_.end()) continue;
    if (found->second.generation != event.data.u64 >> 32U) continue;
    const std::shared_ptr<Handler> handler = found->second.handler;
    (*handler)(event.events);
  }
  run_timers();
}

void EventLoop::run() {
  while (!stopped_) run_once();
}

}  // namespace neap::local
