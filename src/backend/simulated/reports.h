// The way of reports from supervisors to the daemon: each source numbers what it says, keeps it
// until it is acknowledged and says it again until then. On the way reports are lost, late,
// doubled and overtaken.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "backend/simulated/machines.h"
#include "backend/simulated/random.h"
#include "backend/simulated/timeline.h"
#include "core/model/events.h"

namespace neap::simulated {

struct Network {
  Micros least = milliseconds(1);  // delay of one message, in either direction
  Micros most = milliseconds(1);
  Ppm lost{0};
  Ppm doubled{0};
  Ppm late{0};  // takes up to `latest`
  Micros latest = seconds(20);
  Micros again_after = seconds(3);  // an unacknowledged report is sent again; 0: never
};

class Reports {
 public:
  Reports(Timeline& timeline, const Machines& machines, Network network, Random random);

  // A daemon listens from now on; what was on its way to an earlier one is lost.
  void connect(Backend::Sink sink);
  void disconnect();
  void set_network(const Network& network) { network_ = network; }

  // From `node`, the home of the source's supervisor. `report` gets its stamp here.
  template <class Report>
  void post(AllocationId source, const std::string& node, Report report) {
    Line& line = lines_[source];
    line.node = node;
    report.stamp = {source, line.epoch, line.next++};
    post_stamped(source, line, std::move(report));
  }
  // One that is not numbered: it comes once, or not at all.
  void tell(const Event& event);
  void acknowledge(const ReportStamp& stamp);
  // The supervisor is gone, and with it what it had not delivered.
  void drop(AllocationId source) { lines_.erase(source); }
  // Another supervisor of the same gang speaks for it from now on.
  void move(AllocationId source, const std::string& node);
  [[nodiscard]] Micros delay();
  [[nodiscard]] bool all_acknowledged() const { return lines_.empty() || waiting() == 0; }
  [[nodiscard]] std::size_t waiting() const;

 private:
  struct Line {
    std::string node;
    std::uint32_t epoch = 0;
    std::uint64_t next = 1;
    std::vector<std::shared_ptr<const Event>> unacknowledged;
    bool ended = false;  // its last report is among them
    bool will_send_again = false;
  };
  void post_stamped(AllocationId source, Line& line, Event report);
  void send(const Line& line, const std::shared_ptr<const Event>& report);
  void send_again(AllocationId source);

  Timeline& timeline_;
  const Machines& machines_;
  Network network_;
  Random random_;
  Backend::Sink sink_;
  std::uint64_t connection_ = 0;
  std::unordered_map<AllocationId, Line> lines_;
};

}  // namespace neap::simulated
