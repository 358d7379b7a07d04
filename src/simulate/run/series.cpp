#include "simulate/run/series.h"

#include <algorithm>

#include "core/model/check.h"

namespace neap::whatif {

Series::Series(std::size_t channels, Time begin, Micros span)
    : channels_(channels), begin_(begin), span_(span) {
  for (Channel& channel : channels_) channel.mark = begin;
}

void Series::change(std::size_t channel, Time now, std::int64_t by) {
  Channel& changed = channels_[channel];
  settle(changed, now);
  changed.level += by;
  changed.highest = std::max(changed.highest, changed.level);
}

void Series::settle(Time now) {
  for (Channel& channel : channels_) settle(channel, now);
}

void Series::settle(Channel& channel, Time now) {
  NEAP_CHECK(now >= channel.mark);
  while ((now - begin_).value > span_.value * static_cast<std::int64_t>(most_spans)) double_span();
  while (channel.mark < now) {
    const auto index = static_cast<std::size_t>((channel.mark - begin_).value / span_.value);
    const Time end = std::min(now, begin_ + span_ * static_cast<std::int64_t>(index + 1));
    const Wide part = Wide{channel.level} * (end - channel.mark).value;
    if (channel.spans.size() <= index) channel.spans.resize(index + 1);
    channel.spans[index] += part;
    channel.sum += part;
    channel.mark = end;
  }
}

void Series::double_span() {
  for (Channel& channel : channels_) {
    const std::size_t half = (channel.spans.size() + 1) / 2;
    channel.spans.resize(half * 2);
    for (std::size_t i = 0; i < half; ++i) {
      channel.spans[i] = channel.spans[2 * i] + channel.spans[2 * i + 1];
    }
    channel.spans.resize(half);
  }
  span_ = span_ * 2;
}

std::vector<std::int64_t> Series::means(std::size_t channel, Time end) const {
  std::vector<std::int64_t> out;
  const Channel& of = channels_[channel];
  NEAP_CHECK(of.mark >= end || end <= begin_);
  for (Time from = begin_; from < end; from = from + span_) {
    const std::int64_t length = std::min(span_, end - from).value;
    const Wide sum = out.size() < of.spans.size() ? of.spans[out.size()] : Wide{0};
    out.push_back(static_cast<std::int64_t>(sum / length));
  }
  return out;
}

}  // namespace neap::whatif
