// How long tasks that have ended held their devices: what remaining durations are drawn from.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/model/state.h"
#include "trace/chance.h"

namespace neap::forecast {

struct Ended {
  Micros held;  // in all its allocations
  TierId tier;
  std::int32_t size_class = 1;
  std::string team;
  std::optional<Micros> declared;
  enum class How : std::uint8_t { finished, otherwise } how = How::finished;
};

// Tasks of one class take about as long: a part of a device, one, up to eight, more.
[[nodiscard]] std::int32_t size_class_of(const Request& request);

// The last 512 tasks that ended. It is not part of the state: it is read from it, now and then.
class History {
 public:
  static constexpr std::size_t kept = 512;
  // So many of a group make it speak for itself; a smaller one is asked together with others.
  static constexpr std::size_t enough = 10;

  // Adds those that ended since the last call and are remembered still. Replicas are left out.
  void read(const PoolState& state);
  void add(Ended ended);
  [[nodiscard]] std::size_t size() const { return last_.size(); }

  // For how long `task`, which has held devices for `held`, will have held them at its end: more
  // than that. Work that was declared is taken at its word, or by the factor that tasks of the
  // team and tier came to; undeclared work is drawn from who ended, of those that took longer.
  [[nodiscard]] Micros draw_total(const TaskState& task, Micros held, trace::Chance& chance) const;

 private:
  using Sorted = std::vector<std::int64_t>;
  struct Group {  // tier 255, class 0 and an empty team stand for all
    std::uint8_t tier = 255;
    std::int32_t size_class = 0;
    std::string team;
    auto operator<=>(const Group&) const = default;
  };
  [[nodiscard]] Micros draw_declared(const TaskState& task, Micros held,
                                     trace::Chance& chance) const;
  [[nodiscard]] Micros draw_undeclared(const TaskState& task, Micros held,
                                       trace::Chance& chance) const;
  void change(const Ended& ended, std::int64_t sign);

  std::deque<Ended> last_;
  std::pair<Time, TaskId> read_to_{Time(-1), TaskId(0)};
  std::map<Group, Sorted> lengths_;  // µs
  std::map<Group, Sorted> factors_;  // held / declared, ppm
};

// Without anything to go by: as long again as it has run, or ten minutes at least, in the middle of
// the draws. The distribution has P(total > x) = base / x, by halves (Pareto, exponent 1), which
// is how the lives of processes are distributed (Harchol-Balter, Downey, SIGMETRICS 1996).
[[nodiscard]] Micros guess_total(Micros held, trace::Chance& chance);

}  // namespace neap::forecast
