// Switches of devices between services and training (SPEC D5, POLICIES 3), in arbitrary pools under
// arbitrary loads: what is known of a switch is what the replicas of that service, version and
// device took; devices are given away only once they have idled for the break-even time, or where
// the hour begins; never more in a day than the budget pays for; and what is asked for is added
// whatever the budget has left. The expected figures are computed anew from what the driver did.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <map>
#include <sstream>
#include <tuple>

#include "core/model/pool_index.h"
#include "core/rules/scale.h"
#include "core/rules/switching.h"
#include "core/rules/tide.h"
#include "core/testing/any_below.h"
#include "core/testing/tides.h"

namespace neap::switching_property {
namespace {

using testing::any_below;
using testing::one_in;
using testing::Script;
using testing::Tides;

enum class Fault : std::uint8_t {
  none,
  forgets_the_budget,  // what was given away today is not counted
  charges_another,     // what one service took is booked for the other one
  is_impatient,        // replicas go before they have idled for the break-even time
};

constexpr int kinds = 2;
const std::array<const char*, kinds> names = {"a", "b"};

// By the definition: the nearest-rank p90 of the newest 16, of fewer than three the greatest, and
// not less than what was expected.
Micros p90(const std::deque<Micros>& seen, Micros expected) {
  std::vector<Micros> sorted(seen.end() - std::min<std::ptrdiff_t>(16, std::ssize(seen)),
                             seen.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() >= 3) return sorted[(sorted.size() * 9 + 9) / 10 - 1];
  return sorted.empty() ? expected : std::max(expected, sorted.back());
}

class SwitchedPool {
 public:
  explicit SwitchedPool(Fault fault) : fault_(fault) {
    ScaleSpec& scale = script_.spec.scale;
    scale.mode = ScaleMode::tidal;
    scale.headroom = scale.plan = Ppm(0);
    scale.dwell_measured = true;
    if (!one_in(3)) scale.switch_budget = Ppm(500 + any_below(12'000));
    script_.configure();
    script_.node("n0", "d0", 40);
    for (const char* name : names) {
      most_of_[name] = 3 + any_below(12);
      EXPECT_TRUE(script_.submit(Script::service(name, 1, most_of_[name])));
      tides_.use[name] = 5;
      set_pace(name);
    }
  }

  void anything() {
    const char* name = names[static_cast<std::size_t>(any_below(kinds))];
    if (one_in(4)) set_pace(name);
    tides_.use[name] = any_below(10 * most_of_[name]);
    const int ticks = 1 + any_below(120);
    for (int i = 0; i < ticks; ++i) {
      plant();
      const auto before = prices();
      tides_.tick();
      look(before);
    }
  }

  [[nodiscard]] const std::string& fault() const { return fault_text_; }
  [[nodiscard]] int given() const { return given_; }
  [[nodiscard]] int kept() const { return kept_; }

 private:
  struct Price {
    Micros cost;
    std::optional<std::int64_t> allowed;
  };

  void set_pace(const char* name) {
    tides_.pace[name] = {seconds(10 * (1 + any_below(20))), seconds(10 * (1 + any_below(9))),
                         seconds(10 * any_below(6))};
  }

  [[nodiscard]] const ServiceState& service(const std::string& name) const {
    return script_.state.service(*find_live_service(script_.state, name));
  }

  // From what the driver did.
  [[nodiscard]] Price price_of(const std::string& name) const {
    std::deque<Micros> leave, load, warm;
    for (const auto& [at, leg, took] : legs_) {
      if (at != name) continue;
      (leg == 0 ? leave : leg == 1 ? load : warm).push_back(took);
    }
    const ScaleSpec& scale = script_.state.spec.scale;
    Price price;
    price.cost =
        p90(leave, scale.switch_leave) + p90(load, scale.switch_load) + p90(warm, Micros(0));
    if (scale.switch_budget.value > 0) {
      const std::int64_t replicas = std::min(most_of_.at(name), 40);
      price.allowed = replicas * 86'400 * scale.switch_budget.value /
                      std::max<std::int64_t>(1, price.cost.value);
    }
    return price;
  }

  [[nodiscard]] std::map<std::string, Price> prices() const {
    std::map<std::string, Price> out;
    for (const char* name : names) out[name] = price_of(name);
    return out;
  }

  void plant() {
    auto& services = script_.state.services;
    switch (fault_) {
      case Fault::forgets_the_budget:
        for (ServiceState& service : services) service.switches.hours.clear();
        break;
      case Fault::charges_another:
        std::swap(services[0].switches.costs, services[1].switches.costs);
        break;
      case Fault::is_impatient:
        for (ServiceState& service : services) {
          if (service.below_since != Time::never()) service.below_since = Time(0);
        }
        break;
      case Fault::none:
        break;
    }
  }

  // What the driver saw of each leg since the last look, in the order of time.
  void gather() {
    const auto& stays = tides_.stays();
    told_.resize(stays.size());
    for (std::size_t i = 0; i < stays.size(); ++i) {
      const std::array<std::optional<Micros>, 3> now = {stays[i].left, stays[i].loaded,
                                                        stays[i].warmed};
      for (int leg = 0; leg < 3; ++leg) {
        const auto n = static_cast<std::size_t>(leg);
        if (!now[n] || told_[i][n]) continue;
        told_[i][n] = true;
        legs_.emplace_back(stays[i].service, leg, *now[n]);
      }
    }
  }

  void look(const std::map<std::string, Price>& before) {
    gather();
    for (const char* name : names) {
      const Price price = price_of(name);
      if (price.cost != neap::price_of(script_.state, service(name)).all()) {
        say("another price than what its replicas took");
      }
      const std::int64_t need =
          std::clamp<std::int64_t>((*tides_.use[name] + 9) / 10, 1, most_of_[name]);
      const std::int64_t live = staying_replicas(script_.state, service(name));
      if (live < need) say("fewer than the demand needs");
      look_at_given(name, before.at(name), need, live);
      needs_[name].emplace_back(script_.now, need);
    }
    if (!index_is_current(script_.state)) say("the index is not current");
  }

  void look_at_given(const std::string& name, const Price& price, std::int64_t need,
                     std::int64_t live) {
    const auto& all = tides_.given(name);
    const std::size_t seen = seen_[name];
    seen_[name] = all.size();
    if (price.allowed) {
      const auto since = std::upper_bound(all.begin(), all.end(), script_.now - hours(24));
      const std::int64_t of_day = all.end() - since;
      if (all.size() > seen && of_day > *price.allowed) say("more than the budget pays for");
      kept_ += all.size() == seen && live > need && of_day >= *price.allowed ? 1 : 0;
    }
    if (all.size() == seen) return;
    given_ += static_cast<int>(all.size() - seen);
    const bool hour_begins = script_.now.us % hours(1).value < testing::tide_tick.value;
    if (hour_begins) return;
    const auto& past = needs_[name];
    for (auto at = past.rbegin(); at != past.rend(); ++at) {
      if (at->second <= live) continue;
      if (script_.now - at->first < price.cost) say("gone before the break-even time");
      return;
    }
  }

  void say(const std::string& text) {
    if (fault_text_.empty()) fault_text_ = text;
  }

  Fault fault_;
  Script script_;
  Tides tides_{script_};
  int given_ = 0, kept_ = 0;
  std::map<std::string, int> most_of_;
  std::map<std::string, std::size_t> seen_;
  std::map<std::string, std::vector<std::pair<Time, std::int64_t>>> needs_;
  std::vector<std::array<bool, 3>> told_;
  std::vector<std::tuple<std::string, int, Micros>> legs_;
  std::string fault_text_;
};

struct Outcome {
  bool holds = false;
  std::string message;
  int given = 0, kept = 0;
};

Outcome run(Fault fault, int cases, rc::detail::TestParams params) {
  Outcome outcome;
  params.maxSuccess = cases;
  const auto result = rc::detail::checkTestable(
      [&] {
        SwitchedPool pool(fault);
        for (int i = 0; i < 40; ++i) pool.anything();
        outcome.given += pool.given();
        outcome.kept += pool.kept();
        RC_LOG() << pool.fault() << "\n";
        RC_ASSERT(pool.fault().empty());
      },
      rc::detail::TestMetadata{}, params);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  outcome.holds = result.template is<rc::detail::SuccessResult>();
  outcome.message = message.str();
  return outcome;
}

TEST(SwitchingProperty, D5_PricesBreakEvenAndBudget) {
  const Outcome outcome = run(Fault::none, 40, rc::detail::configuration().testParams);
  EXPECT_TRUE(outcome.holds) << outcome.message;
  EXPECT_GT(outcome.given, 500);
  EXPECT_GT(outcome.kept, 100);
  std::printf("switches: %d given away, %d times kept by the budget\n", outcome.given,
              outcome.kept);
}

TEST(SwitchingProperty, D5_SeesPlantedFaults) {
  rc::detail::TestParams params;
  params.seed = 1;
  params.disableShrinking = true;
  for (const Fault fault :
       {Fault::forgets_the_budget, Fault::charges_another, Fault::is_impatient}) {
    EXPECT_FALSE(run(fault, 40, params).holds) << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace neap::switching_property
