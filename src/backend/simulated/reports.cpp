#include "backend/simulated/reports.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace neap::simulated {

namespace {
constexpr std::size_t sent_again_at_once = 32;

bool is_last(const Event& report) {
  return std::holds_alternative<TaskExited>(report) || std::holds_alternative<StartFailed>(report);
}
}  // namespace

Reports::Reports(Timeline& timeline, const Machines& machines, Network network, Random random)
    : timeline_(timeline), machines_(machines), network_(network), random_(random) {}

void Reports::connect(Backend::Sink sink) {
  ++connection_;
  sink_ = std::move(sink);
}

void Reports::disconnect() {
  ++connection_;
  sink_ = nullptr;
}

void Reports::post_stamped(AllocationId source, Line& line, Event report) {
  line.ended = line.ended || is_last(report);
  line.unacknowledged.push_back(std::make_shared<const Event>(std::move(report)));
  send(line, line.unacknowledged.back());
  if (line.will_send_again || network_.again_after.value == 0) return;
  line.will_send_again = true;
  timeline_.after(network_.again_after, [this, source] { send_again(source); });
}

Micros Reports::delay() {
  if (random_.chance(network_.late)) return random_.between(network_.most, network_.latest);
  return random_.between(network_.least, network_.most);
}

void Reports::send(const Line& line, const std::shared_ptr<const Event>& report) {
  if (!sink_) return;
  const Machines::Node* node = machines_.find(line.node);
  if (node != nullptr && !node->reachable) return;
  if (random_.chance(network_.lost)) return;
  const int copies = random_.chance(network_.doubled) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    timeline_.after(delay(), [this, report, to = connection_] {
      if (to == connection_) sink_(*report);
    });
  }
}

void Reports::tell(const Event& event) {
  if (!sink_) return;
  timeline_.after(delay(), [this, event, to = connection_] {
    if (to == connection_) sink_(event);
  });
}

void Reports::send_again(AllocationId source) {
  const auto found = lines_.find(source);
  if (found == lines_.end()) return;
  Line& line = found->second;
  line.will_send_again = !line.unacknowledged.empty();
  if (!line.will_send_again) return;
  std::size_t sent = 0;
  for (const auto& report : line.unacknowledged) {
    if (sent++ == sent_again_at_once) break;
    send(line, report);
  }
  timeline_.after(network_.again_after, [this, source] { send_again(source); });
}

void Reports::acknowledge(const ReportStamp& stamp) {
  const auto found = lines_.find(stamp.source);
  if (found == lines_.end()) return;
  Line& line = found->second;
  if (stamp.epoch != line.epoch) return;
  const auto kept = std::find_if(
      line.unacknowledged.begin(), line.unacknowledged.end(),
      [&](const auto& report) { return stamp_of(*report)->sequence > stamp.sequence; });
  line.unacknowledged.erase(line.unacknowledged.begin(), kept);
  if (line.ended && line.unacknowledged.empty()) lines_.erase(found);
}

void Reports::move(AllocationId source, const std::string& node) {
  const auto found = lines_.find(source);
  if (found != lines_.end()) found->second.node = node;
}

std::size_t Reports::waiting() const {
  std::size_t n = 0;
  for (const auto& [source, line] : lines_) n += line.unacknowledged.size();
  return n;
}

}  // namespace neap::simulated
