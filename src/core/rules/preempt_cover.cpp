#include "core/rules/preempt_cover.h"

#include <algorithm>
#include <limits>

#include "core/rules/preempt_part.h"

namespace neap {

namespace {

constexpr std::uint32_t closed = std::numeric_limits<std::uint32_t>::max();
constexpr CoverValue no_cover{std::numeric_limits<std::int64_t>::max(), 0};

}  // namespace

void CoverSolver::solve(const CoverProblem& problem, std::int32_t devices, Cells& cells,
                        Cover& out) {
  problem_ = &problem;
  out.feasible = false;
  out.price = out.lower = 0;
  out.chosen.clear();
  cells.spend(static_cast<std::int64_t>(problem.devices.size() + problem.pieces.size()));
  const std::int32_t need = devices - sort_devices();
  if (need <= 0) {
    out.feasible = true;
    return;
  }
  if (open_.size() < static_cast<std::size_t>(need)) return;
  list_entries();
  join_devices();
  price_parts(cells);
  cells.spend(static_cast<std::int64_t>(parts_.size()) * need);
  combine(static_cast<std::size_t>(need), out);
}

std::int32_t CoverSolver::sort_devices() {
  const auto& devices = problem_->devices;
  freed_.assign(devices.size(), {});
  for (const CoverPiece& piece : problem_->pieces) {
    Shortfall& sum = freed_[piece.device];
    sum.share += piece.frees.share;
    sum.memory += piece.frees.memory;
    sum.strangers += piece.frees.strangers;
  }
  open_.clear();
  parent_.assign(devices.size(), closed);
  std::int32_t fitting = 0;
  for (std::uint32_t d = 0; d < devices.size(); ++d) {
    if (!devices[d].usable) continue;
    Shortfall left = devices[d].lacks;
    if (left.met()) {
      ++fitting;
      continue;
    }
    left.reduce(freed_[d]);
    if (!left.met()) continue;
    open_.push_back(d);
    parent_[d] = d;
  }
  return fitting;
}

void CoverSolver::list_entries() {
  const auto& problem = *problem_;
  entry_ends_.assign(problem.devices.size() + 1, 0);
  for (const CoverPiece& piece : problem.pieces) {
    if (parent_[piece.device] != closed) ++entry_ends_[piece.device + 1];
  }
  for (std::size_t d = 1; d < entry_ends_.size(); ++d) entry_ends_[d] += entry_ends_[d - 1];
  entries_.resize(entry_ends_.back());
  // Filled from each device's start, which so becomes its end: shifted by one, the ends.
  for (std::uint32_t c = 0; c < problem.candidates.size(); ++c) {
    const CoverCandidate& candidate = problem.candidates[c];
    for (std::uint32_t p = candidate.first; p < candidate.first + candidate.count; ++p) {
      const std::uint32_t d = problem.pieces[p].device;
      if (parent_[d] != closed) entries_[entry_ends_[d]++] = {c, p};
    }
  }
}

std::uint32_t CoverSolver::root(std::uint32_t device) {
  while (parent_[device] != device) device = parent_[device] = parent_[parent_[device]];
  return device;
}

// The smallest device of a part is its root, so parts come in order of devices.
void CoverSolver::join_devices() {
  for (const CoverCandidate& candidate : problem_->candidates) {
    std::uint32_t first = closed;
    for (std::uint32_t p = candidate.first; p < candidate.first + candidate.count; ++p) {
      const std::uint32_t d = problem_->pieces[p].device;
      if (parent_[d] == closed) continue;
      const std::uint32_t at = root(d);
      if (first == closed) first = at;
      if (at < first) {
        parent_[first] = at;
        first = at;
      } else {
        parent_[at] = first;
      }
    }
  }
}

void CoverSolver::price_alone(const CoverCandidate& candidate, std::uint32_t index,
                              std::uint32_t devices) {
  const auto pick = static_cast<std::uint32_t>(picks_.size());
  picks_.push_back(index);
  for (std::uint32_t j = 0; j < devices; ++j) {
    points_.push_back({{candidate.price, 1}, candidate.price, pick, 1});
  }
}

void CoverSolver::price_parts(Cells& cells) {
  parts_.clear();
  points_.clear();
  picks_.clear();
  exact_ = true;
  const auto begin_of = [&](std::uint32_t d) { return d == 0 ? 0U : entry_ends_[d - 1]; };
  for (const std::uint32_t first : open_) {
    if (root(first) != first) continue;
    parts_.push_back({static_cast<std::uint32_t>(points_.size()), 0});
    std::vector<std::uint32_t> devices;
    bool alone = true;  // one candidate holds all that is lacking here
    const std::uint32_t only = entries_[begin_of(first)].candidate;
    for (const std::uint32_t d : open_) {
      if (root(d) != first) continue;
      devices.push_back(d);
      alone = alone && entry_ends_[d] - begin_of(d) == 1 && entries_[begin_of(d)].candidate == only;
    }
    parts_.back().devices = static_cast<std::uint32_t>(devices.size());
    if (alone) {
      price_alone(problem_->candidates[only], only, parts_.back().devices);
      continue;
    }
    PartSearch search;
    std::vector<std::uint32_t> candidates;
    for (const std::uint32_t d : devices) {
      search.add_device(problem_->devices[d].lacks);
      for (std::uint32_t e = begin_of(d); e < entry_ends_[d]; ++e) {
        candidates.push_back(entries_[e].candidate);
      }
    }
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    for (const std::uint32_t c : candidates) {
      const CoverCandidate& candidate = problem_->candidates[c];
      search.add_candidate(c, candidate.price);
      for (std::uint32_t p = candidate.first; p < candidate.first + candidate.count; ++p) {
        const auto at =
            std::lower_bound(devices.begin(), devices.end(), problem_->pieces[p].device);
        if (at == devices.end() || *at != problem_->pieces[p].device) continue;
        search.add_piece(static_cast<std::uint32_t>(at - devices.begin()),
                         problem_->pieces[p].frees);
      }
    }
    search.run(cells);
    exact_ = exact_ && search.exact();
    for (std::size_t j = 1; j < search.best().size(); ++j) {
      const PartSearch::Best& best = search.best()[j];
      points_.push_back({best.value, best.lower, static_cast<std::uint32_t>(picks_.size()),
                         static_cast<std::uint32_t>(best.picks.size())});
      picks_.insert(picks_.end(), best.picks.begin(), best.picks.end());
    }
  }
}

void CoverSolver::combine(std::size_t need, Cover& out) {
  best_.assign(need + 1, no_cover);
  best_[0] = {};
  choice_.assign(parts_.size() * (need + 1), 0);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const Point* points = points_.data() + parts_[part].first_point;
    for (std::size_t j = need; j > 0; --j) {
      for (std::uint32_t q = 1; q <= parts_[part].devices; ++q) {
        const CoverValue& rest = best_[j > q ? j - q : 0];
        if (rest == no_cover) continue;
        const CoverValue value = rest.plus(points[q - 1].value);
        if (!(value < best_[j])) continue;
        best_[j] = value;
        choice_[part * (need + 1) + j] = q;
      }
    }
  }
  out.feasible = true;
  out.price = best_[need].price;
  out.lower = exact_ ? out.price : combine_lower(need);
  std::size_t j = need;
  for (std::size_t part = parts_.size(); part-- > 0 && j > 0;) {
    const std::uint32_t q = choice_[part * (need + 1) + j];
    if (q == 0) continue;
    const Point& point = points_[parts_[part].first_point + q - 1];
    out.chosen.insert(out.chosen.end(), picks_.begin() + point.first_pick,
                      picks_.begin() + point.first_pick + point.picks);
    j = j > q ? j - q : 0;
  }
  std::sort(out.chosen.begin(), out.chosen.end());
}

std::int64_t CoverSolver::combine_lower(std::size_t need) const {
  std::vector<std::int64_t> best(need + 1, no_cover.price);
  best[0] = 0;
  for (const Part& part : parts_) {
    for (std::size_t j = need; j > 0; --j) {
      for (std::uint32_t q = 1; q <= part.devices; ++q) {
        const std::int64_t rest = best[j > q ? j - q : 0];
        if (rest == no_cover.price) continue;
        best[j] = std::min(best[j], add_saturated(rest, points_[part.first_point + q - 1].lower));
      }
    }
  }
  return best[need];
}

}  // namespace neap
