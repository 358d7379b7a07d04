#include "api/http/workers.h"

#include <utility>

namespace neap::api::http {

Workers::Workers(std::size_t threads, std::size_t queue_max) : queue_max_(queue_max) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

Workers::~Workers() { stop(); }

bool Workers::reserve() {
  const std::lock_guard lock(mutex_);
  if (stopping_ || queue_.size() + reserved_ >= queue_max_) return false;
  ++reserved_;
  return true;
}

void Workers::add(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    --reserved_;
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void Workers::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Workers::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return !queue_.empty() || (stopping_ && reserved_ == 0); });
    if (queue_.empty()) break;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
  // The last place may have been filled and taken by another thread just now.
  wake_.notify_all();
}

}  // namespace neap::api::http
