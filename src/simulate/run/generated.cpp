// Workloads drawn from published statistics, at a load that the cluster is given.
#include <algorithm>
#include <cmath>
#include <utility>

#include "simulate/run/list_stream.h"
#include "simulate/run/source.h"
#include "trace/generate.h"

namespace neap::whatif {

namespace {

using trace::Arrival;
using trace::JobArrival;
using trace::RateChange;

std::vector<Arrival> draw(const Generated& what) {
  constexpr Micros gap = seconds(1);
  std::vector<Arrival> arrivals;
  arrivals.reserve(static_cast<std::size_t>(what.jobs));
  const auto fill = [&](auto generator) {
    while (static_cast<std::int64_t>(arrivals.size()) < what.jobs) {
      Arrival arrival = generator.next();
      // Work that asks for no device is not this pool's.
      if (std::get<JobArrival>(arrival.what).gpus > 0) arrivals.push_back(std::move(arrival));
    }
  };
  if (what.kind == "openb") {
    fill(trace::PodGenerator(gap, hours(1), what.seed));
  } else {
    fill(trace::JobGenerator(gap, what.seed));
  }
  return arrivals;
}

// Moves the arrivals apart until they ask for `load` of the devices while they come.
void stretch(const Generated& what, std::vector<Arrival>& arrivals) {
  double work = 0;  // device·µs
  for (const Arrival& arrival : arrivals) {
    const auto& job = std::get<JobArrival>(arrival.what);
    work += static_cast<double>(job.duration.value) * job.gpus *
            static_cast<double>(job.each.value) / static_cast<double>(whole_device.value);
  }
  const double capacity =
      static_cast<double>(what.devices) * static_cast<double>(what.load.value) / 1e6;
  const double length = std::max<double>(1, static_cast<double>(arrivals.back().at.us));
  const double factor = work / std::max(capacity, 1e-6) / length;
  for (Arrival& arrival : arrivals) {
    arrival.at = Time(std::llround(static_cast<double>(arrival.at.us) * factor));
  }
}

// A service that asks for a fifth of the devices on average, with the day curve of ServeGen.
void add_tide(const Generated& what, std::vector<Arrival>& arrivals) {
  constexpr std::int64_t part = 5;
  if (arrivals.empty()) return;
  const Time end = arrivals.back().at;
  const double mean = static_cast<double>(what.replica_rate_micro) *
                      static_cast<double>(std::max<std::int64_t>(1, what.devices / part));
  for (Time at; at <= end; at = at + minutes(10)) {
    const double rate = mean * trace::RequestGenerator::day_curve(at);
    arrivals.push_back({at, RateChange{what.service, std::llround(rate)}});
  }
}

}  // namespace

const std::vector<std::string>& generator_names() {
  static const std::vector<std::string> names = {"philly", "openb", "tide"};
  return names;
}

std::unique_ptr<ArrivalStream> generate_arrivals(const Generated& what) {
  std::vector<Arrival> arrivals = draw(what);
  stretch(what, arrivals);
  if (what.kind == "tide") add_tide(what, arrivals);
  return std::make_unique<ListStream>(std::move(arrivals));
}

}  // namespace neap::whatif
