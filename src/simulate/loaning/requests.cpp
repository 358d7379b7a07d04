#include "simulate/loaning/requests.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <queue>

#include "trace/chance.h"

namespace neap::loaning {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

Micros length_of(double length_s) {
  return Micros(static_cast<std::int64_t>(std::llround(length_s * 1e6)));
}

struct Cost {
  double input = 0, whole = 0;  // in input tokens
};

// Requests of a window in the order in which they come, and what becomes of them.
class Window {
 public:
  struct Given {
    const Workload& workload;
    std::span<const ReadyChange> ready;
    std::span<const Cost> costs;
    const ReplayOptions& options;
    double unit_s = 0;  // an input token on an idle replica
  };
  Window(const Given& given, std::int64_t from_s, trace::Chance chance)
      : given_(given),
        counted_from_s_(static_cast<double>(from_s + given.options.warm_s)),
        end_s_(counted_from_s_ + static_cast<double>(given.options.window_s)),
        now_s_(static_cast<double>(from_s)),
        chance_(chance) {
    while (next_change_ < given.ready.size() && given.ready[next_change_].at_s <= now_s_) {
      slots_ = slots_at(next_change_++);
    }
  }

  Latencies run() {
    for (double arrival_s = next_arrival(now_s_); arrival_s < end_s_;
         arrival_s = next_arrival(arrival_s)) {
      advance(arrival_s);
      waiting_.push_back({arrival_s, given_.costs[chance_.below(given_.costs.size())]});
      serve();
    }
    // Those that still wait are not left out of the figures.
    while (!waiting_.empty()) {
      const double next_s = next_happening();
      const double given_up_s = waiting_.front().arrival_s + given_.options.patience_s;
      advance(std::min(next_s, given_up_s));
      if (next_s >= given_up_s) expire();
    }
    return std::move(found_);
  }

 private:
  struct Waiting {
    double arrival_s = 0;
    Cost cost;
  };

  [[nodiscard]] std::int64_t slots_at(std::size_t change) const {
    return std::int64_t{given_.ready[change].ready} * given_.options.slots;
  }

  // Poisson within each minute; a minute's rate ends with it.
  double next_arrival(double after_s) {
    double at_s = after_s;
    while (true) {
      const auto minute = static_cast<std::int64_t>(at_s / 60);
      const double minute_end_s = static_cast<double>(minute + 1) * 60;
      const double rate = static_cast<double>(given_.workload.demand_at(minute * 60)) /
                          double{demand_unit} * given_.options.per_device;
      if (rate > 0) {
        const double next_s = at_s - std::log1p(-chance_.unit()) / rate;
        if (next_s < minute_end_s) return next_s;
      }
      at_s = minute_end_s;
      if (at_s >= end_s_) return at_s;
    }
  }

  [[nodiscard]] double next_happening() const {
    const double change_s =
        next_change_ < given_.ready.size() ? given_.ready[next_change_].at_s : never;
    return std::min(change_s, ends_.empty() ? never : ends_.top());
  }

  void advance(double to_s) {
    for (double next_s = next_happening(); next_s <= to_s; next_s = next_happening()) {
      now_s_ = next_s;
      if (!ends_.empty() && ends_.top() <= next_s) {
        ends_.pop();
      } else {
        slots_ = slots_at(next_change_++);
      }
      serve();
    }
    now_s_ = to_s;
  }

  // Replicas that leave end what they have begun; nothing begins until a slot is free.
  void serve() {
    while (!waiting_.empty() && static_cast<std::int64_t>(ends_.size()) < slots_) {
      const Waiting next = waiting_.front();
      if (now_s_ - next.arrival_s > given_.options.patience_s) {
        expire();
        continue;
      }
      waiting_.pop_front();
      const double busy = static_cast<double>(ends_.size() + 1) / static_cast<double>(slots_);
      const double token_s = given_.unit_s * (1 + (given_.options.slowest - 1) * busy);
      ends_.push(now_s_ + next.cost.whole * token_s);
      if (next.arrival_s < counted_from_s_) continue;
      const double queued_s = now_s_ - next.arrival_s;
      found_.first_byte.record(length_of(queued_s + next.cost.input * token_s));
      found_.total.record(length_of(queued_s + next.cost.whole * token_s));
      ++found_.requests;
    }
  }

  void expire() {
    if (waiting_.front().arrival_s >= counted_from_s_) {
      ++found_.requests;
      ++found_.expired;
      found_.first_byte.record(length_of(given_.options.patience_s));
      found_.total.record(length_of(given_.options.patience_s));
    }
    waiting_.pop_front();
  }

  const Given& given_;
  double counted_from_s_, end_s_;
  double now_s_;
  trace::Chance chance_;
  std::size_t next_change_ = 0;
  std::int64_t slots_ = 0;
  std::deque<Waiting> waiting_;
  std::priority_queue<double, std::vector<double>, std::greater<>> ends_;
  Latencies found_;
};

}  // namespace

void Latencies::merge(const Latencies& other) {
  first_byte.merge(other.first_byte);
  total.merge(other.total);
  requests += other.requests;
  expired += other.expired;
}

Replayed replay_requests(const Workload& workload, std::span<const ReadyChange> ready,
                         std::span<const trace::Request> lengths, const ReplayOptions& options) {
  std::vector<Cost> costs;
  double mean = 0;
  for (const trace::Request& each : lengths) {
    const auto input = static_cast<double>(std::max<std::int64_t>(1, each.input_tokens));
    costs.push_back({input, input + options.decode_cost * static_cast<double>(each.output_tokens)});
    mean += costs.back().whole / static_cast<double>(lengths.size());
  }
  const double full_s = options.slots / options.per_device;  // of the mean request
  const Window::Given given{workload, ready, costs, options, full_s / mean / options.slowest};
  Replayed replayed;
  for (std::int64_t from_s = scored_from_s;
       from_s + options.warm_s + options.window_s <= scored_to_s; from_s += options.every_s) {
    // The same requests to all policies.
    const auto drawn = options.seed * 1'000'003 + static_cast<std::uint64_t>(from_s);
    const Latencies found = Window(given, from_s, trace::Chance(drawn)).run();
    const auto p99 = [](const Latencies& each) { return each.first_byte.percentiles().p99; };
    if (found.requests > 0 && p99(found) >= p99(replayed.worst)) replayed.worst = found;
    replayed.all.merge(found);
  }
  return replayed;
}

}  // namespace neap::loaning
