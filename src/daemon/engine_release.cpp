#include "daemon/engine_release.h"

#include <fmt/format.h>

#include <utility>

#include "daemon/log.h"
#include "engine/ladder.h"

namespace neap::daemon {
namespace {

using std::chrono::milliseconds;

// A replica that does not answer is not waited for: it is about to end.
constexpr engine::Patience engine_patience{milliseconds(300), milliseconds(1000),
                                           milliseconds(2000), milliseconds(2000)};

}  // namespace

EngineRelease::EngineRelease(Stop stop) : stop_(std::move(stop)), thread_([this] { run(); }) {}

EngineRelease::~EngineRelease() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
  for (const Work& work : waiting_) {
    if (work.stop) stop_(*work.stop);
  }
}

void EngineRelease::drains(const LeavingReplica& replica) {
  if (replica.kind == engine::Kind::none) return;
  push({replica, std::nullopt, std::chrono::steady_clock::now()});
}

void EngineRelease::stop_after(const LeavingReplica& replica, const StopTask& action) {
  if (replica.kind == engine::Kind::none) return stop_(action);
  push({replica, action, std::chrono::steady_clock::now()});
}

void EngineRelease::push(Work work) {
  {
    const std::scoped_lock lock(mutex_);
    if (waiting_.size() < waiting_max && !ends_) {
      waiting_.push_back(std::move(work));
      changed_.notify_one();
      return;
    }
  }
  if (work.stop) stop_(*work.stop);
}

void EngineRelease::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    const Work work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    carry_out(work);
    lock.lock();
  }
}

void EngineRelease::carry_out(const Work& work) {
  using engine::Rung;
  const bool in_time = std::chrono::steady_clock::now() - work.queued < longest_wait;
  if (in_time) {
    const engine::Engine replica(work.replica.kind, work.replica.port, engine_patience);
    const auto done = work.stop ? give_memory_back(replica, Rung::offload, Rung::sleep)
                                : give_memory_back(replica, Rung::shrink, Rung::shrink);
    log_info(fmt::format("allocation {} {}: {}", work.replica.allocation.value,
                         work.stop ? "goes" : "drains", engine::text_of(done)));
  }
  if (work.stop) stop_(*work.stop);
}

}  // namespace neap::daemon
