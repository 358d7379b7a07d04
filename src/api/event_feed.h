// Sends events to those who follow. One thread takes them from the hub, so that the loop never
// waits for a reader; each event is encoded once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/authority.h"
#include "api/control.h"
#include "api/event_hub.h"
#include "api/http/stream.h"

namespace neap::api {

class EventFeed {
 public:
  EventFeed(Control& control, EventHub& hub, Authority authority);
  EventFeed(const EventFeed&) = delete;
  EventFeed& operator=(const EventFeed&) = delete;
  ~EventFeed();

  // How far behind a follower may begin; a reader reads pages up to there first.
  static constexpr std::int64_t catch_up_max = 1000;

  // Sends what `caller` may see above `after`, then what comes. A stream that begins too far
  // behind gets the event "behind" and ends.
  void follow(const Caller& caller, std::uint64_t after, std::shared_ptr<http::Stream> stream);

 private:
  struct Item {
    EventRow row;
    std::string text;
  };
  struct Follower {
    Caller caller;
    std::uint64_t last = 0;
    std::shared_ptr<http::Stream> stream;
  };

  void run();
  bool catch_up(Follower& follower);
  bool deliver(Follower& follower, const EventRow& row, const std::string& text) const;

  Control& control_;
  EventHub& hub_;
  const Authority authority_;

  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<EventRow> inbox_;
  std::deque<Item> ring_;            // the newest, delivered to all followers
  std::uint64_t ring_floor_ = 0;     // newest sequence that has left the ring
  std::vector<Follower> followers_;  // that have seen everything up to the ring
  bool stopping_ = false;

  std::uint64_t listener_ = 0;
  std::thread thread_;
};

}  // namespace neap::api
