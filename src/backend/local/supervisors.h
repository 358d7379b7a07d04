// The daemon's side of all supervisors on this machine: starts them, finds them again after a
// restart, passes commands down and reports up. One thread of its own; every call returns at once.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/local/control.h"
#include "backend/local/event_loop.h"
#include "backend/local/report.h"
#include "backend/local/spec.h"
#include "core/model/result.h"

namespace neap::local {

class Attachment;

enum class FoundState : std::uint8_t {
  supervised,     // its supervisor lives
  unsupervised,   // it was started; what became of it follows as reports
  never_started,  // start() may be called again
};
struct FoundAllocation {
  AllocationId allocation;
  FoundState state{};
  std::optional<SupervisedTask> task;  // none: its spec is damaged, see `trouble`
  std::string trouble;
};

// The newest allocation that has left a folder there, started or not; none without any.
[[nodiscard]] std::optional<AllocationId> newest_allocation(const std::string& run_directory);

class Supervisors {
 public:
  struct Settings {
    std::string run_directory;  // absolute and short: sockets lie below it
    std::string executable;     // neap-supervise
  };
  // Called on this component's thread. Reports come in order, each at least once, and again
  // after a restart of the daemon until they are acknowledged.
  using OnReport = std::function<void(const Report&)>;

  [[nodiscard]] static Result<std::unique_ptr<Supervisors>> open(Settings settings,
                                                                 OnReport on_report);
  // Tasks and supervisors go on.
  ~Supervisors();
  Supervisors(const Supervisors&) = delete;
  Supervisors& operator=(const Supervisors&) = delete;

  // Once, before the first start(): attaches to all that is there. Blocks until it has looked.
  // `found` is called before any report of theirs, on this component's thread.
  [[nodiscard]] Result<void> adopt(
      const std::function<void(const std::vector<FoundAllocation>&)>& found);

  // Idempotent: an allocation that was started before is attached to, never started again.
  void start(SupervisedTask task);
  void send(AllocationId allocation, ControlCommand command);
  // Everything of this allocation up to `sequence` is in the journal.
  void acknowledge(AllocationId allocation, std::uint64_t sequence);
  // Removes the files, the log too, as soon as the end of the allocation is acknowledged.
  void forget(AllocationId allocation);

  [[nodiscard]] std::string directory_of(AllocationId allocation) const;

 private:
  Supervisors(Settings settings, OnReport on_report, Fd wake);
  void post(std::function<void()> work);
  void run_posted();
  Attachment& attach(AllocationId allocation);
  [[nodiscard]] Result<std::vector<FoundAllocation>> look_around();

  Settings settings_;
  OnReport on_report_;
  Fd wake_;
  EventLoop loop_;
  std::map<AllocationId, std::unique_ptr<Attachment>> attachments_;
  std::mutex mutex_;
  std::deque<std::function<void()>> posted_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace neap::local
