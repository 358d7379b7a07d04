#include "api/event_feed.h"

#include <algorithm>
#include <span>
#include <utility>

#include "api/encode.h"

namespace neap::api {

namespace {

constexpr std::size_t ring_max = 4096;
// A loop that outruns this thread by so much is not waited for: followers read the gap from the
// journal.
constexpr std::size_t inbox_max = 65'536;

std::string text_of(const EventRow& row) {
  return http::event_text(std::to_string(row.sequence), "event", encode(row));
}

}  // namespace

EventFeed::EventFeed(Control& control, EventHub& hub, Authority authority)
    : control_(control), hub_(hub), authority_(authority) {
  listener_ = hub_.listen([this](std::span<const EventRow> batch) {
    const std::lock_guard lock(mutex_);
    if (inbox_.size() + batch.size() > inbox_max) {
      ring_floor_ = std::max(ring_floor_, batch.empty() ? 0 : batch.back().sequence);
      return;
    }
    inbox_.insert(inbox_.end(), batch.begin(), batch.end());
    came_.notify_one();
  });
  thread_ = std::thread([this] { run(); });
}

EventFeed::~EventFeed() {
  hub_.forget(listener_);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  came_.notify_one();
  thread_.join();
}

bool EventFeed::deliver(Follower& follower, const EventRow& row, const std::string& text) const {
  if (row.sequence <= follower.last) return true;
  follower.last = row.sequence;
  if (!row.about_pool && !authority_.sees(follower.caller, row.owner_uid)) return true;
  return follower.stream->send(text);
}

void EventFeed::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    came_.wait(lock, [this] { return stopping_ || !inbox_.empty(); });
    if (stopping_) return;
    const std::vector<EventRow> batch = std::exchange(inbox_, {});
    for (const EventRow& row : batch) {
      const std::string text = text_of(row);
      std::erase_if(followers_, [&](Follower& follower) { return !deliver(follower, row, text); });
      ring_.push_back({row, text});
      if (ring_.size() > ring_max) {
        ring_floor_ = std::max(ring_floor_, ring_.front().row.sequence);
        ring_.pop_front();
      }
    }
  }
}

// From the journal up to its end; false when that is too far or fails.
bool EventFeed::catch_up(Follower& follower) {
  const auto page = control_.events_after(follower.last, catch_up_max);
  if (!page || static_cast<std::int64_t>(page->size()) >= catch_up_max) return false;
  for (const EventRow& row : *page) {
    if (!deliver(follower, row, text_of(row))) return false;
  }
  return true;
}

void EventFeed::follow(const Caller& caller, std::uint64_t after,
                       std::shared_ptr<http::Stream> stream) {
  Follower follower{caller, after, std::move(stream)};
  // What comes while the journal is read is in the ring; a second reading closes the gap when
  // even the ring has gone on.
  constexpr int readings_max = 3;
  for (int reading = 0; reading < readings_max && catch_up(follower); ++reading) {
    const std::lock_guard lock(mutex_);
    if (stopping_) break;
    if (follower.last < ring_floor_) continue;
    bool open = true;
    for (const Item& item : ring_) open = open && deliver(follower, item.row, item.text);
    std::erase_if(followers_, [](const Follower& other) { return !other.stream->open(); });
    if (open) followers_.push_back(std::move(follower));
    return;
  }
  follower.stream->send(http::event_text("", "behind", "{}"));
  follower.stream->finish();
}

}  // namespace neap::api
