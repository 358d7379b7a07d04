#include "core/rules/partition/relaxation.h"

#include <algorithm>

namespace neap::mig {

namespace {

constexpr int patience = 12;  // rounds without a better bound before steps are halved

}  // namespace

Relaxation::Relaxation(const Demand& demand) : demand_(demand) {
  for (const Want& want : demand.wants) top_ = std::max(top_, want.weight * price_unit);
  for (std::size_t k = 0; k < demand.kinds.size(); ++k) {
    best_[k] = demand.wants[demand.kinds[k].wants.front()].weight * price_unit;
  }
}

std::int64_t Relaxation::price_of(const Counts& mix, const Totals& prices) const {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < demand_.kinds.size(); ++k) sum += prices[k] * mix[k];
  return sum;
}

// For any prices, what wants gain by buying at them and the most that devices can earn by selling
// are together no less than what any choice serves (Lagrangian duality).
Relaxation::Look Relaxation::look(const std::vector<Family>& families, const Totals& served,
                                  const Totals& prices) const {
  Look found;
  for (std::size_t k = 0; k < demand_.kinds.size(); ++k) {
    std::int64_t skip = served[k];
    for (const std::size_t w : demand_.kinds[k].wants) {
      const Want& want = demand_.wants[w];
      const std::int64_t skipped = std::min(skip, want.count);
      skip -= skipped;
      const std::int64_t gain = want.weight * price_unit - prices[k];
      if (gain <= 0) continue;
      found.value += gain * (want.count - skipped);
      found.excess[k] -= want.count - skipped;
    }
  }
  for (const Family& family : families) {
    if (family.devices == 0) continue;
    std::int64_t most = 0;
    const Counts* sold = nullptr;
    for (const Counts& mix : family.mixes) {
      const std::int64_t earned = price_of(mix, prices);
      if (earned <= most) continue;
      most = earned;
      sold = &mix;
    }
    found.value += most * family.devices;
    for (std::size_t k = 0; sold != nullptr && k < demand_.kinds.size(); ++k) {
      found.excess[k] += (*sold)[k] * family.devices;
    }
  }
  return found;
}

void Relaxation::improve(const std::vector<Family>& families, const Totals& served, int rounds) {
  Totals prices = best_;
  Look here = look(families, served, prices);
  bound_ = here.value;
  std::int64_t hope = bound_ / 16;  // how much lower the bound may be, for the length of a step
  int in_vain = 0;
  for (int i = 0; i < rounds && hope > 0; ++i) {
    Wide square = 0;
    for (const std::int64_t e : here.excess) square += Wide{e} * e;
    if (square == 0) return;  // what is offered is bought: these prices are the best
    const Wide distance = here.value - bound_ + hope;
    for (std::size_t k = 0; k < demand_.kinds.size(); ++k) {
      const auto change = static_cast<std::int64_t>(distance * here.excess[k] / square);
      prices[k] = std::clamp<std::int64_t>(prices[k] - change, 0, top_);
    }
    here = look(families, served, prices);
    if (here.value < bound_) {
      bound_ = here.value;
      best_ = prices;
      in_vain = 0;
    } else if (++in_vain == patience) {
      in_vain = 0;
      hope /= 2;
      prices = best_;
      here = look(families, served, prices);
    }
  }
}

}  // namespace neap::mig
