// Puts the reports of backends in order before they become records: duplicates are dropped,
// early ones wait, so that neither changes anything (POLICIES 7).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/model/events.h"
#include "core/model/state.h"

namespace neap {

class Sequencer {
 public:
  // Events of one source that may wait for a missing one; more are dropped and come again.
  static constexpr std::size_t max_waiting = 1024;

  // Starts over from what the state has applied (after a restart).
  void restore(const PoolState& state);

  // Appends to `ready` all that may be applied now, in order: the event itself when it is next or
  // carries no stamp, and those that waited for it. A new epoch of a source starts at sequence 1.
  void admit(Event event, std::vector<Event>& ready);

  // True for what admit() would drop as a duplicate or as late. Its sender has to be told so (once
  // all applied records are durable): an acknowledgement may have been lost in a crash.
  [[nodiscard]] bool is_old(const ReportStamp& stamp) const;

  // The source has ended; what comes late is dropped.
  void forget(AllocationId source);

 private:
  struct Source {
    std::uint32_t epoch = 0;
    std::uint64_t next = 1;
    std::map<std::uint64_t, Event> waiting;
  };
  // Ids are given in order, so one mark and the sources that live say which have ended: all below
  // the mark that have no entry.
  std::map<AllocationId, Source> sources_;
  AllocationId ended_below_{0};
};

}  // namespace neap
