#include "measure/ladder.h"

#include <algorithm>
#include <array>
#include <utility>

namespace neap::measure {

std::string_view name_of(Rung rung) {
  constexpr std::array<std::string_view, 5> names{"none", "flow", "quota", "partition", "dedicate"};
  return names.at(static_cast<std::size_t>(rung));
}

bool has_rungs(Resource resource) {
  return resource != Resource::none && resource != Resource::own_load;
}

bool Ladder::is_closed(Rung rung) const { return std::ranges::find(shut_, rung) != shut_.end(); }

std::optional<Rung> Ladder::next_above() const {
  for (auto rung = static_cast<int>(rung_) + 1; rung <= static_cast<int>(Rung::dedicate); ++rung) {
    if (!is_closed(static_cast<Rung>(rung))) return static_cast<Rung>(rung);
  }
  return {};
}

Rung Ladder::next_below() const {
  for (auto rung = static_cast<int>(rung_) - 1; rung > 0; --rung) {
    if (!is_closed(static_cast<Rung>(rung))) return static_cast<Rung>(rung);
  }
  return Rung::none;
}

std::optional<LadderMove> Ladder::up(Time now, const Diagnosis& verdict) const {
  const auto to = next_above();
  if (!to) return {};
  LadderMove move{now,  rung_, *to, verdict.resource, verdict.neighbour, text_of(verdict.evidence),
                  false};
  move.relapse = eased_at_ && now - *eased_at_ <= options_.relapse;
  return move;
}

std::optional<LadderMove> Ladder::look(Time now, const Diagnosis& verdict) {
  const bool bad = has_rungs(verdict.resource);
  if (!bad) {
    bad_since_.reset();
    // Slow by itself is no calm: who is kept away must not come back into that.
    if (verdict.resource == Resource::own_load) {
      calm_since_.reset();
      return {};
    }
    if (rung_ == Rung::none) return {};
    if (!calm_since_) calm_since_ = now;
    const Time since = std::max(*calm_since_, moved_at_.value_or(*calm_since_));
    if (now - since < calm_needed_) return {};
    return LadderMove{now,
                      rung_,
                      next_below(),
                      resource_,
                      {},
                      "quiet for " + std::to_string((now - since).value / 1'000'000) +
                          " s: " + text_of(verdict.evidence),
                      false};
  }
  calm_since_.reset();
  if (rung_ != Rung::none && verdict.resource != resource_) {
    // Another resource: the rungs of the first stay, as long as they are needed is not known. It is
    // looked at once the first has been given back.
    bad_since_.reset();
    return {};
  }
  if (!bad_since_) bad_since_ = now;
  const bool soon = eased_at_ && now - *eased_at_ <= options_.relapse;
  if (!soon && now - *bad_since_ < options_.confirm) return {};
  if (!soon && moved_at_ && now - *moved_at_ < options_.settle) return {};
  return up(now, verdict);
}

void Ladder::moved(const LadderMove& move) {
  const bool back = move.to < rung_;
  if (move.relapse && eased_at_) {
    calm_needed_ = std::min(calm_needed_ * 2, options_.calm_max);
  }
  eased_at_.reset();
  if (back) eased_at_ = move.at;
  rung_ = move.to;
  resource_ = rung_ == Rung::none ? Resource::none : move.resource;
  moved_at_ = move.at;
  bad_since_.reset();
  calm_since_.reset();
}

void Ladder::impossible(const LadderMove& move, std::string why) {
  if (move.to <= rung_ || is_closed(move.to)) return;
  shut_.push_back(move.to);
  closed_.push_back(std::string(name_of(move.to)) + ": " + std::move(why));
}

void Ladder::reset() {
  const LadderOptions options = options_;
  *this = Ladder(options);
}

}  // namespace neap::measure
