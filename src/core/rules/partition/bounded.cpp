#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/model/check.h"
#include "core/rules/partition/relaxation.h"
#include "core/rules/partition/search.h"

namespace neap::mig {

namespace {

constexpr int rounds_for_bound = 600;
constexpr int rounds_between = 40;   // as the devices are given out
constexpr std::int64_t parts = 8;    // a family is given out in shares of what is left of it
constexpr int exchanges_max = 4000;  // pairs of devices tried anew
constexpr std::size_t exchange_kinds = 64;

// How many devices of each group take which option.
using UseByNode = std::vector<std::map<std::uint32_t, std::int64_t>>;

struct Built {
  UseByNode use;
  Totals served{};
  Score score;
};

// What choices are built of: counts of what is served, never beyond what is wanted.
class Tally {
 public:
  explicit Tally(const Demand& demand) : demand_(demand) {}

  [[nodiscard]] const Totals& served() const { return served_; }
  // How many times a mix can be served before more is served than is wanted.
  [[nodiscard]] std::int64_t room_for(const Counts& mix) const {
    std::int64_t room = std::numeric_limits<std::int64_t>::max();
    for (std::size_t k = 0; k < demand_.kinds.size(); ++k) {
      if (mix[k] != 0) room = std::min(room, (demand_.kinds[k].count - served_[k]) / mix[k]);
    }
    return room;
  }
  // Weight that serving it adds.
  [[nodiscard]] std::int64_t worth_of(const Counts& mix) const {
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < demand_.kinds.size(); ++k) {
      if (mix[k] == 0) continue;
      const Kind& kind = demand_.kinds[k];
      sum += kind.worth_of(served_[k] + mix[k], demand_.wants) -
             kind.worth_of(served_[k], demand_.wants);
    }
    return sum;
  }
  void add(const Counts& mix, std::int64_t times) {
    for (std::size_t k = 0; k < demand_.kinds.size(); ++k) served_[k] += mix[k] * times;
  }

 private:
  const Demand& demand_;
  Totals served_{};
};

void take(Built& built, const std::vector<Group>& groups, std::size_t group, std::uint32_t option,
          std::int64_t devices) {
  built.use[group][option] += devices;
  const Option& taken = groups[group].options[option];
  for (std::size_t k = 0; k < wants_max; ++k) built.served[k] += taken.counts[k] * devices;
  built.score.cost.touched += taken.cost.touched * devices;
  built.score.cost.churn += taken.cost.churn * devices;
  built.score.cost.not_whole += taken.cost.not_whole * devices;
  built.score.cost.closed += taken.cost.closed * devices;
}

void finish(Built& built, const Demand& demand) {
  for (std::size_t k = 0; k < demand.kinds.size(); ++k) {
    built.score.worth += demand.kinds[k].worth_of(built.served[k], demand.wants);
  }
}

enum class Start : std::uint8_t { untouched_first, anywhere };

// Fills groups one after another, each with the option that adds most weight.
Built by_weight(const std::vector<Group>& groups, const Demand& demand, Start start) {
  Built built;
  built.use.resize(groups.size());
  Tally tally(demand);
  std::vector<std::int64_t> left;
  for (const Group& group : groups) left.push_back(static_cast<std::int64_t>(group.devices.size()));
  const auto best_option = [&](const Group& group, std::int64_t touched_max) {
    std::uint32_t best = 0;
    std::int64_t most = 0;
    for (std::uint32_t o = 1; o < group.options.size(); ++o) {
      const Option& option = group.options[o];
      if (option.cost.touched > touched_max || tally.room_for(option.counts) == 0) continue;
      const std::int64_t worth = tally.worth_of(option.counts);
      if (worth > most || (worth == most && best != 0 && option.cost < group.options[best].cost)) {
        best = o;
        most = worth;
      }
    }
    return best;
  };
  for (const std::int64_t touched_max : {0, 1}) {
    if (touched_max == 0 && start == Start::anywhere) continue;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      while (left[g] > 0) {
        const std::uint32_t option = best_option(groups[g], touched_max);
        if (option == 0) break;
        const Counts& mix = groups[g].options[option].counts;
        const std::int64_t devices = std::min(left[g], tally.room_for(mix));
        take(built, groups, g, option, devices);
        tally.add(mix, devices);
        left[g] -= devices;
      }
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (left[g] > 0) take(built, groups, g, 0, left[g]);
  }
  finish(built, demand);
  return built;
}

// The groups by what their devices can serve.
struct Families {
  std::vector<Family> list;
  std::vector<std::size_t> of_group;
};

Families families_of(const std::vector<Group>& groups) {
  Families families;
  std::map<std::vector<Counts>, std::size_t> known;
  for (const Group& group : groups) {
    std::vector<Counts> mixes;
    for (const Option& option : group.options) mixes.push_back(option.counts);
    std::sort(mixes.begin(), mixes.end());
    const auto [at, added] = known.try_emplace(mixes, families.list.size());
    if (added) families.list.push_back({std::move(mixes), 0});
    families.list[at->second].devices += static_cast<std::int64_t>(group.devices.size());
    families.of_group.push_back(at->second);
  }
  return families;
}

// Gives the devices of the families to mixes, share by share, at prices found anew for what is
// left. The result is by family: how many devices serve which mix.
class ByPrice {
 public:
  using Given = std::vector<std::map<Counts, std::int64_t>>;

  ByPrice(std::vector<Family> families, const Demand& demand, Relaxation relaxation)
      : families_(std::move(families)),
        relaxation_(std::move(relaxation)),
        tally_(demand),
        given_(families_.size()) {}

  Given run() {
    bool more = true;
    while (more) {
      relaxation_.improve(families_, tally_.served(), rounds_between);
      more = false;
      for (std::size_t f = 0; f < families_.size(); ++f) more = give(f) || more;
    }
    return std::move(given_);
  }

 private:
  bool give(std::size_t index) {
    Family& family = families_[index];
    const Counts* best = nullptr;
    std::pair<std::int64_t, std::int64_t> most{0, 0};
    for (const Counts& mix : family.mixes) {
      if (family.devices == 0 || tally_.room_for(mix) == 0) continue;
      const std::int64_t worth = tally_.worth_of(mix);
      const std::pair value{relaxation_.price_of(mix), worth};
      if (worth == 0 || (best != nullptr && value <= most)) continue;
      most = value;
      best = &mix;
    }
    if (best == nullptr) return false;
    const std::int64_t share = (family.devices + parts - 1) / parts;
    const std::int64_t devices = std::min(share, tally_.room_for(*best));
    given_[index][*best] += devices;
    tally_.add(*best, devices);
    family.devices -= devices;
    return true;
  }

  std::vector<Family> families_;
  Relaxation relaxation_;
  Tally tally_;
  Given given_;
};

// The mixes to the devices of each family where they cost least.
Built spread(const std::vector<Group>& groups, const Families& families, ByPrice::Given given,
             const Demand& demand) {
  struct Offer {
    Cost cost;
    std::size_t group = 0;
    std::uint32_t option = 0;
  };
  std::vector<Offer> offers;
  std::vector<std::int64_t> left;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    left.push_back(static_cast<std::int64_t>(groups[g].devices.size()));
    for (std::uint32_t o = 0; o < groups[g].options.size(); ++o) {
      const Option& option = groups[g].options[o];
      if (given[families.of_group[g]].contains(option.counts))
        offers.push_back({option.cost, g, o});
    }
  }
  std::stable_sort(offers.begin(), offers.end(),
                   [](const Offer& a, const Offer& b) { return a.cost < b.cost; });
  Built built;
  built.use.resize(groups.size());
  for (const Offer& offer : offers) {
    std::int64_t& wanted =
        given[families.of_group[offer.group]][groups[offer.group].options[offer.option].counts];
    const std::int64_t devices = std::min(left[offer.group], wanted);
    if (devices == 0) continue;
    take(built, groups, offer.group, offer.option, devices);
    left[offer.group] -= devices;
    wanted -= devices;
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (left[g] > 0) take(built, groups, g, 0, left[g]);
  }
  finish(built, demand);
  return built;
}

// Two devices choose anew together, as long as that makes the whole better.
class Exchange {
 public:
  Exchange(const std::vector<Group>& groups, const Demand& demand, Built& built)
      : groups_(groups), demand_(demand), built_(built) {}

  void run() {
    bool better = true;
    while (better && tried_ < exchanges_max) better = pass();
  }

 private:
  struct At {
    std::size_t group = 0;
    std::uint32_t option = 0;
  };

  [[nodiscard]] std::vector<At> in_use() const {
    std::vector<At> found;
    for (std::size_t g = 0; g < groups_.size() && found.size() < exchange_kinds; ++g) {
      for (const auto& [option, devices] : built_.use[g]) {
        if (devices > 0) found.push_back({g, option});
      }
    }
    return found;
  }

  bool pass() {
    bool better = false;
    const std::vector<At> at = in_use();
    for (std::size_t i = 0; i < at.size(); ++i) {
      for (std::size_t j = i; j < at.size() && tried_ < exchanges_max; ++j) {
        while (tried_ < exchanges_max && improve(at[i], at[j])) better = true;
      }
    }
    return better;
  }

  [[nodiscard]] bool available(const At& a, const At& b) const {
    const auto devices = [&](const At& at) {
      const auto& use = built_.use[at.group];
      const auto found = use.find(at.option);
      return found == use.end() ? 0 : found->second;
    };
    const bool same = a.group == b.group && a.option == b.option;
    return devices(a) >= (same ? 2 : 1) && devices(b) >= 1;
  }

  // A score of less than nothing when more would be served than is wanted.
  [[nodiscard]] Score score_with(const Option& a, const Option& b) const {
    Score score{0, built_.score.cost};
    score.cost += a.cost;
    score.cost += b.cost;
    for (std::size_t k = 0; k < demand_.kinds.size(); ++k) {
      const std::int64_t served = built_.served[k] + a.counts[k] + b.counts[k];
      if (served > demand_.kinds[k].count) return {-1, {}};
      score.worth += demand_.kinds[k].worth_of(served, demand_.wants);
    }
    return score;
  }

  bool improve(const At& a, const At& b) {
    if (!available(a, b)) return false;
    ++tried_;
    const Score before = built_.score;
    take(built_, groups_, a.group, a.option, -1);
    take(built_, groups_, b.group, b.option, -1);
    Score best = before;
    std::pair<At, At> chosen{a, b};
    const auto& options_a = groups_[a.group].options;
    const auto& options_b = groups_[b.group].options;
    for (std::uint32_t i = 0; i < options_a.size(); ++i) {
      for (std::uint32_t j = 0; j < options_b.size(); ++j) {
        const Score score = score_with(options_a[i], options_b[j]);
        if (score <= best) continue;
        best = score;
        chosen = {{a.group, i}, {b.group, j}};
      }
    }
    take(built_, groups_, chosen.first.group, chosen.first.option, 1);
    take(built_, groups_, chosen.second.group, chosen.second.option, 1);
    built_.score.worth = best.worth;
    NEAP_CHECK(built_.score == best);
    return best > before;
  }

  const std::vector<Group>& groups_;
  const Demand& demand_;
  Built& built_;
  int tried_ = 0;
};

}  // namespace

Choice search_bounded(const std::vector<Group>& groups, const Demand& demand) {
  const Families families = families_of(groups);
  Relaxation relaxation(demand);
  relaxation.improve(families.list, {}, rounds_for_bound);
  const std::int64_t bound = relaxation.bound();

  Built best = by_weight(groups, demand, Start::untouched_first);
  const auto consider = [&](Built built) {
    if (built.score > best.score) best = std::move(built);
  };
  consider(by_weight(groups, demand, Start::anywhere));
  consider(spread(groups, families, ByPrice(families.list, demand, relaxation).run(), demand));
  Exchange(groups, demand, best).run();
  NEAP_CHECK(best.score.worth <= bound);

  Choice choice;
  choice.score = best.score;
  choice.worth_bound = bound;
  choice.options.resize(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const auto& [option, devices] : best.use[g]) {
      choice.options[g].insert(choice.options[g].end(), static_cast<std::size_t>(devices), option);
    }
  }
  return choice;
}

}  // namespace neap::mig
