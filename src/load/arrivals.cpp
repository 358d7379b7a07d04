#include "load/arrivals.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace neap::load {
namespace {

constexpr double rate_max = 100'000;

double in_seconds(Micros length) { return static_cast<double>(length.value) / 1e6; }

Micros part_of(Micros whole, double part) {
  return Micros(static_cast<std::int64_t>(static_cast<double>(whole.value) * part));
}

}  // namespace

RateCurve::RateCurve(std::vector<Point> points) : points_(std::move(points)) {
  expected_.push_back(0);
  for (std::size_t i = 1; i < points_.size(); ++i) {
    const double width = in_seconds(points_[i].at - points_[i - 1].at);
    const double mean = (points_[i].per_second + points_[i - 1].per_second) / 2;
    expected_.push_back(expected_.back() + width * mean);
  }
}

Result<RateCurve> RateCurve::from_points(std::vector<Point> points) {
  if (points.size() < 2) {
    return fail(ErrorCode::invalid_argument, "a rate curve needs at least two points");
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::string where = "point " + std::to_string(i + 1);
    const Point& point = points[i];
    if (i == 0 ? point.at != Micros(0) : point.at < points[i - 1].at) {
      return fail(ErrorCode::invalid_argument, "times start at 0 and do not fall", where);
    }
    if (!(point.per_second >= 0 && point.per_second <= rate_max)) {
      return fail(ErrorCode::invalid_argument, "expected a rate of 0 to 100000 a second", where);
    }
  }
  if (points.back().at <= Micros(0)) {
    return fail(ErrorCode::invalid_argument, "a rate curve ends after its start");
  }
  return RateCurve(std::move(points));
}

Result<RateCurve> RateCurve::constant(double per_second, Micros length) {
  return from_points({{Micros(0), per_second}, {length, per_second}});
}

double RateCurve::rate_at(Micros at) const {
  if (at < Micros(0) || at > length()) return 0;
  const auto after = std::ranges::upper_bound(points_, at, {}, &Point::at);
  if (after == points_.end()) return points_.back().per_second;
  const Point& left = *std::prev(after);
  const double part = in_seconds(at - left.at) / in_seconds(after->at - left.at);
  return left.per_second + part * (after->per_second - left.per_second);
}

double RateCurve::expected_until(Micros at) const {
  if (at <= Micros(0)) return 0;
  if (at >= length()) return expected_.back();
  const auto after = std::ranges::upper_bound(points_, at, {}, &Point::at);
  const auto index = static_cast<std::size_t>(after - points_.begin()) - 1;
  const double width = in_seconds(at - points_[index].at);
  return expected_[index] + width * (points_[index].per_second + rate_at(at)) / 2;
}

std::optional<Micros> RateCurve::when_expected(double arrivals) const {
  if (arrivals > expected_.back()) return {};
  const auto after = std::ranges::upper_bound(expected_, arrivals);
  // At the very end there is no next point; the last part with any arrivals holds it.
  if (after == expected_.end()) return length();
  const auto index = static_cast<std::size_t>(after - expected_.begin()) - 1;
  const Point& left = points_[index];
  const double width = in_seconds(points_[index + 1].at - left.at);
  const double slope = (points_[index + 1].per_second - left.per_second) / width;
  const double rest = arrivals - expected_[index];
  // rate*t + slope*t²/2 = rest, in the form that stays exact where the slope is small.
  const double root =
      std::sqrt(std::max(0.0, left.per_second * left.per_second + 2 * slope * rest));
  const double divisor = left.per_second + root;
  const double t = divisor > 0 ? std::min(width, 2 * rest / divisor) : 0;
  return left.at + Micros(std::llround(t * 1e6));
}

Result<Day> make_day(const DayShape& shape) {
  // Parts of the day. Before the burst training has had time to get going, and after it there is
  // time for it to come back.
  constexpr double morning = 0.12;
  constexpr double noon = 0.22;
  constexpr double burst = 0.40;
  constexpr double burst_end = 0.66;
  constexpr double evening = 0.72;
  constexpr double night = 0.78;
  const Micros length = shape.length;
  const std::array<std::pair<double, double>, 9> outline{{{0, shape.night_per_second},
                                                          {morning, shape.night_per_second},
                                                          {noon, shape.day_per_second},
                                                          {burst, shape.day_per_second},
                                                          {burst + 0.01, shape.burst_per_second},
                                                          {burst_end, shape.burst_per_second},
                                                          {evening, shape.day_per_second},
                                                          {night, shape.night_per_second},
                                                          {1, shape.night_per_second}}};
  std::vector<RateCurve::Point> points;
  for (const auto& [part, rate] : outline) points.push_back({part_of(length, part), rate});
  Result<RateCurve> curve = RateCurve::from_points(std::move(points));
  if (!curve) return tl::unexpected(curve.error());
  return Day{.curve = std::move(*curve),
             .phases = {{"night", Micros(0)},
                        {"morning", part_of(length, morning)},
                        {"day", part_of(length, noon)},
                        {"burst", part_of(length, burst)},
                        {"evening", part_of(length, burst_end)},
                        {"night", part_of(length, night)}},
             .burst_from = part_of(length, burst),
             .burst_until = part_of(length, burst_end)};
}

const std::string& phase_at(const Day& day, Micros at) {
  const auto after = std::ranges::upper_bound(day.phases, at, {}, &DayPhase::from);
  return after == day.phases.begin() ? day.phases.front().name : std::prev(after)->name;
}

Arrivals::Arrivals(RateCurve curve, std::uint64_t seed, Spacing spacing)
    : curve_(std::move(curve)), random_(seed), spacing_(spacing) {}

std::optional<Micros> Arrivals::next() {
  // Gaps of a Poisson process are exponential in the expected number of arrivals.
  expected_ += spacing_ == Spacing::even ? 1.0 : -std::log(random_.unit());
  return curve_.when_expected(expected_);
}

}  // namespace neap::load
