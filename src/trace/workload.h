// neap's own workload format: what arrives, in the order of time, one JSON object a line.
//
//   {"neap_workload":1}
//   {"at_us":0,"kind":"job","name":"j1","gpus":1,"gpu_milli":500,"cpu_milli":4000,
//    "memory_mib":8192,"duration_us":60000000,"group":"vision","models":"T4|P100","deadline_us":9}
//   {"at_us":10,"kind":"request","service":"chat","input_tokens":374,"output_tokens":44}
//   {"at_us":20,"kind":"rate","service":"chat","micro_per_second":5500000}
//
// What is left out has the default of its struct. docs/integrators/traces.md describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "core/model/result.h"
#include "core/model/units.h"
#include "trace/lines.h"

namespace neap::trace {

struct JobArrival {
  std::string name;
  std::int32_t gpus = 1;  // 0: CPU alone
  MilliGpu each = whole_device;
  std::int64_t cpu_milli = 0;
  MiB memory;  // of the host
  Micros duration;
  std::string group;
  std::string models;  // split by '|'; empty: any
  std::optional<Micros> deadline;

  bool operator==(const JobArrival&) const = default;
};

struct RequestArrival {
  std::string service;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;

  bool operator==(const RequestArrival&) const = default;
};

// From now on.
struct RateChange {
  std::string service;
  std::int64_t micro_per_second = 0;  // millionths of a request a second

  bool operator==(const RateChange&) const = default;
};

struct Arrival {
  Time at;
  std::variant<JobArrival, RequestArrival, RateChange> what;

  bool operator==(const Arrival&) const = default;
};

class WorkloadReader {
 public:
  explicit WorkloadReader(Bytes bytes);
  [[nodiscard]] Result<bool> next(Arrival& into);  // false after the last

 private:
  [[nodiscard]] Result<void> read_first_line();

  LineReader lines_;
  bool begun_ = false;
  Time last_;
};

// The line that comes first, and the line of an arrival; without line ends.
[[nodiscard]] std::string workload_header();
[[nodiscard]] std::string line_of(const Arrival& arrival);

}  // namespace neap::trace
