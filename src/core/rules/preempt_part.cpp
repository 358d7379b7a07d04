#include "core/rules/preempt_part.h"

#include <algorithm>
#include <limits>

#include "core/model/check.h"
#include "core/model/units.h"

namespace neap {

namespace {

constexpr std::int64_t unreachable = std::numeric_limits<std::int64_t>::max();

// The part of `price` that falls on `part` of `whole`, rounded down: for lower bounds.
std::int64_t portion(std::int64_t price, std::int64_t part, std::int64_t whole) {
  return static_cast<std::int64_t>(static_cast<Wide>(price) * part / whole);
}

}  // namespace

std::uint32_t PartSearch::add_device(const Shortfall& lacks) {
  lacks_.push_back(lacks);
  return static_cast<std::uint32_t>(lacks_.size() - 1);
}

void PartSearch::add_candidate(std::uint32_t candidate, std::int64_t price) {
  items_.push_back({candidate, price, 1, static_cast<std::uint32_t>(pieces_.size()), 0});
}

void PartSearch::add_piece(std::uint32_t device, const Shortfall& frees) {
  pieces_.push_back({device, frees});
  ++items_.back().count;
}

void PartSearch::run(Cells& cells) {
  best_.assign(lacks_.size() + 1, {});
  best_[0].found = true;
  if (items_.size() == 1 || (lacks_.size() == 1 && all_needed())) {
    take_all();
  } else {
    sort_by_density();
    sum_suffixes();
    descend(0, {}, cells);
  }
  NEAP_CHECK(best_.back().found);
  for (std::size_t j = best_.size() - 1; j > 1; --j) {
    // What makes j devices fit makes fewer fit.
    if (!best_[j - 1].found || best_[j].value < best_[j - 1].value) best_[j - 1] = best_[j];
  }
  for (Best& best : best_) best.lower = best.value.price;
  if (exact_) return;
  choose_greedily();
  bound_from_below();
}

bool PartSearch::all_needed() const {
  Shortfall left = lacks_.front();
  for (const Piece& piece : pieces_) left.reduce(piece.frees);
  return std::all_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
    Shortfall without = left;
    without.share += piece.frees.share;
    without.memory += piece.frees.memory;
    without.strangers += piece.frees.strangers;
    return !without.met();
  });
}

void PartSearch::take_all() {
  CoverValue value;
  for (const Item& item : items_) {
    value = value.plus({item.price, 1});
    chosen_.push_back(item.candidate);
  }
  record(lacks_.size(), value);
  chosen_.clear();
}

// Cheapest per freed amount first: the first descent is the greedy choice, and on one device a
// fractional choice in this order is a lower bound.
void PartSearch::sort_by_density() {
  by_share_ = lacks_.front().share > 0;
  for (Item& item : items_) {
    std::int64_t weight = 0;
    for (std::uint32_t p = item.first; p < item.first + item.count; ++p) {
      const Shortfall& lacks = lacks_[pieces_[p].device];
      const Shortfall& frees = pieces_[p].frees;
      weight += lacks.share > 0 ? std::min(frees.share, lacks.share)
                                : std::min(frees.memory, std::max<std::int64_t>(0, lacks.memory));
    }
    item.weight = std::max<std::int64_t>(1, weight);
  }
  std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
    const Wide left = static_cast<Wide>(a.price) * b.weight;
    const Wide right = static_cast<Wide>(b.price) * a.weight;
    return left != right ? left < right : a.candidate < b.candidate;
  });
}

void PartSearch::sum_suffixes() {
  const std::size_t devices = lacks_.size();
  suffix_.assign((items_.size() + 1) * devices, {});
  for (std::size_t i = items_.size(); i-- > 0;) {
    for (std::size_t d = 0; d < devices; ++d) {
      suffix_[i * devices + d] = suffix_[(i + 1) * devices + d];
    }
    const Item& item = items_[i];
    for (std::uint32_t p = item.first; p < item.first + item.count; ++p) {
      Shortfall& sum = suffix_[i * devices + pieces_[p].device];
      sum.share += pieces_[p].frees.share;
      sum.memory += pieces_[p].frees.memory;
      sum.strangers += pieces_[p].frees.strangers;
    }
  }
}

void PartSearch::descend(std::size_t at, CoverValue value, Cells& cells) {
  cells.spend(static_cast<std::int64_t>(lacks_.size()) + 1);
  const std::size_t fit = fitting();
  record(fit, value);
  if (at == items_.size() || fit == lacks_.size()) return;
  if (cells.spent() && best_.back().found) {
    exact_ = false;
    return;
  }
  if (!can_improve(at, value, fit)) return;
  const Item& item = items_[at];
  leave(item, +1);
  chosen_.push_back(item.candidate);
  descend(at + 1, value.plus({item.price, 1}), cells);
  chosen_.pop_back();
  leave(item, -1);
  descend(at + 1, value, cells);
}

bool PartSearch::can_improve(std::size_t at, CoverValue value, std::size_t fitting) const {
  const std::size_t devices = lacks_.size();
  std::size_t reach = 0;
  for (std::size_t d = 0; d < devices; ++d) {
    Shortfall left = lacks_[d];
    left.reduce(suffix_[at * devices + d]);
    reach += left.met() ? 1 : 0;
  }
  if (reach <= fitting) return false;
  const Best& rival = best_[reach];
  if (!rival.found) return true;
  ++value.victims;  // one more at least
  if (devices == 1) {
    const Shortfall& lacks = lacks_.front();
    const std::int64_t more = fractional(at, by_share_ ? lacks.share : lacks.memory);
    if (more == unreachable) return true;
    value.price = add_saturated(value.price, more);
  }
  return value < rival.value;
}

// Of one device, what is lacking of share (of memory, when share was there from the start),
// priced as if candidates could leave in part: in order of this very density, a lower bound.
std::int64_t PartSearch::fractional(std::size_t at, std::int64_t lacking) const {
  std::int64_t price = 0;
  for (; lacking > 0; ++at) {
    if (at == items_.size()) return unreachable;
    const Item& item = items_[at];
    if (item.weight >= lacking) {
      return add_saturated(price, portion(item.price, lacking, item.weight));
    }
    price = add_saturated(price, item.price);
    lacking -= item.weight;
  }
  return price;
}

std::size_t PartSearch::fitting() const {
  return static_cast<std::size_t>(
      std::count_if(lacks_.begin(), lacks_.end(), [](const Shortfall& s) { return s.met(); }));
}

void PartSearch::record(std::size_t fitting, CoverValue value) {
  for (std::size_t j = 1; j <= fitting; ++j) {
    Best& best = best_[j];
    if (best.found && !(value < best.value)) continue;
    best.found = true;
    best.value = value;
    best.picks = chosen_;
  }
}

void PartSearch::leave(const Item& item, std::int32_t sign) {
  for (std::uint32_t p = item.first; p < item.first + item.count; ++p) {
    Shortfall& lacks = lacks_[pieces_[p].device];
    lacks.share -= sign * pieces_[p].frees.share;
    lacks.memory -= sign * pieces_[p].frees.memory;
    lacks.strangers -= sign * pieces_[p].frees.strangers;
  }
}

// Beside the descent by density: again and again the device that is cheapest to finish, with
// what was already chosen for others free of charge.
void PartSearch::choose_greedily() {
  const std::vector<Shortfall> lacks = lacks_;
  std::vector<bool> gone(items_.size(), false);
  CoverValue value;
  chosen_.clear();
  for (std::size_t fit = fitting(); fit < lacks_.size(); fit = fitting()) {
    CoverValue least{unreachable, 0};
    std::vector<std::size_t> cheapest;
    for (std::uint32_t d = 0; d < lacks_.size(); ++d) {
      Shortfall left = lacks_[d];
      if (left.met()) continue;
      CoverValue price;
      std::vector<std::size_t> picks;
      for (std::size_t i = 0; i < items_.size() && !left.met(); ++i) {
        if (gone[i]) continue;
        const Piece* begin = pieces_.data() + items_[i].first;
        const Piece* end = begin + items_[i].count;
        const Piece* piece =
            std::find_if(begin, end, [d](const Piece& p) { return p.device == d; });
        if (piece == end) continue;
        left.reduce(piece->frees);
        price = price.plus({items_[i].price, 1});
        picks.push_back(i);
      }
      if (left.met() && price < least) {
        least = price;
        cheapest = std::move(picks);
      }
    }
    NEAP_CHECK(!cheapest.empty());
    for (const std::size_t i : cheapest) {
      gone[i] = true;
      leave(items_[i], +1);
      chosen_.push_back(items_[i].candidate);
    }
    value = value.plus(least);
    record(fitting(), value);
  }
  chosen_.clear();
  lacks_ = lacks;
}

// Each candidate's price is spread over its devices; what is lacking on a device then costs at
// least the fractional choice, and j devices at least the j cheapest.
void PartSearch::bound_from_below() {
  std::vector<std::int64_t> least;
  for (std::uint32_t d = 0; d < lacks_.size(); ++d) {
    const bool share = lacks_[d].share > 0;
    std::int64_t lacking = share ? lacks_[d].share : std::max<std::int64_t>(0, lacks_[d].memory);
    std::vector<std::pair<std::int64_t, std::int64_t>> offers;  // price, freed
    for (const Item& item : items_) {
      for (std::uint32_t p = item.first; p < item.first + item.count; ++p) {
        if (pieces_[p].device != d) continue;
        const std::int64_t frees = share ? pieces_[p].frees.share : pieces_[p].frees.memory;
        if (frees > 0) offers.emplace_back(item.price / item.count, std::min(frees, lacking));
      }
    }
    std::sort(offers.begin(), offers.end(), [](const auto& a, const auto& b) {
      const Wide left = static_cast<Wide>(a.first) * b.second;
      const Wide right = static_cast<Wide>(b.first) * a.second;
      return left != right ? left < right : a < b;
    });
    std::int64_t sum = 0;
    for (const auto& [price, frees] : offers) {
      if (lacking <= 0) break;
      sum = add_saturated(sum, portion(price, std::min(frees, lacking), frees));
      lacking -= frees;
    }
    least.push_back(sum);
  }
  std::sort(least.begin(), least.end());
  std::int64_t sum = 0;
  for (std::size_t j = 1; j < best_.size(); ++j) {
    sum = add_saturated(sum, least[j - 1]);
    best_[j].lower = std::min(sum, best_[j].value.price);
  }
}

}  // namespace neap
