// The rate at which a service finishes requests when it is busy: mu of POLICIES 6. It falls at once
// and recovers 5 % in 10 s, so that a short good moment promises nothing.
#pragma once

#include <optional>

#include "core/model/units.h"

namespace neap::gateway {

class ServiceRate {
 public:
  // Places of the ready replicas over the mean time that a place is taken for (Little's law).
  // `places` changes the rate in proportion at once, up too: a new replica is no good moment.
  void measure(Time at, double places, std::optional<Micros> mean_service);

  [[nodiscard]] double per_second() const { return rate_per_place_ * places_; }  // 0: unknown

 private:
  double rate_per_place_ = 0;
  double places_ = 0;
  Time at_;
};

}  // namespace neap::gateway
