#include "journal/journal.h"

#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "core/model/check.h"
#include "journal/crash_points.h"
#include "journal/store.h"

namespace neap::journal {

// What the thread that writes is given.
struct SnapshotWork {
  std::vector<std::byte> blob;
};
struct SealWork {
  std::vector<std::byte> closing;
};
struct DropWork {
  Time limit;
};
using Work = std::variant<Batch, SnapshotWork, SealWork, DropWork>;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t merged_records = 2'048;

std::size_t bytes_in(const Work& work) {
  if (const auto* batch = std::get_if<Batch>(&work)) return batch->payload_bytes();
  return 0;  // snapshots are rare, and bounded by the one state they are taken from
}

}  // namespace

class Journal::Committer {
 public:
  Committer(Store store, Options options, Callbacks callbacks, int event_fd)
      : options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        event_fd_(event_fd),
        store_(std::move(store)),
        last_sequence_(store_.head().sequence),
        last_time_(store_.head().time),
        durable_(last_sequence_) {
    thread_ = std::thread([this] { run(); });
  }

  ~Committer() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
    ::close(event_fd_);
  }

  bool has_room() const {
    const std::lock_guard lock(mutex_);
    return room_locked();
  }

  Result<std::uint64_t> append(const Batch& batch) {
    const std::size_t count = batch.size();
    const std::size_t bytes = batch.payload_bytes();
    std::uint64_t sequence = 0;
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return tl::unexpected(*failure_);
      if (count == 0) return last_sequence_;
      if (!room_locked()) {
        return fail(ErrorCode::exhausted, std::to_string(pending_records_) +
                                              " records wait to become durable; try again later");
      }
      Time time = last_time_;
      for (std::size_t i = 0; i < count; ++i) {
        const Time next = batch.at(i).time;
        if (next < time) {
          return fail(ErrorCode::invalid_argument, "a record of time " + std::to_string(next.us) +
                                                       " after one of " + std::to_string(time.us) +
                                                       ": time in the journal never falls");
        }
        time = next;
      }
      last_time_ = time;
      sequence = last_sequence_ += count;
      pending_records_ += count;
      pending_bytes_ += bytes;
      queued_records_ += count;
      enqueue_locked(batch);
      crash_point(CrashPoint::appended);
      if (!should_wake_locked()) return sequence;
    }
    wake_.notify_one();
    return sequence;
  }

  Result<void> enqueue(Work work) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return tl::unexpected(*failure_);
      queue_.push_back(std::move(work));
    }
    wake_.notify_one();
    return {};
  }

  Result<void> flush() {
    std::unique_lock lock(mutex_);
    const std::uint64_t mine = ++flushes_asked_;
    wake_.notify_one();
    flushed_.wait(lock, [&] { return flushes_done_ >= mine || failure_; });
    if (failure_) return tl::unexpected(*failure_);
    return {};
  }

  std::uint64_t last_sequence() const {
    const std::lock_guard lock(mutex_);
    return last_sequence_;
  }

  Time last_time() const {
    const std::lock_guard lock(mutex_);
    return last_time_;
  }

  std::uint64_t durable_sequence() const { return durable_.load(std::memory_order_acquire); }
  int event_fd() const { return event_fd_; }

  Statistics statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  bool room_locked() const {
    return pending_records_ < options_.max_pending_records &&
           pending_bytes_ < options_.max_pending_bytes;
  }

  // Waking costs the loop a system call, so the commit thread is woken when it sleeps without a
  // limit, or when gathering is over.
  bool should_wake_locked() const {
    return idle_ || (gathering_ && queued_records_ >= options_.gather_records);
  }

  // Turns are merged: an allocation and a hand-over for each would cost more than SQLite does.
  void enqueue_locked(const Batch& batch) {
    auto* last = queue_.empty() ? nullptr : std::get_if<Batch>(&queue_.back());
    if (last == nullptr || last->size() + batch.size() > merged_records) {
      last = &std::get<Batch>(queue_.emplace_back(std::move(spare_)));
      spare_.clear();
    }
    last->add(batch);
  }

  void take_locked() {
    std::size_t records = 0;
    while (!queue_.empty() && records < options_.commit_records) {
      if (const auto* batch = std::get_if<Batch>(&queue_.front())) records += batch->size();
      taken_.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    queued_records_ -= records;
  }

  bool work_locked() const {
    return stopping_ || !queue_.empty() || flushes_done_ < flushes_asked_ ||
           store_.snapshot_unfinished() || store_.dropping_unfinished();
  }

  bool full_turn_locked() const {
    return stopping_ || flushes_done_ < flushes_asked_ ||
           queued_records_ >= options_.gather_records;
  }

  void run() {
    Clock::time_point last_commit = Clock::now() - std::chrono::hours(1);
    for (;;) {
      std::uint64_t flush = 0;
      {
        std::unique_lock lock(mutex_);
        idle_ = true;
        wake_.wait(lock, [this] { return work_locked(); });
        idle_ = false;
        gathering_ = true;
        wake_.wait_until(lock, last_commit + std::chrono::microseconds(options_.gather.value),
                         [this] { return full_turn_locked(); });
        gathering_ = false;
        if (stopping_ && queue_.empty() && !store_.snapshot_unfinished()) return;
        take_locked();
        // A flush is done once nothing that was queued before it is left.
        flush = queue_.empty() ? flushes_asked_ : flushes_done_;
      }
      crash_point(CrashPoint::taken);
      if (auto committed = commit_taken(); !committed) {
        report_failure(committed.error());
        return;
      }
      last_commit = Clock::now();
      report(flush);
    }
  }

  Result<void> commit_taken() {
    completed_snapshot_ = 0;
    if (taken_.empty() && !store_.snapshot_unfinished() && !store_.dropping_unfinished()) return {};
    return store_.begin().and_then([this] { return write_taken(); }).and_then([this] {
      return store_.commit();
    });
  }

  Result<void> write_taken() {
    for (Work& work : taken_) {
      Result<void> done;
      if (auto* batch = std::get_if<Batch>(&work)) {
        done = store_.insert(*batch);
      } else if (auto* snapshot = std::get_if<SnapshotWork>(&work)) {
        store_.begin_snapshot(std::move(snapshot->blob));
      } else if (auto* seal = std::get_if<SealWork>(&work)) {
        done = store_.seal(seal->closing);
      } else {
        done = store_.drop_older_than(std::get<DropWork>(work).limit);
      }
      if (!done) return done;
    }
    if (store_.snapshot_unfinished()) {
      auto part = store_.insert_snapshot_part();
      if (!part) return tl::unexpected(std::move(part.error()));
      completed_snapshot_ = *part;
    }
    if (store_.dropping_unfinished()) return store_.delete_dropped();
    return {};
  }

  void report(std::uint64_t flush) {
    std::size_t records = 0;
    std::size_t bytes = 0;
    for (const Work& work : taken_) {
      bytes += bytes_in(work);
      if (const auto* batch = std::get_if<Batch>(&work)) records += batch->size();
    }
    const bool worked = !taken_.empty();
    Batch spare;
    if (worked) {
      if (auto* batch = std::get_if<Batch>(&taken_.back())) spare = std::move(*batch);
    }
    spare.clear();
    taken_.clear();
    const std::uint64_t durable = store_.head().sequence;
    durable_.store(durable, std::memory_order_release);
    {
      const std::lock_guard lock(mutex_);
      spare_ = std::move(spare);
      pending_records_ -= records;
      pending_bytes_ -= bytes;
      statistics_.records += records;
      statistics_.commits += worked ? 1 : 0;
      statistics_.largest_commit = std::max<std::uint64_t>(statistics_.largest_commit, records);
      // A flush waits for snapshots and deletions too: it is asked for before a copy or an exit.
      if (!store_.snapshot_unfinished() && !store_.dropping_unfinished()) flushes_done_ = flush;
    }
    if (records > 0) {
      signal();
      if (callbacks_.on_durable) callbacks_.on_durable(durable);
    }
    if (completed_snapshot_ != 0 && callbacks_.on_snapshot) {
      callbacks_.on_snapshot(completed_snapshot_);
    }
    flushed_.notify_all();
    crash_point(CrashPoint::after_report);
  }

  void report_failure(const Error& error) {
    {
      const std::lock_guard lock(mutex_);
      failure_ = error;
      failure_->message = "the journal cannot be written: " + failure_->message;
    }
    flushed_.notify_all();
    signal();
    // failure_ does not change any more: it may be read without the lock.
    if (callbacks_.on_failure) callbacks_.on_failure(*failure_);
  }

  void signal() const {
    const std::uint64_t one = 1;
    // Fails only when the counter is full, and then it is readable anyway.
    [[maybe_unused]] const ssize_t put = ::write(event_fd_, &one, sizeof one);
  }

  const Options options_;
  const Callbacks callbacks_;
  const int event_fd_;

  // Of the commit thread, but for what the constructor reads.
  Store store_;
  std::vector<Work> taken_;
  std::uint64_t completed_snapshot_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable flushed_;
  std::deque<Work> queue_;
  Batch spare_;  // keeps its memory from one use to the next
  std::size_t queued_records_ = 0;
  std::size_t pending_records_ = 0;  // queued or in the transaction under way
  std::size_t pending_bytes_ = 0;
  std::uint64_t last_sequence_;
  Time last_time_;
  std::uint64_t flushes_asked_ = 0;
  std::uint64_t flushes_done_ = 0;
  bool idle_ = false;
  bool gathering_ = false;
  bool stopping_ = false;
  std::optional<Error> failure_;
  Statistics statistics_;

  std::atomic<std::uint64_t> durable_;
  std::thread thread_;
};

Result<Journal> Journal::open(Options options, Callbacks callbacks) {
  auto store = Store::open(options.path);
  if (!store) return tl::unexpected(std::move(store.error()));
  const int event_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_fd < 0) {
    return fail(ErrorCode::unavailable,
                std::string("cannot create an eventfd: ") + std::strerror(errno));
  }
  return Journal(std::make_unique<Committer>(std::move(*store), std::move(options),
                                             std::move(callbacks), event_fd));
}

Journal::Journal(std::unique_ptr<Committer> committer) : committer_(std::move(committer)) {}
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;
Journal::~Journal() = default;

bool Journal::has_room() const { return committer_->has_room(); }
Result<std::uint64_t> Journal::append(const Batch& batch) { return committer_->append(batch); }

Result<void> Journal::snapshot(std::vector<std::byte> blob) {
  return committer_->enqueue(SnapshotWork{std::move(blob)});
}

Result<void> Journal::seal(std::vector<std::byte> closing_balances) {
  return committer_->enqueue(SealWork{std::move(closing_balances)});
}

Result<void> Journal::drop_raw_before(Time limit) { return committer_->enqueue(DropWork{limit}); }
Result<void> Journal::flush() { return committer_->flush(); }
std::uint64_t Journal::last_sequence() const { return committer_->last_sequence(); }
Time Journal::last_time() const { return committer_->last_time(); }
std::uint64_t Journal::durable_sequence() const { return committer_->durable_sequence(); }
int Journal::durable_fd() const { return committer_->event_fd(); }
Statistics Journal::statistics() const { return committer_->statistics(); }

}  // namespace neap::journal
