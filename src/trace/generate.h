// Workloads drawn from published statistics, for those who have no trace of their own.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/units.h"
#include "trace/chance.h"
#include "trace/workload.h"

namespace neap::trace {

// Training jobs as those of Microsoft's Philly cluster (Jeon et al., USENIX ATC'19): 93 % ask for
// one device, lengths have a median of 1,144 s and a 95th percentile of 43,600 s.
class JobGenerator {
 public:
  JobGenerator(Micros mean_gap, std::uint64_t seed);
  [[nodiscard]] Arrival next();

 private:
  double mean_gap_us_;
  Chance chance_;
  double now_us_ = 0;
  std::int64_t count_ = 0;
};

// Pods as those of the openb cluster (Weng et al., USENIX ATC'23): 13 % ask for no device, 38 % for
// a part of one, 48 % for one and 1 % for several, with the cores and memory that go with them.
class PodGenerator {
 public:
  PodGenerator(Micros mean_gap, Micros mean_length, std::uint64_t seed);
  [[nodiscard]] Arrival next();

 private:
  double mean_gap_us_;
  double mean_length_us_;
  Chance chance_;
  double now_us_ = 0;
  std::int64_t count_ = 0;
};

// Chat requests as those of Azure's service in November 2023 (Patel et al., ISCA'24): gaps with a
// coefficient of variation of 1.1, median 1,020 tokens in and 129 out. Over a day the rate swings
// as in Alibaba's ServeGen: lowest at 5 h, highest at 20 h, at 2.2 times the lowest.
class RequestGenerator {
 public:
  RequestGenerator(std::string service, double mean_per_second, std::uint64_t seed);
  [[nodiscard]] Arrival next();

  // Of the mean, at a time of the day.
  [[nodiscard]] static double day_curve(Time at);

 private:
  std::string service_;
  double mean_per_second_;
  Chance chance_;
  double now_us_ = 0;
};

}  // namespace neap::trace
