// A whole site in virtual time: machines and their watchers, the backend, a daemon that may
// crash, people who ask for things, the load of services.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backend/simulated/behaviour.h"
#include "backend/simulated/machines.h"
#include "backend/simulated/random.h"
#include "backend/simulated/simulated_backend.h"
#include "backend/simulated/timeline.h"
#include "tests/sim/daemon.h"
#include "tests/sim/invariants.h"

namespace neap::sim {

// How many requests a service has in use at a moment; nothing: no metrics reach the pool.
using Load = std::function<std::optional<std::int64_t>(Time)>;

class Site {
 public:
  struct Options {
    std::uint64_t seed = 1;
    simulated::Network network;
    CrashPlan crashes;
    Micros watch_least = milliseconds(100);  // from a change of a machine to its report
    Micros watch_most = seconds(2);
    Micros sample_every = seconds(60);  // of the load of services
  };
  explicit Site(const Options& options);

  // Boots the daemon with this pool; all nodes join.
  void open(const PoolSpec& pool, const std::vector<NodeSpec>& nodes);

  // People. What is asked is asked again until it is durable or refused.
  void submit(const TaskSpec& task);
  void submit(const ServiceSpec& service, Load load);
  void ask(const Event& request);
  [[nodiscard]] bool was_refused(const std::string& name) const { return refused_.contains(name); }

  // What goes wrong with machines; the watcher tells the daemon a little later.
  void fail_device(const std::string& node, std::int32_t index);
  void repair_device(const std::string& node, std::int32_t index);
  void set_foreign_memory(const std::string& node, std::int32_t index, MiB used);
  void cut_node(const std::string& node);  // unreachable; it goes on by itself
  void reconnect_node(const std::string& node);
  void lose_node(const std::string& node);    // gone, with all that ran there
  void return_node(const std::string& node);  // once its loss is in the books
  void calm();                                // nothing goes wrong from here on

  // False: an invariant is broken, or the clock would pass `end` with too many events.
  bool run_until(Time end);
  bool run_for(Micros span) { return run_until(timeline_.now() + span); }
  // Until `reached` holds, looked at after every happening, or `end`.
  bool run_until(Time end, const std::function<bool()>& reached);

  [[nodiscard]] Time now() const { return timeline_.now(); }
  [[nodiscard]] simulated::Random& random() { return random_; }
  [[nodiscard]] simulated::Timeline& timeline() { return timeline_; }
  [[nodiscard]] simulated::Machines& machines() { return machines_; }
  [[nodiscard]] simulated::SimulatedBackend& backend() { return backend_; }
  [[nodiscard]] Daemon& daemon() { return daemon_; }
  [[nodiscard]] const std::map<std::string, simulated::Record>& records() const {
    return backend_.records();
  }
  [[nodiscard]] const PoolState& state() const { return daemon_.state(); }
  [[nodiscard]] Invariants& invariants() { return invariants_; }
  // Of the newest task of this name; nullptr when there is none.
  [[nodiscard]] const TaskState* task(const std::string& name) const;
  [[nodiscard]] const ServiceState* service(const std::string& name) const;

 private:
  void watch_soon();
  void watch();
  void watch_again();
  void watch_node(const std::string& name, const simulated::Machines::Node& node);
  void sample(const std::string& service);

  Options options_;
  simulated::Random random_;
  simulated::Timeline timeline_;
  simulated::Machines machines_;
  simulated::SimulatedBackend backend_;
  Invariants invariants_;
  Daemon daemon_;
  std::map<std::string, Load> loads_;
  std::map<std::string, bool> refused_;
  bool calm_ = false;
};

}  // namespace neap::sim
