// Recorded training jobs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/model/result.h"
#include "core/model/units.h"
#include "trace/csv.h"

namespace neap::trace {

struct Job {
  std::string name;  // empty where the trace has none
  Time submitted;
  Micros duration;
  std::int32_t gpus = 1;
  std::string group;               // who pays: a user, a virtual cluster
  std::string model;               // of the network, where it is told
  std::optional<Micros> deadline;  // after submission
};

// Philly as the Pollux and Sia artifacts have it: timestamp, duration, num_gpus, cluster. The rows
// are not in the order of time.
class PhillyReader {
 public:
  explicit PhillyReader(Bytes bytes);
  [[nodiscard]] Result<bool> next(Job& into);  // false after the last row

 private:
  CsvReader rows_;
};

// Chronus: jobs with deadlines beside best-effort jobs. Its unit of time is not documented; the
// lengths look like minutes. Rows that ask for no device are passed over.
class ChronusReader {
 public:
  explicit ChronusReader(Bytes bytes, Micros unit = minutes(1));
  [[nodiscard]] Result<bool> next(Job& into);
  [[nodiscard]] std::int64_t passed_over() const { return passed_over_; }

 private:
  [[nodiscard]] Result<bool> next_row(Job& into);

  CsvReader rows_;
  Micros unit_;
  std::int64_t passed_over_ = 0;
};

}  // namespace neap::trace
