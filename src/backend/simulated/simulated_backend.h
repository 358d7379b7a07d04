// The backend of the simulator: carries actions out on simulated machines in virtual time, and
// lets everything go wrong that can go wrong in a real pool.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "backend/simulated/machines.h"
#include "backend/simulated/process.h"
#include "backend/simulated/random.h"
#include "backend/simulated/reports.h"
#include "backend/simulated/timeline.h"

namespace neap::simulated {

class SimulatedBackend : public Backend {
 public:
  SimulatedBackend(Timeline& timeline, Machines& machines, Network network, Random random);

  // The daemon's end. Without one, supervisors and tasks go on and keep what they have to say.
  void connect(Sink sink) { reports_.connect(std::move(sink)); }
  // A crash of the daemon: of the actions on their way, each is lost or not.
  void crash_daemon();

  void carry_out(const Action& action) override;
  void acknowledge(const ReportStamp& stamp) override { reports_.acknowledge(stamp); }

  // Faults. Those of nodes and devices are told to the daemon by whoever watches the machines.
  void lose_node(const std::string& name);
  void reach_node(const std::string& name);  // what waited for the node goes there now
  void fail_device(const std::string& node, std::int32_t index);
  void crash_task(AllocationId allocation, const std::string& why);
  // Its end is durable and nothing more is to come for it: long runs do not grow with it.
  void forget(AllocationId allocation);
  // Ended for good, its processes gone; another task may have its name.
  void forget_task(const std::string& name) { records_.erase(name); }
  void calm(const Network& network);  // liveness: the way is good from now on

  [[nodiscard]] const std::map<std::string, Record>& records() const { return records_; }
  [[nodiscard]] const Process* process(AllocationId allocation) const;
  [[nodiscard]] std::int32_t healthy_replicas(ServiceId service) const;
  [[nodiscard]] std::size_t unacknowledged() const { return reports_.waiting(); }

 private:
  using Sent = std::shared_ptr<const Action>;
  struct Way {         // of actions to one allocation, which keep their order
    std::string node;  // home of the supervisor
    std::vector<std::string> devices;
    Time free_at;            // the last one on its way arrives then
    std::vector<Sent> held;  // for a node that cannot be reached
  };
  void arrive(const Sent& sent);
  void start(std::shared_ptr<const StartTask> sent);
  void end_unstarted(AllocationId allocation);

  Timeline& timeline_;
  Machines& machines_;
  Random random_;
  Reports reports_;
  std::map<std::string, Record> records_;
  Surroundings surroundings_;
  // Loops over them whose order matters go by sorted_keys().
  std::unordered_map<AllocationId, std::shared_ptr<Process>> processes_;
  std::unordered_map<AllocationId, Way> ways_;
  std::set<AllocationId> never_;  // will not be started any more
  std::set<AllocationId> told_;   // of them, those whose end was reported
  std::uint64_t daemon_life_ = 0;
};

}  // namespace neap::simulated
