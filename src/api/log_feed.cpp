#include "api/log_feed.h"

#include <iterator>
#include <utility>

#include "api/encode.h"

namespace neap::api {

namespace {
constexpr std::size_t pending_max = 64 * 1024;
constexpr std::int64_t chunk_max = 32 * 1024;
}  // namespace

std::size_t drop_broken_end(std::string& bytes) {
  for (std::size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (length <= back) return 0;
    bytes.resize(bytes.size() - back);
    return back;
  }
  return 0;
}

LogFeed::LogFeed(Control& control, std::chrono::milliseconds interval)
    : control_(control), interval_(interval), thread_([this] { run(); }) {}

LogFeed::~LogFeed() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void LogFeed::follow(std::uint64_t task, std::int64_t offset,
                     std::shared_ptr<http::Stream> stream) {
  const std::lock_guard lock(mutex_);
  joining_.push_back({task, offset, std::move(stream)});
  changed_.notify_one();
}

void LogFeed::run() {
  std::vector<Follower> followers;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    std::move(joining_.begin(), joining_.end(), std::back_inserter(followers));
    joining_.clear();
    lock.unlock();
    std::erase_if(followers, [this](Follower& follower) { return !advance(follower); });
    lock.lock();
    if (followers.empty()) {
      changed_.wait(lock, [this] { return stopping_ || !joining_.empty(); });
    } else {
      changed_.wait_for(lock, interval_, [this] { return stopping_ || !joining_.empty(); });
    }
  }
}

bool LogFeed::advance(Follower& follower) {
  while (follower.stream->open()) {
    if (follower.stream->pending() > pending_max) return true;
    auto chunk = control_.read_log(follower.task, {follower.offset, chunk_max});
    if (!chunk) {
      // The daemon stops, or the record of the task is gone: the reader asks again and is told.
      follower.stream->finish();
      return false;
    }
    const bool ended = is_final(chunk->state);
    if (!ended || chunk->bytes.size() > 3) {
      chunk->next_offset -= static_cast<std::int64_t>(drop_broken_end(chunk->bytes));
    }
    follower.offset = chunk->next_offset;
    if (!chunk->bytes.empty()) {
      if (!follower.stream->send(http::event_text("", "log", encode(*chunk)))) return false;
    } else if (ended) {
      follower.stream->send(http::event_text("", "end", encode(*chunk)));
      follower.stream->finish();
      return false;
    } else {
      return true;
    }
  }
  return false;
}

}  // namespace neap::api
