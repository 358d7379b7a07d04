#include "core/rules/place/scarcity.h"

#include <algorithm>
#include <array>
#include <bit>

namespace neap::leftover {

namespace {

bool holds(std::uint64_t models, std::size_t model) {
  return models == 0 || (models >> model & 1U) != 0;
}

}  // namespace

// The tail is at least 0.95, 0.85, ... 0.55 up to these distances below the mean, and at least
// 0.45, ... 0.05 up to the same above: squares of the normal quantiles, in millionths.
std::int32_t tenths_of_shortage(std::int64_t surplus, std::int64_t variance) {
  constexpr std::array<std::int64_t, 5> squares = {2'705'543, 1'074'194, 454'937, 148'472, 15'791};
  const Wide square = Wide{surplus} * surplus * 1'000'000;
  std::int32_t beyond = 0;  // quantiles that the surplus passes, on its side
  for (const std::int64_t s : squares) beyond += square >= Wide{s} * variance ? 1 : 0;
  return surplus < 0 ? 5 + beyond : 5 - beyond;
}

Scarcity::Scarcity(std::span<const Want> wants, std::size_t models, std::int64_t models_weigh)
    : models_weigh_(models_weigh), capacity_(models), free_(models), tenths_(models) {
  Wide all = 0;
  for (const Want& want : wants) all += want.milli;
  if (all == 0) return;
  for (const Want& want : wants) {
    const auto part = static_cast<std::int64_t>(Wide{want.milli} * billion / all);
    if (want.models != 0 && want.count > 0) insisting_on(want.models).part += part;
    if (want.count < 2) continue;
    const auto known = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) {
      return g.models == want.models && g.count == want.count;
    });
    if (known == groups_.end()) groups_.push_back({want.models, want.count, 0, 0});
    if (std::find(counts_.begin(), counts_.end(), want.count) == counts_.end()) {
      counts_.push_back(want.count);
    }
  }
  for (Group& group : groups_) {
    for (const Want& want : wants) {
      if (want.models != group.models || want.count < group.count) continue;
      group.part += static_cast<std::int64_t>(Wide{want.milli} * billion / all);
    }
  }
  fitting_.assign(counts_.size(), std::vector<std::int64_t>(models));
}

Scarcity::ModelDemand& Scarcity::insisting_on(std::uint64_t models) {
  const auto same = std::find_if(insistent_.begin(), insistent_.end(),
                                 [&](const ModelDemand& d) { return d.models == models; });
  if (same != insistent_.end()) return *same;
  return insistent_.emplace_back(ModelDemand{.models = models});
}

void Scarcity::count(const Supply& node, int sign) {
  capacity_[node.model] += std::int64_t{sign} * node.devices * whole;
  free_[node.model] += std::int64_t{sign} * node.free;
  for (std::size_t c = 0; c < counts_.size(); ++c) {
    fitting_[c][node.model] += std::int64_t{sign} * (node.count_unused() / counts_[c]);
  }
}

void Scarcity::refresh(std::int64_t milli_to_come) {
  refresh_models(milli_to_come);
  refresh_groups(milli_to_come);
}

void Scarcity::refresh_models(std::int64_t milli_to_come) {
  std::vector<std::int64_t> demand(free_.size());
  for (const ModelDemand& d : insistent_) {
    std::int64_t supply = 0;
    for (std::size_t m = 0; m < free_.size(); ++m) supply += holds(d.models, m) ? free_[m] : 0;
    if (supply == 0) continue;
    for (std::size_t m = 0; m < free_.size(); ++m) {
      if (!holds(d.models, m)) continue;
      demand[m] +=
          static_cast<std::int64_t>(Wide{milli_to_come} * d.part / billion * free_[m] / supply);
    }
  }
  // The demand comes in pods of about 900 milli, and a device may be left half used.
  for (std::size_t m = 0; m < free_.size(); ++m) {
    tenths_[m] =
        free_[m] == 0 ? 0 : tenths_of_shortage(free_[m] - demand[m], 900 * demand[m] + 1'000'000);
  }
}

void Scarcity::begin_lasting() {
  Wide capacity = 0;
  for (const std::int64_t milli : capacity_) capacity += milli;
  for (ModelDemand& d : insistent_) {
    d.usual = static_cast<std::int64_t>(capacity * d.part / billion);
  }
}

void Scarcity::hold(std::uint64_t models, std::int64_t milli) {
  if (models != 0) insisting_on(models).held += milli;
}

void Scarcity::wait(std::uint64_t models, std::int64_t milli) {
  if (models != 0) insisting_on(models).waiting += milli;
}

void Scarcity::refresh_lasting(std::int64_t residual_percent) {
  constexpr std::int64_t memory = 400;  // refreshes: until twice the pool has been asked for
  std::vector<std::int64_t> demand(capacity_.size());
  std::int64_t all = 0;
  for (const std::int64_t milli : capacity_) all += milli;
  for (ModelDemand& d : insistent_) {
    d.usual += (d.held + d.waiting - d.usual) / memory;
    const std::int64_t standing = std::max(d.usual, d.held + d.waiting);
    std::int64_t supply = 0;
    for (std::size_t m = 0; m < capacity_.size(); ++m) {
      supply += holds(d.models, m) ? capacity_[m] : 0;
    }
    for (std::size_t m = 0; m < capacity_.size() && supply > 0; ++m) {
      if (!holds(d.models, m)) continue;
      demand[m] += static_cast<std::int64_t>(Wide{standing} * capacity_[m] / supply);
    }
  }
  // As much is asked for within a mean lifetime as the pool holds, and all that insists comes anew.
  // Of what others have taken, the part 100/residual_percent has come back until then, and for that
  // the price is the usual one.
  refresh_models(all);
  const std::int64_t residual = std::max<std::int64_t>(residual_percent, 100);
  for (std::size_t m = 0; m < capacity_.size(); ++m) {
    if (capacity_[m] == 0) continue;
    const Wide needed = Wide{10} * std::min(demand[m], capacity_[m]) * (residual - 100);
    const Wide base = Wide{capacity_[m]} * residual;
    const Wide price = needed + Wide{100} * tenths_[m] * capacity_[m];
    tenths_[m] = static_cast<std::int32_t>((2 * price + base) / (2 * base));
  }
  refresh_groups(all);
}

void Scarcity::refresh_groups(std::int64_t milli_to_come) {
  for (Group& group : groups_) {
    const auto c = static_cast<std::size_t>(std::find(counts_.begin(), counts_.end(), group.count) -
                                            counts_.begin());
    std::int64_t supply = 0;
    for (std::size_t m = 0; m < free_.size(); ++m) {
      supply += holds(group.models, m) ? fitting_[c][m] : 0;
    }
    // Arrivals to come in thousandths: their number is its own variance.
    const auto arrivals =
        static_cast<std::int64_t>(Wide{milli_to_come} * group.part / billion / group.count);
    group.tenths = supply == 0 || arrivals < 1
                       ? 0
                       : tenths_of_shortage(1000 * supply - arrivals, 1000 * arrivals + 10'000);
  }
}

std::int64_t Scarcity::price(std::uint8_t model, std::int32_t milli, std::int32_t unused,
                             std::int32_t opened) const {
  constexpr std::int64_t tenth = 1'000;  // of one milli, in 1/10000
  std::int64_t broken = 0;
  if (opened > 0) {
    for (const Group& group : groups_) {
      if (group.tenths == 0 || !holds(group.models, model)) continue;
      const std::int32_t lost = unused / group.count - (unused - opened) / group.count;
      broken = std::max(broken, std::int64_t{whole} * group.count * group.tenths * lost);
    }
  }
  return tenth * (models_weigh_ * tenths_[model] * milli + broken);
}

}  // namespace neap::leftover
