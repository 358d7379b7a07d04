// Virtual time: what is to happen, in order of its moment and then of its arrival.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/model/units.h"

namespace neap::simulated {

class Timeline {
 public:
  using Act = std::function<void()>;

  [[nodiscard]] Time now() const { return now_; }
  // A moment that has passed means now.
  void at(Time when, Act act);
  void after(Micros wait, Act act) { at(now_ + wait, std::move(act)); }
  // Time::never() when nothing is to happen.
  [[nodiscard]] Time next() const;
  // Goes to the next moment and lets it happen. False: nothing is to happen.
  bool run_next();
  // Nothing is due before `when`.
  void advance_to(Time when) { now_ = std::max(now_, when); }
  // Lets happen all that is due until `end` and goes there.
  void run_until(Time end);

 private:
  struct Entry {
    Time when;
    std::uint64_t order = 0;
    Act act;
    bool operator<(const Entry& other) const {  // the queue gives the largest first
      return when != other.when ? when > other.when : order > other.order;
    }
  };
  std::vector<Entry> entries_;  // a heap
  std::uint64_t order_ = 0;
  Time now_;
};

}  // namespace neap::simulated
