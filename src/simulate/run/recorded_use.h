// A journal of neap as the use of its devices over time: what training and inference held.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/model/events.h"
#include "core/model/result.h"
#include "simulate/assess/use_trace.h"

namespace neap::whatif {

struct RecordedUse {
  assess::UseTrace training, inference;
};

// Fed the records in their order.
class UseRecording {
 public:
  explicit UseRecording(Micros slot) : training_(slot), inference_(slot) {}

  void note(Time now, const Event& event);
  void note(Time now, const Decision& decision);
  // invalid_argument: longer than a trace of use may be.
  [[nodiscard]] Result<RecordedUse> finish() const;

 private:
  struct Held {
    std::int64_t milli = 0;
    bool inference = false;
    std::set<std::string> nodes;
  };

  void pass(Time now);
  void release(AllocationId allocation);
  void lose(const std::string& node);

  assess::UseFiller training_, inference_;
  bool begun_ = false, too_long_ = false;
  Time first_, now_;
  std::int64_t training_milli_ = 0, inference_milli_ = 0;
  std::set<TaskId> replicas_;
  std::map<AllocationId, Held> held_;
  std::vector<std::string> node_of_;  // by device
  std::set<std::string> known_, up_;
};

// `path` is the journal's file, or a daemon's state folder. What began before the oldest record
// that is held is not in it.
[[nodiscard]] Result<RecordedUse> read_use_of_journal(const std::string& path, Micros slot);

}  // namespace neap::whatif
