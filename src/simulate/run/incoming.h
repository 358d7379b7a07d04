// What a what-if run is fed with, in the order of time: jobs, services and their load.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "core/model/result.h"
#include "core/model/spec.h"
#include "core/model/units.h"

namespace neap::whatif {

// A training job as the pool gets to know it, and what the pool does not know: how long it works.
struct JobIncoming {
  TaskSpec spec;
  Micros duration;
  std::optional<Micros> deadline;  // after arrival
};

struct ServiceIncoming {
  ServiceSpec spec;
};

// From now on so much is asked of a service.
struct LoadIncoming {
  std::string service;
  // In thousandths of what one replica serves at once; the pool sees it as requests in use.
  std::int64_t in_use_milli = 0;
};

struct ServiceLeaving {
  std::string service;
};

struct Incoming {
  Time at;  // since midnight (UTC) before the first arrival
  std::variant<JobIncoming, ServiceIncoming, LoadIncoming, ServiceLeaving> what;
};

// One after the other, never back in time; false after the last.
class IncomingStream {
 public:
  IncomingStream() = default;
  IncomingStream(const IncomingStream&) = delete;
  IncomingStream& operator=(const IncomingStream&) = delete;
  virtual ~IncomingStream() = default;
  [[nodiscard]] virtual Result<bool> next(Incoming& into) = 0;
  // Jobs in all, where that is known before the end.
  [[nodiscard]] virtual std::optional<std::int64_t> total() const = 0;
  // Rows that are no job for this pool, such as pods without devices.
  [[nodiscard]] virtual std::int64_t passed_over() const = 0;
};

}  // namespace neap::whatif
