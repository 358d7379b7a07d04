// What the requests of each service were, as windows of the last minute, five minutes and hour: by
// service, and within it by priority class, team and model. And how fast each service uses up what
// its SLO allows to go wrong. Bounded: histograms within 1 %, so many series, the rest together.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/model/units.h"
#include "measure/histogram.h"
#include "measure/sparse_histogram.h"

namespace neap::measure {

// One request that has ended. Names are "" where there is none.
struct RequestSeen {
  Time ended;
  std::string priority_class;
  std::string team;
  std::string model;
  enum class End : std::uint8_t {
    good,         // complete, status 2xx or 3xx
    failed,       // status 5xx, or cut off by the replica
    shed,         // status 429: turned away by a limit
    bad_request,  // any other status 4xx
    left,         // the client went away
  } end = End::good;
  Micros queued{0};
  std::int64_t first_byte_us = -1;  // queue included; -1: no body came
  Micros total{0};
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
};

struct WindowTotals {
  std::uint64_t requests = 0;
  std::uint64_t good = 0, failed = 0, shed = 0, bad_requests = 0, left = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  Histogram queued;      // of all that were not shed
  Histogram first_byte;  // of good ones with a body, and of those that the client left after it
  Histogram total;       // of good ones
};

// What a service promises: so many of the requests that were admitted are good, and their first
// byte comes in time.
struct Objective {
  Micros first_byte{0};  // 0: any good answer is in time
  Ppm part{990'000};
};

// Multi-window burn rate alarms (Google, "The Site Reliability Workbook", chapter 5): the part of
// requests that went wrong, as a multiple of what the objective allows. An alarm needs both
// windows: the long one says that it matters, the short one that it goes on.
struct BurnRule {
  Micros long_window;
  Micros short_window;
  std::int64_t limit_milli;
};
inline constexpr BurnRule fast_burn{hours(1), minutes(5), 14'400};
inline constexpr BurnRule slow_burn{hours(6), minutes(30), 6'000};

struct Burn {
  std::int64_t long_milli = 0;  // 1000: just as fast as the objective allows; -1: too few requests
  std::int64_t short_milli = 0;
  bool alarm = false;
};
struct BurnReport {
  Burn fast;
  Burn slow;
};

enum class Dimension : std::uint8_t { whole, priority_class, team, model };
inline constexpr std::size_t dimension_count = 4;

struct SeriesReport {
  Dimension dimension = Dimension::whole;
  std::string name;  // "" of the whole
  std::array<WindowTotals, 3> windows;
};

inline constexpr std::array<Micros, 3> report_windows{seconds(60), minutes(5), hours(1)};

class LatencyBook {
 public:
  static constexpr std::size_t names_max = 64;            // of one dimension of a service
  static constexpr const char* others = "(others)";       // what is beyond
  static constexpr std::uint64_t burn_requests_min = 20;  // in the short window

  void add(const std::string& service, const RequestSeen& request);
  // By dimension and name; the whole first. Empty when nothing is known of the service.
  [[nodiscard]] std::vector<SeriesReport> report(const std::string& service, Time now) const;
  [[nodiscard]] BurnReport burn(const std::string& service, const Objective& objective,
                                Time now) const;
  // Since the book began, whatever windows say.
  [[nodiscard]] std::uint64_t requests(const std::string& service) const;
  void forget(const std::string& service) { services_.erase(service); }

 private:
  struct Slice {
    std::int64_t number = -1;  // ended / length
    std::uint64_t good = 0, failed = 0, shed = 0, bad_requests = 0, left = 0;
    std::uint64_t bytes_in = 0, bytes_out = 0;
    SparseHistogram queued, first_byte, total;

    void add(const RequestSeen& request);
    void add_to(WindowTotals& totals) const;
  };

  // The newest slices of one length.
  class Tier {
   public:
    Tier(Micros slice, std::size_t slices) : slice_(slice), ring_(slices) {}
    void add(const RequestSeen& request);
    // Of the last `length` before now, rounded up to whole slices.
    void add_to(WindowTotals& totals, Time now, Micros length) const;

   private:
    Micros slice_;
    std::int64_t newest_ = -1;
    std::vector<Slice> ring_;
  };

  struct Series {
    std::array<Tier, 3> tiers{Tier(seconds(5), 13), Tier(seconds(30), 11), Tier(minutes(5), 13)};
    void add(const RequestSeen& request);
  };

  struct Service {
    std::uint64_t requests = 0;
    std::map<std::pair<Dimension, std::string>, Series> series;
    std::array<std::size_t, dimension_count> names{};
    Tier half_hour{minutes(1), 31};
    Tier six_hours{minutes(10), 37};

    void add_named(Dimension dimension, const std::string& name, const RequestSeen& request);
  };

  std::map<std::string, Service> services_;
};

[[nodiscard]] const char* name_of(Dimension dimension);

}  // namespace neap::measure
