// A pool driven in steps of ten seconds, whose services have a load and whose replicas take the
// time they are given to load, to warm up and to leave.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/testing/script.h"

namespace neap::testing {

inline constexpr Micros tide_tick = seconds(10);

struct Pace {
  Micros load, leave, warm_up;  // multiples of the tick
};

// What one replica took, as the driver made it.
struct Stay {
  std::string service;
  std::uint32_t version = 0;
  std::string model;
  std::optional<Micros> loaded, left, warmed;
};

class Tides {
 public:
  explicit Tides(Script& script) : script_(script) {}

  std::map<std::string, Pace> pace;                        // by service
  std::map<std::string, std::optional<std::int64_t>> use;  // requests at once; nothing: unknown

  void tick();
  void run(Micros time);

  // Of all replicas that the driver served, in order.
  [[nodiscard]] const std::vector<Stay>& stays() const { return stays_; }
  // When replicas of a service were asked to leave for a lower demand.
  [[nodiscard]] const std::vector<Time>& given(const std::string& service) {
    return given_[service];
  }

 private:
  struct Served {
    std::size_t stay = 0;
    Time placed, ready;
    std::optional<Time> asked;
    bool warm = false;
  };
  void serve(const TaskState& task, const std::string& service);
  [[nodiscard]] bool is_overloaded(ServiceId id);
  void answer(const TaskState& task, Served& served, const Pace& pace);

  Script& script_;
  std::map<TaskId, Served> served_;
  std::vector<Stay> stays_;
  std::map<std::string, std::vector<Time>> given_;
};

}  // namespace neap::testing
