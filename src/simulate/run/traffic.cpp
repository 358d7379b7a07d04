#include "simulate/run/traffic.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>
#include <variant>

#include "core/model/check.h"
#include "trace/rates.h"

namespace neap::whatif {

namespace {

using trace::Arrival;

constexpr std::int64_t million = 1'000'000;
constexpr std::int64_t highest = 1'000'000'000'000'000'000;
constexpr Micros minute = minutes(1);
constexpr Micros servegen_window = minutes(10);

tl::unexpected<Error> too_long(const std::string& path) {
  return fail(ErrorCode::too_large,
              "expected at most " + std::to_string(most_slots) + " minutes of traffic", path);
}

// The highest value of each minute, of a level that changes in steps and of what is counted.
class Minutes {
 public:
  // The level from `at` on; times never fall. Of several at one time the last counts.
  void set(Time at, std::int64_t level) {
    advance(at);
    level_ = level;
  }
  void count(Time at) {
    advance(at);
    extend(at);
    ++counts_.back();
  }
  [[nodiscard]] bool too_many(Time at) const {
    return begun_ && (at - from_).value / minute.value >= most_slots;
  }
  // Whole slots up to the last change.
  [[nodiscard]] std::vector<std::optional<std::int64_t>> slots(Micros slot) const {
    const std::int64_t each = slot.value / minute.value;
    const std::int64_t whole = (last_ - from_).value / slot.value;
    std::vector<std::optional<std::int64_t>> found(static_cast<std::size_t>(whole), 0);
    for (std::int64_t m = 0; m < whole * each; ++m) {
      auto& offered = found[static_cast<std::size_t>(m / each)];
      offered = std::max(*offered, of_minute(static_cast<std::size_t>(m)));
    }
    return found;
  }
  [[nodiscard]] Time from() const { return from_; }

 private:
  void advance(Time at) {
    if (!begun_) {
      begun_ = true;
      from_ = last_ = at;
    }
    if (at == last_) return;
    extend(at - microseconds(1));
    for (std::size_t m = index_of(last_); m < levels_.size(); ++m) {
      levels_[m] = std::max(levels_[m], level_);
    }
    last_ = at;
  }
  void extend(Time at) {
    levels_.resize(std::max(levels_.size(), index_of(at) + 1), 0);
    counts_.resize(levels_.size(), 0);
  }
  [[nodiscard]] std::size_t index_of(Time at) const {
    return static_cast<std::size_t>((at - from_).value / minute.value);
  }
  // Requests a second, in millionths, rounded up.
  [[nodiscard]] std::int64_t of_minute(std::size_t m) const {
    return std::min(highest, levels_[m] + (counts_[m] * million + 59) / 60);
  }

  bool begun_ = false;
  Time from_, last_;
  std::int64_t level_ = 0;
  std::vector<std::int64_t> levels_, counts_;
};

// What arrivals add up to: requests and rates of all services, and devices that jobs hold.
class Sums {
 public:
  [[nodiscard]] Result<void> add(const Arrival& arrival, const std::string& path) {
    NEAP_CHECK(last_ <= arrival.at);  // streams see to it
    last_ = arrival.at;
    if (requests_.too_many(arrival.at) || devices_.too_many(arrival.at)) {
      return too_long(path);
    }
    std::visit([&](const auto& what) { take(arrival.at, what); }, arrival.what);
    return {};
  }
  [[nodiscard]] Traffic traffic(Micros slot) {
    Minutes& told = any_requests_ ? requests_ : devices_;
    return {any_requests_ ? Traffic::Of::requests : Traffic::Of::devices, told.from(), slot,
            told.slots(slot)};
  }

 private:
  void take(Time at, const trace::RateChange& change) {
    any_requests_ = true;
    std::int64_t& rate = rates_[change.service];
    rate = change.micro_per_second;
    std::int64_t sum = 0;
    for (const auto& [service, each] : rates_)
      sum = std::min(highest, sum + std::min(highest, each));
    requests_.set(at, sum);
  }
  void take(Time at, const trace::RequestArrival&) {
    any_requests_ = true;
    requests_.count(at);
  }
  void take(Time at, const trace::JobArrival& job) {
    end_jobs(at);
    held_ += job.gpus;
    ends_.emplace(at + job.duration, job.gpus);
    devices_.set(at, level());
  }
  void end_jobs(Time until) {
    while (!ends_.empty() && ends_.top().first <= until) {
      held_ -= ends_.top().second;
      devices_.set(ends_.top().first, level());
      ends_.pop();
    }
  }

  [[nodiscard]] std::int64_t level() const { return std::min(held_, highest / million) * million; }

  using End = std::pair<Time, std::int64_t>;
  std::map<std::string, std::int64_t> rates_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::int64_t held_ = 0;  // devices
  Minutes requests_, devices_;
  bool any_requests_ = false;
  Time last_{INT64_MIN};
};

Result<Traffic> of_servegen(const std::string& path, Micros slot) {
  if (slot.value % servegen_window.value != 0) {
    return fail(ErrorCode::invalid_argument,
                "has windows of 600 s; expected slots of 600, 1200, 1800 or 3600 s", path);
  }
  auto bytes = trace::open_bytes(path);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto windows = trace::read_servegen(std::move(*bytes));
  if (!windows) return tl::unexpected(windows.error());
  Traffic traffic{Traffic::Of::requests, {}, slot, {}};
  if (windows->empty()) return traffic;
  traffic.from = windows->front().from;
  const std::int64_t slots =
      (windows->back().from + servegen_window - traffic.from).value / slot.value;
  if (slots > most_slots) {
    return fail(ErrorCode::too_large, "expected at most " + std::to_string(most_slots) + " slots",
                path);
  }
  traffic.offered.resize(static_cast<std::size_t>(slots));
  for (const trace::RateWindow& window : *windows) {
    const std::int64_t index = (window.from - traffic.from).value / slot.value;
    if (index == slots) break;
    auto& offered = traffic.offered[static_cast<std::size_t>(index)];
    offered = std::max(offered.value_or(0), window.micro_per_second);
  }
  return traffic;
}

// How many devices were asked for in each minute.
Result<Traffic> of_helios(const std::string& path, Micros slot) {
  auto bytes = trace::open_bytes(path);
  if (!bytes) return tl::unexpected(bytes.error());
  trace::HeliosReader rows(std::move(*bytes));
  Minutes devices;
  trace::Occupancy row;
  Time last{INT64_MIN};
  while (true) {
    const auto more = rows.next(row);
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    if (row.at < last) {
      return fail(ErrorCode::invalid_argument, "expected rows in the order of time", path);
    }
    last = row.at;
    if (devices.too_many(row.at)) return too_long(path);
    devices.set(row.at, (row.running_gpus + row.pending_gpus) * million);
  }
  devices.set(last == Time(INT64_MIN) ? Time(0) : last + minute, 0);  // each row tells a minute
  return Traffic{Traffic::Of::devices, devices.from(), slot, devices.slots(slot)};
}

Result<Traffic> of_arrivals(const std::string& path, Format format, Micros slot) {
  auto arrivals = open_arrivals(path, format, "service");
  if (!arrivals) return tl::unexpected(arrivals.error());
  Sums sums;
  Arrival arrival;
  while (true) {
    const auto more = (*arrivals)->next(arrival);
    if (!more) return tl::unexpected(more.error());
    if (!*more) return sums.traffic(slot);
    if (auto added = sums.add(arrival, path); !added) return tl::unexpected(added.error());
  }
}

}  // namespace

Result<Traffic> read_traffic(const std::string& path, Format format, Micros slot) {
  if (format == Format::automatic) {
    const auto found = detect_format(path);
    if (!found) return tl::unexpected(found.error());
    format = *found;
  }
  if (format == Format::journal) {
    return fail(ErrorCode::invalid_argument, "expected recorded traffic, not a journal", path);
  }
  auto traffic = format == Format::servegen ? of_servegen(path, slot)
                 : format == Format::helios ? of_helios(path, slot)
                                            : of_arrivals(path, format, slot);
  if (traffic && traffic->offered.empty()) {
    return fail(ErrorCode::invalid_argument, "expected traffic of one slot or more", path);
  }
  return traffic;
}

}  // namespace neap::whatif
