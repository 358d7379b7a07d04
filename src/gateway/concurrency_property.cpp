// E1: a replica in virtual time whose answers get slower with what it is given. Whatever it is
// like, its limit stays within bounds, comes near what it can do within the target, and is back
// below that soon after the replica got slower.
#include "gateway/concurrency.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace neap::gateway {
namespace {

// Answers take `base` as long as there are no more requests than cores, and grow with them beyond.
struct Model {
  Micros base;
  std::int32_t cores;

  [[nodiscard]] Micros first_byte(std::int32_t at_once) const {
    return base * std::max(at_once, cores) / cores;
  }
  // The most requests at once that are answered within the target.
  [[nodiscard]] std::int32_t fits(Micros target) const {
    return static_cast<std::int32_t>(target.value * cores / base.value);
  }
};

// Never falls: what a controller without its other half would do.
class NeverFalls {
 public:
  explicit NeverFalls(ConcurrencyBounds bounds) : control_(bounds) {}
  void look(ConcurrencyEvidence evidence) {
    if (evidence.first_byte_p95) evidence.first_byte_p95 = Micros(1);
    control_.look(evidence);
  }
  [[nodiscard]] std::int32_t limit() const { return control_.limit(); }

 private:
  ConcurrencyControl control_;
};

// Never rises.
class NeverRises {
 public:
  explicit NeverRises(ConcurrencyBounds bounds) : control_(bounds) {}
  void look(ConcurrencyEvidence evidence) {
    evidence.queue = false;
    control_.look(evidence);
  }
  [[nodiscard]] std::int32_t limit() const { return control_.limit(); }

 private:
  ConcurrencyControl control_;
};

struct Outcome {
  bool within_bounds = true;
  bool used = true;       // at least half of what fits, or of what is declared
  bool back_soon = true;  // at most a quarter above what fits, 20 s after it got slower
};

template <class Control>
Outcome overload(ConcurrencyBounds bounds, Model before, Model after) {
  Control control(bounds);
  Outcome outcome;
  std::int64_t now = 0;
  const auto run = [&](const Model& model, int seconds_long) {
    for (int i = 0; i < seconds_long; ++i) {
      ++now;
      control.look({.at = Time(0) + seconds(now),
                    .queue = true,
                    .full = true,
                    .answers = 50,
                    .first_byte_p95 = model.first_byte(control.limit())});
      outcome.within_bounds = outcome.within_bounds && control.limit() >= bounds.least &&
                              control.limit() <= bounds.most;
    }
  };
  run(before, 120);
  // 0.8 of the target is where a rise ends.
  const std::int32_t can = std::min(before.fits(bounds.target) * 8 / 10, bounds.most);
  outcome.used = control.limit() * 2 >= can;
  run(after, 20);
  const std::int32_t may = std::max(bounds.least, after.fits(bounds.target));
  outcome.back_soon = control.limit() <= may + std::max(1, may / 4);
  return outcome;
}

struct Case {
  ConcurrencyBounds bounds;
  Model before;
  Model after;
};

Case any_case() {
  Case one;
  one.bounds = {.least = *rc::gen::inRange(1, 4),
                .most = *rc::gen::inRange(4, 256),
                .target = milliseconds(*rc::gen::inRange(20, 2000))};
  one.before = {.base = one.bounds.target / *rc::gen::inRange(2, 10),
                .cores = *rc::gen::inRange(1, 16)};
  one.after = {.base = one.before.base * *rc::gen::inRange(1, 3), .cores = one.before.cores};
  return one;
}

RC_GTEST_PROP(ConcurrencyProperty, E1_FindsWhatAReplicaCanDoAndFollowsItDown, ()) {
  const Case one = any_case();
  const Outcome outcome = overload<ConcurrencyControl>(one.bounds, one.before, one.after);
  RC_ASSERT(outcome.within_bounds);
  RC_ASSERT(outcome.used);
  RC_ASSERT(outcome.back_soon);
}

TEST(ConcurrencyProperty, E1_CatchesControllersThatLackAHalf) {
  const ConcurrencyBounds bounds{.least = 1, .most = 128, .target = milliseconds(200)};
  const Model before{.base = milliseconds(50), .cores = 8};
  const Model after{.base = milliseconds(100), .cores = 8};
  EXPECT_FALSE(overload<NeverFalls>(bounds, before, after).back_soon);
  EXPECT_FALSE(overload<NeverRises>(bounds, before, after).used);
}

}  // namespace
}  // namespace neap::gateway
