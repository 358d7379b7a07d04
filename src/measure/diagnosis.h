// Which resource is fought over (F2, S10): from the signals of one window, all of them together, of
// one workload and its neighbours on the machine. Pure. What was not measured is absent, and
// absent is unknown: it neither speaks for a resource nor against it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/units.h"

namespace neap::measure {

enum class Resource : std::uint8_t {
  none,  // quiet
  cpu,
  memory,  // of the host
  storage,
  network,
  device_memory,
  device_compute,
  own_load,  // slow by what it is asked itself, or by its own limit
};
[[nodiscard]] std::string_view name_of(Resource resource);

// How fast one workload is. Of a service the first four, of training the step time.
struct Speed {
  std::optional<Micros> first_byte_p50{}, first_byte_p99{};
  std::optional<Micros> inter_token_p50{}, inter_token_p99{};
  std::optional<Micros> step{};  // mean
  std::optional<std::int64_t> requests_milli_per_s{};
  std::optional<std::int64_t> waiting{};   // requests in the queue
  std::optional<Ppm> failures{};           // of its requests
  std::optional<Micros> first_byte_slo{};  // what p99 is promised

  bool operator==(const Speed&) const = default;
};

// What one workload took in the window, and what it had to wait for.
struct Use {
  std::optional<std::int64_t> cpu_milli{};  // 1000: one processor
  std::optional<Ppm> cpu_wait{};       // of the time it could run, what it waited for a processor
  std::optional<Ppm> cpu_throttled{};  // of its periods, those cut short by its own quota
  std::optional<std::int64_t> memory_bytes{};
  std::optional<std::int64_t> major_faults_milli_per_s{};  // pages read back from storage
  std::optional<std::int64_t> memory_limit_hits{};         // of its own limit, in the window
  std::optional<std::int64_t> io_bytes_per_s{};            // to and from storage
  std::optional<Ppm> io_wait{};  // of the window, time it waited for storage
  std::optional<std::int64_t> sent_bytes_per_s{};
  std::optional<Ppm> device_use{};  // of its share of device time
};

struct Machine {
  std::optional<std::int64_t> processors_milli{};
  std::optional<Ppm> cpu_busy{};
  std::optional<Ppm> cpu_pressure{};  // PSI "some" of the window
  std::optional<Ppm> memory_pressure{};
  std::optional<Ppm> io_pressure{};
  std::optional<Ppm> memory_available{};
  std::optional<std::int64_t> swapped_pages_per_s{};
  std::optional<Ppm> disk_busy{};      // of the busiest disk
  std::optional<Micros> disk_await{};  // mean time of one of its operations
  std::optional<Ppm> network_use{};    // of the busiest link whose capacity is known
  std::optional<std::int64_t> network_drops_milli_per_s{};
  std::optional<Ppm> device_memory{};   // of the fullest device that the workload shares
  std::optional<Ppm> device_compute{};  // busy part of the busiest one
};

struct Neighbour {
  std::string name{};
  Use use{};
};

// One window.
struct Signals {
  Time from, to;
  Speed speed{};
  Use use{};
  Machine machine{};
  std::vector<Neighbour> neighbours{};
};

// The workload alone under the same load, as `neap baseline` has measured it.
struct Alone {
  Speed speed{};
  Use use{};
  Machine machine{};
};

struct Evidence {
  std::string signal{};  // "waits for a processor"
  std::string unit{};    // "%", "ms", "x alone", "MB/s", …
  double value = 0;
  double limit = 0;  // from which it counts
};

struct Diagnosis {
  Resource resource = Resource::none;
  Ppm confidence{0};  // of the resource named; of quiet too
  // How much slower than alone (1000) or than promised, the worst measure; none: not known.
  std::optional<std::int64_t> slowdown_milli{};
  std::string neighbour{};  // who takes most of the resource; empty: nobody
  std::vector<Evidence> evidence{};
  std::vector<std::string> unknown{};  // signals that would have said more
};

// Limits, in parts of a million unless said. Those of suffering count what the workload itself
// felt; those of saturation what the machine had left. A resource is named when the workload is
// slow (or its speed is not known and it suffers badly), the resource is saturated or it suffers
// of it, and a neighbour takes a part of it.
struct DiagnosisLimits {
  std::int64_t slow_milli = 1300;         // as a multiple of alone
  std::int64_t cpu_wait = 200'000;        // suffering
  std::int64_t cpu_wait_blind = 500'000;  // when its speed is not known
  std::int64_t cpu_busy = 850'000;        // saturation
  std::int64_t neighbour_part = 150'000;  // of what is used of the resource
  std::int64_t faults_milli_per_s = 20'000;
  std::int64_t memory_pressure = 100'000;
  std::int64_t memory_available = 50'000;
  std::int64_t disk_busy = 850'000;
  std::int64_t io_pressure = 200'000;
  std::int64_t io_pressure_blind = 500'000;
  std::int64_t io_wait = 150'000;
  std::int64_t disk_await_times_milli = 3'000;  // of alone
  std::int64_t network_use = 850'000;
  std::int64_t drops_milli_per_s = 10'000;
  std::int64_t device_memory = 950'000;
  std::int64_t device_compute = 950'000;
  std::int64_t throttled = 200'000;
};

[[nodiscard]] Diagnosis diagnose(const Signals& signals, const std::optional<Alone>& alone,
                                 const DiagnosisLimits& limits = {});

// Slower than alone or than promised: 1000 is as fast. None where neither is known.
[[nodiscard]] std::optional<std::int64_t> slowdown_milli(const Speed& speed,
                                                         const std::optional<Alone>& alone);

// "inter-token p50 31.2 ms, waits for a processor 61 %, …"
[[nodiscard]] std::string text_of(const std::vector<Evidence>& evidence);

// A verdict holds once it was the same in `windows` windows on end; one window's is a blip.
class SteadyDiagnosis {
 public:
  SteadyDiagnosis() = default;
  explicit SteadyDiagnosis(int windows) : windows_(windows) {}
  const Diagnosis& add(Diagnosis next);
  [[nodiscard]] const Diagnosis& now() const { return held_; }

 private:
  int windows_ = 3;
  int same_ = 0;
  Diagnosis last_;
  Diagnosis held_;
};

}  // namespace neap::measure
