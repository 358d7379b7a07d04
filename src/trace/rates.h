// Request rates over days, by client, and occupancy of clusters by the minute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "trace/csv.h"

namespace neap::trace {

// How the times between requests are distributed within a window.
enum class Arrivals : std::uint8_t { untold, gamma, weibull };

struct Rate {
  Time from;              // of the window
  double per_second = 0;  // requests
  double variation = 0;   // coefficient of variation of the times between requests
  Arrivals arrivals = Arrivals::untold;
  double first = 0;  // the two parameters of the distribution
  double second = 0;
};

// ServeGen: one client a file, without a header: start in s, rate, cv, pattern, two parameters.
class ServeGenReader {
 public:
  explicit ServeGenReader(Bytes bytes);
  [[nodiscard]] Result<bool> next(Rate& into);  // false after the last row

 private:
  CsvReader rows_;
};

struct RateWindow {
  Time from;
  double per_second = 0;  // of all clients
  // The sum of what each client's rate is when it is rounded to millionths: the same on every
  // machine, in any order of the clients.
  std::int64_t micro_per_second = 0;
};

// The sum over the client files of a ServeGen archive (tar, with or without gzip), by window.
// `suffix` picks the files, such as "-trace.csv".
[[nodiscard]] Result<std::vector<RateWindow>> read_servegen(Bytes archive,
                                                            std::string_view suffix = "-trace.csv");

// Helios: a virtual cluster once a minute.
struct Occupancy {
  Time at;
  std::int64_t gpus = 0;
  std::int64_t running_gpus = 0;
  std::int64_t pending_gpus = 0;
  std::int64_t running_jobs = 0;
  std::int64_t pending_jobs = 0;
};

class HeliosReader {
 public:
  explicit HeliosReader(Bytes bytes);
  [[nodiscard]] Result<bool> next(Occupancy& into);

 private:
  CsvReader rows_;
};

}  // namespace neap::trace
