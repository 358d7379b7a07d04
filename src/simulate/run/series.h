// Levels over time as means of a few hundred spans of equal length. The length doubles as the run
// grows, so that memory does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/model/units.h"

namespace neap::whatif {

class Series {
 public:
  __extension__ using Wide = __int128;
  static constexpr std::size_t most_spans = 480;  // even

  Series(std::size_t channels, Time begin, Micros span = seconds(1));

  // From `now` on; never before the last call for this channel.
  void change(std::size_t channel, Time now, std::int64_t by);
  // Brings all channels up to `now`.
  void settle(Time now);

  [[nodiscard]] std::int64_t level(std::size_t channel) const { return channels_[channel].level; }
  [[nodiscard]] Wide integral(std::size_t channel) const { return channels_[channel].sum; }
  [[nodiscard]] std::int64_t highest(std::size_t channel) const {
    return channels_[channel].highest;
  }
  [[nodiscard]] Time begin() const { return begin_; }
  [[nodiscard]] Micros span() const { return span_; }
  // Means of the spans up to `end`, rounded down; the last span may be cut short by it. All
  // channels must be settled there.
  [[nodiscard]] std::vector<std::int64_t> means(std::size_t channel, Time end) const;

 private:
  struct Channel {
    std::int64_t level = 0;
    std::int64_t highest = 0;
    Time mark;
    Wide sum = 0;
    std::vector<Wide> spans;
  };
  void settle(Channel& channel, Time now);
  void double_span();

  std::vector<Channel> channels_;
  Time begin_;
  Micros span_;
};

}  // namespace neap::whatif
