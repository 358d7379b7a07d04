// Recorded and generated workloads as one stream of arrivals in the order of time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "trace/workload.h"

namespace neap::whatif {

enum class Format : std::uint8_t {
  automatic,
  neap,
  openb,
  philly,
  chronus,
  helios,
  azure,
  mooncake,
  servegen,
  journal
};
[[nodiscard]] const std::vector<std::string>& format_names();  // "auto" first
[[nodiscard]] std::optional<Format> format_named(std::string_view name);
// By what the file holds, never by its name. A folder is that of a daemon's state.
[[nodiscard]] Result<Format> detect_format(const std::string& path);

class ArrivalStream {
 public:
  ArrivalStream() = default;
  ArrivalStream(const ArrivalStream&) = delete;
  ArrivalStream& operator=(const ArrivalStream&) = delete;
  virtual ~ArrivalStream() = default;
  [[nodiscard]] virtual Result<bool> next(trace::Arrival& into) = 0;  // false after the last
  [[nodiscard]] virtual std::optional<std::int64_t> total() const { return {}; }
  [[nodiscard]] virtual std::int64_t passed_over() const { return 0; }
};

// Any format but automatic and journal. What has no order of time in its file is kept in memory;
// the others are read as they are needed. Requests without a service's name are of `service`.
[[nodiscard]] Result<std::unique_ptr<ArrivalStream>> open_arrivals(const std::string& path,
                                                                   Format format,
                                                                   const std::string& service);

struct Generated {
  std::string kind;  // one of generator_names()
  std::int64_t jobs = 2'000;
  Ppm load{800'000};         // of the devices, asked for by the jobs while they arrive
  std::int64_t devices = 1;  // of the cluster
  std::uint64_t seed = 1;
  std::string service;                  // of "tide"
  std::int64_t replica_rate_micro = 0;  // requests a second that one replica serves, millionths
};
[[nodiscard]] const std::vector<std::string>& generator_names();
[[nodiscard]] std::unique_ptr<ArrivalStream> generate_arrivals(const Generated& what);

}  // namespace neap::whatif
