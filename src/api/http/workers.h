// A few threads that answer requests, so that the thread which serves all connections never
// waits for an answer. The queue is bounded: what does not fit is refused at once.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace neap::api::http {

class Workers {
 public:
  Workers(std::size_t threads, std::size_t queue_max);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  // A place in the queue, to be filled by add(). False when full or stopping.
  [[nodiscard]] bool reserve();
  void add(std::function<void()> work);
  // Waits for all that was reserved; nothing can be reserved after.
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  const std::size_t queue_max_;
  std::size_t reserved_ = 0;  // places given and not yet filled
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace neap::api::http
