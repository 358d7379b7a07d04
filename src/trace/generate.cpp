#include "trace/generate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace neap::trace {

namespace {

constexpr double normal_95 = 1.6448536;  // 95th percentile of the normal distribution
constexpr double day_us = 86'400e6;

double exponential(Chance& chance, double mean) { return -mean * std::log1p(-chance.unit()); }

// Box and Muller.
double normal(Chance& chance) {
  const double radius = std::sqrt(-2 * std::log1p(-chance.unit()));
  return radius * std::cos(2 * std::numbers::pi * chance.unit());
}

struct LogNormal {
  double median;
  double percentile_95;

  [[nodiscard]] double draw(Chance& chance) const {
    const double sigma = std::log(percentile_95 / median) / normal_95;
    return median * std::exp(sigma * normal(chance));
  }
};

template <class T>
struct Weighted {
  int weight;
  T value;
};

template <class T, std::size_t N>
const T& pick(Chance& chance, const std::array<Weighted<T>, N>& choices) {
  int sum = 0;
  for (const auto& choice : choices) sum += choice.weight;
  auto left = static_cast<int>(chance.below(static_cast<std::uint64_t>(sum)));
  for (const auto& choice : choices) {
    left -= choice.weight;
    if (left < 0) return choice.value;
  }
  return choices.back().value;
}

Time at(double us) { return Time(static_cast<std::int64_t>(us)); }
Micros length(double us) {
  return Micros(static_cast<std::int64_t>(std::clamp(us, 1.0, 365.0 * day_us)));
}

// Devices of a Philly job, in thousandths of all jobs.
constexpr std::array<Weighted<std::int32_t>, 5> philly_sizes = {
    {{932, 1}, {22, 2}, {23, 4}, {20, 8}, {3, 16}}};

struct PodShape {
  std::int32_t gpus;
  std::int32_t each;
  std::int32_t cpu;
  std::int32_t memory;
};

// The openb cluster's: 13.3 % CPU alone, 37.8 % shared, 48.0 % one device, 0.9 % several.
constexpr std::array<Weighted<PodShape>, 16> openb_pods = {{{79, {0, 0, 8'000, 16'384}},
                                                            {54, {0, 0, 32'000, 65'536}},
                                                            {132, {1, 810, 3'152, 12'288}},
                                                            {92, {1, 470, 11'908, 16'384}},
                                                            {31, {1, 650, 11'908, 16'384}},
                                                            {40, {1, 320, 4'000, 8'192}},
                                                            {40, {1, 460, 6'000, 12'288}},
                                                            {43, {1, 230, 4'000, 8'192}},
                                                            {210, {1, 1000, 11'400, 32'768}},
                                                            {120, {1, 1000, 4'000, 16'384}},
                                                            {90, {1, 1000, 8'000, 24'576}},
                                                            {60, {1, 1000, 18'708, 65'536}},
                                                            {2, {2, 1000, 16'000, 65'536}},
                                                            {2, {4, 1000, 32'000, 131'072}},
                                                            {3, {8, 1000, 64'000, 262'144}},
                                                            {2, {8, 1000, 88'000, 327'680}}}};

}  // namespace

JobGenerator::JobGenerator(Micros mean_gap, std::uint64_t seed)
    : mean_gap_us_(static_cast<double>(mean_gap.value)), chance_(seed) {}

Arrival JobGenerator::next() {
  constexpr LogNormal lengths_s{1'144, 43'600};
  now_us_ += exponential(chance_, mean_gap_us_);
  JobArrival job;
  job.name = "job-" + std::to_string(count_++);
  job.gpus = pick(chance_, philly_sizes);
  job.duration = length(lengths_s.draw(chance_) * 1e6);
  return {at(now_us_), std::move(job)};
}

PodGenerator::PodGenerator(Micros mean_gap, Micros mean_length, std::uint64_t seed)
    : mean_gap_us_(static_cast<double>(mean_gap.value)),
      mean_length_us_(static_cast<double>(mean_length.value)),
      chance_(seed) {}

Arrival PodGenerator::next() {
  now_us_ += exponential(chance_, mean_gap_us_);
  const PodShape& shape = pick(chance_, openb_pods);
  JobArrival job;
  job.name = "pod-" + std::to_string(count_++);
  job.gpus = shape.gpus;
  job.each = MilliGpu(shape.each);
  job.cpu_milli = shape.cpu;
  job.memory = MiB(shape.memory);
  job.duration = length(exponential(chance_, mean_length_us_));
  return {at(now_us_), std::move(job)};
}

RequestGenerator::RequestGenerator(std::string service, double mean_per_second, std::uint64_t seed)
    : service_(std::move(service)), mean_per_second_(mean_per_second), chance_(seed) {}

double RequestGenerator::day_curve(Time moment) {
  // Two half cosines: fifteen hours up, nine hours down.
  constexpr double peak_h = 20, lowest_h = 5, swing = 0.376;
  const double hour = std::fmod(static_cast<double>(moment.us), day_us) / 3'600e6;
  const double since_lowest = std::fmod(hour - lowest_h + 24, 24.0);
  constexpr double climb_h = peak_h - lowest_h;
  const double phase = since_lowest <= climb_h
                           ? since_lowest / climb_h * std::numbers::pi
                           : std::numbers::pi * (1 + (since_lowest - climb_h) / (24 - climb_h));
  return 1 - swing * std::cos(phase);
}

Arrival RequestGenerator::next() {
  constexpr double weibull_shape = 0.91;  // coefficient of variation 1.10
  constexpr LogNormal input{1'020, 4'083}, output{129, 451};
  const double mean_us = 1e6 / (mean_per_second_ * day_curve(at(now_us_)));
  const double scale = mean_us / std::tgamma(1 + 1 / weibull_shape);
  now_us_ += scale * std::pow(-std::log1p(-chance_.unit()), 1 / weibull_shape);
  RequestArrival request;
  request.service = service_;
  request.input_tokens = std::clamp<std::int64_t>(std::llround(input.draw(chance_)), 1, 100'000);
  request.output_tokens = std::clamp<std::int64_t>(std::llround(output.draw(chance_)), 1, 10'000);
  return {at(now_us_), std::move(request)};
}

}  // namespace neap::trace
