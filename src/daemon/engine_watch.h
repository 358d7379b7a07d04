// Reads the counters of the engines behind services, every few seconds, from a thread of its own:
// tokens a second and the gaps between tokens, which no proxy can see.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/latency.h"
#include "core/model/units.h"
#include "measure/engine_metrics.h"

namespace neap::daemon {

class EngineWatch {
 public:
  struct Replica {
    std::string service;
    AllocationId allocation;
    std::uint16_t port = 0;
  };

  static constexpr std::size_t replicas_max = 512;  // that are asked

  EngineWatch(std::function<std::vector<Replica>()> replicas, std::function<Time()> now)
      : replicas_(std::move(replicas)), now_(std::move(now)) {}
  ~EngineWatch() { stop(); }

  void start();
  void stop();
  // One round; called by the thread.
  void look();

  // Gaps between tokens in the last `span`, over all its replicas; none: too few, or none tells.
  struct Gaps {
    std::optional<Micros> p50, p99;
  };
  [[nodiscard]] Gaps gaps(const std::string& service, Micros span) const;
  [[nodiscard]] api::EngineRow row(const std::string& service) const;

 private:
  struct Reading {
    Time at;
    measure::EngineCounters counters;
  };
  struct Engine {
    Replica replica;
    std::deque<Reading> readings;  // of the last minutes, oldest first
    Time ask_at;                   // later where there are no such counters
  };

  void note(AllocationId allocation, std::optional<measure::EngineCounters> counters);

  std::function<std::vector<Replica>()> replicas_;
  std::function<Time()> now_;
  mutable std::mutex mutex_;
  std::map<AllocationId, Engine> engines_;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace neap::daemon
