#include "gateway/service_rate.h"

#include <algorithm>
#include <cmath>

namespace neap::gateway {

void ServiceRate::measure(Time at, double places, std::optional<Micros> mean_service) {
  places_ = places;
  const double passed = std::max(0.0, static_cast<double>((at - at_).value) / 1e6);
  if (mean_service && *mean_service > Micros(0)) {
    const double measured = 1e6 / static_cast<double>(mean_service->value);
    const double recovered = rate_per_place_ * std::pow(1.05, passed / 10);
    rate_per_place_ = rate_per_place_ > 0 ? std::min(measured, recovered) : measured;
    at_ = at;
  }
}

}  // namespace neap::gateway
