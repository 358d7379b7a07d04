// Looks for checkpoints of a task that only writes files, in a process of its own that runs as
// the submitter: fsync of gigabytes holds nothing up, and root never walks a user's tree.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backend/local/contract.h"
#include "backend/local/event_loop.h"
#include "backend/local/fd.h"
#include "backend/local/spec.h"
#include "backend/local/watch.h"
#include "core/model/result.h"

namespace neap::local {

class Watcher {
 public:
  struct Handlers {
    std::function<void(const WatchedCheckpoint&)> checkpoint;
    std::function<void(const std::string& reason)> failed;
    std::function<void()> done;  // after finish(), and after failed
  };

  // Call before the caller becomes a subreaper, so that the watcher does not count among what
  // the task left behind. What matches at this time is taken for old.
  [[nodiscard]] static Result<std::unique_ptr<Watcher>> start(EventLoop& loop,
                                                              const SupervisedTask& task,
                                                              Handlers handlers);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // One last look, without waiting for files to settle; then `done`.
  void finish();

 private:
  Watcher(EventLoop& loop, Fd socket, Handlers handlers);
  void on_socket();
  void on_line(std::string_view line);

  EventLoop& loop_;
  Fd socket_;
  Handlers handlers_;
  LineSplitter lines_{contract_line_limit};
};

}  // namespace neap::local
