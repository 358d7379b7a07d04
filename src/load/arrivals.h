// When requests arrive: a rate over time, straight lines between points, and Poisson arrivals
// along it. Open loop: arrivals never wait for answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "load/random.h"

namespace neap::load {

class RateCurve {
 public:
  struct Point {
    Micros at;
    double per_second = 0;
  };

  // At least two points, times that do not fall (two at one time are a jump), rates of 0 to
  // 100,000 a second, the first at 0; the last is the end.
  [[nodiscard]] static Result<RateCurve> from_points(std::vector<Point> points);
  [[nodiscard]] static Result<RateCurve> constant(double per_second, Micros length);

  [[nodiscard]] Micros length() const { return points_.back().at; }
  [[nodiscard]] double rate_at(Micros at) const;
  // Expected number of arrivals before a moment.
  [[nodiscard]] double expected_until(Micros at) const;
  // The moment by which so many arrivals are expected; none when the curve ends before.
  [[nodiscard]] std::optional<Micros> when_expected(double arrivals) const;

 private:
  explicit RateCurve(std::vector<Point> points);

  std::vector<Point> points_;
  std::vector<double> expected_;  // before each point
};

// A day of demand, compressed: a night, a morning that rises, a burst within it, an evening that
// falls, a night again.
struct DayShape {
  Micros length = seconds(120);
  double night_per_second = 1;
  double day_per_second = 2;
  double burst_per_second = 6;
};

struct DayPhase {
  std::string name;
  Micros from;
};

struct Day {
  RateCurve curve;
  std::vector<DayPhase> phases;  // from the first, in order
  Micros burst_from;
  Micros burst_until;
};

[[nodiscard]] Result<Day> make_day(const DayShape& shape);
[[nodiscard]] const std::string& phase_at(const Day& day, Micros at);

enum class Spacing : std::uint8_t {
  poisson,
  even,  // one by one, as far apart as the rate says
};

class Arrivals {
 public:
  Arrivals(RateCurve curve, std::uint64_t seed, Spacing spacing = Spacing::poisson);

  // The next arrival, none after the end of the curve.
  [[nodiscard]] std::optional<Micros> next();

 private:
  RateCurve curve_;
  Random random_;
  Spacing spacing_;
  double expected_ = 0;
};

}  // namespace neap::load
