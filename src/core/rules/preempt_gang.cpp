#include "core/rules/preempt_gang.h"

#include <algorithm>
#include <limits>

#include "core/rules/preempt_host.h"

namespace neap {

namespace {

constexpr std::int64_t impossible = std::numeric_limits<std::int64_t>::max();
constexpr CoverValue no_value{impossible, 0};

// How many devices fit once these jobs are gone, and its host is enough for.
std::int32_t fitting(const GangNode& node, const std::vector<bool>& gone) {
  const CoverProblem& cover = node.problem.cover;
  std::vector<Shortfall> lacks;
  lacks.reserve(cover.devices.size());
  for (const CoverDevice& device : cover.devices) lacks.push_back(device.lacks);
  HostPart host = node.problem.room.host;
  for (std::size_t c = 0; c < cover.candidates.size(); ++c) {
    if (!gone[node.jobs[c]]) continue;
    host = host.plus(node.problem.host_frees[c]);
    const CoverCandidate& candidate = cover.candidates[c];
    for (std::uint32_t p = candidate.first; p < candidate.first + candidate.count; ++p) {
      lacks[cover.pieces[p].device].reduce(cover.pieces[p].frees);
    }
  }
  std::int32_t count = 0;
  for (std::size_t d = 0; d < lacks.size(); ++d) {
    count += cover.devices[d].usable && lacks[d].met() ? 1 : 0;
  }
  return std::min(count, devices_for(node.problem.request, host));
}

bool is_short_of_host(const NodeProblem& problem) {
  const auto devices = static_cast<std::int32_t>(problem.cover.devices.size());
  return !problem.room.host.covers(host_part(problem.request, devices));
}

class GangSearch {
 public:
  GangSearch(const GangProblem& gang, Cells& cells) : gang_(gang), cells_(cells) {}

  GangCover run() {
    read_nodes();
    taken_.assign(gang_.jobs.size(), 0);
    seated_.assign(gang_.nodes.size(), false);
    if (full_.size() < wanted()) return {false, true, {}, {}};
    sum_parts();
    descend(0, 0, {}, 0);
    out_.exact = !cut_;
    if (cut_) {
      add_greedily(By::addition);
      add_greedily(By::part);
    }
    return out_;
  }

 private:
  enum class By : std::uint8_t { addition, part };

  struct FullNode {
    std::uint32_t node = 0;
    std::int64_t part = 0;  // of the price of its jobs, spread over the nodes they are on
    std::vector<std::uint32_t> jobs;
  };

  [[nodiscard]] std::size_t wanted() const { return static_cast<std::size_t>(gang_.split.nodes); }

  // What must leave each node for all its devices to be free, and the usual price of the rest.
  void read_nodes() {
    rest_.assign(gang_.nodes.size(), {});
    for (std::uint32_t n = 0; n < gang_.nodes.size(); ++n) {
      const GangNode& node = gang_.nodes[n];
      Cover cover;
      solve_node(solver_, node.problem, gang_.split.per_node, cells_, cover);
      if (cover.feasible) {
        // The host may leave a choice of victims, which is not searched here.
        cut_ = cut_ || is_short_of_host(node.problem);
        FullNode& full = full_.emplace_back();
        full.node = n;
        for (const std::uint32_t c : cover.chosen) {
          const std::uint32_t job = node.jobs[c];
          full.jobs.push_back(job);
          full.part = add_saturated(full.part, gang_.jobs[job].cost / gang_.parts[job]);
        }
      }
      if (gang_.split.remainder > 0) {
        solve_node(solver_, node.problem, gang_.split.remainder, cells_, rest_[n]);
      }
    }
    std::stable_sort(full_.begin(), full_.end(),
                     [](const FullNode& a, const FullNode& b) { return a.part < b.part; });
  }

  void sum_parts() {
    sums_.assign(full_.size() + 1, 0);
    for (std::size_t i = 0; i < full_.size(); ++i) {
      sums_[i + 1] = add_saturated(sums_[i], full_[i].part);
    }
  }

  CoverValue seat(const FullNode& full) {
    CoverValue added;
    seated_[full.node] = true;
    for (const std::uint32_t job : full.jobs) {
      if (taken_[job]++ == 0) added = added.plus({gang_.jobs[job].cost, 1});
    }
    return added;
  }

  void unseat(const FullNode& full) {
    seated_[full.node] = false;
    for (const std::uint32_t job : full.jobs) --taken_[job];
  }

  // `parts` is the sum of parts of the `seats` nodes chosen so far: with the cheapest parts to
  // come it bounds the price of all that follows.
  void descend(std::size_t at, std::size_t seats, CoverValue value, std::int64_t parts) {
    cells_.spend(4);
    if (seats == wanted()) {
      finish(value);
      return;
    }
    const std::size_t more = wanted() - seats;
    if (at + more > full_.size()) return;
    if (cells_.spent() && out_.feasible) {
      cut_ = true;
      return;
    }
    const std::int64_t ahead =
        sums_[at + more] == saturated_cost ? 0 : sums_[at + more] - sums_[at];
    const std::int64_t bound = std::max(value.price, add_saturated(parts, ahead));
    if (out_.feasible && bound >= out_.value.price) return;
    const FullNode& full = full_[at];
    descend(at + 1, seats + 1, value.plus(seat(full)), add_saturated(parts, full.part));
    unseat(full);
    descend(at + 1, seats, value, parts);
  }

  // Whole nodes are chosen: the cheapest node for the rest, with their jobs free of charge.
  void finish(CoverValue value) {
    if (gang_.split.remainder == 0) {
      record(value, {});
      return;
    }
    cells_.spend(static_cast<std::int64_t>(gang_.nodes.size()));
    CoverValue least = no_value;
    std::vector<std::uint32_t> picks;
    for (std::uint32_t n = 0; n < gang_.nodes.size(); ++n) {
      if (seated_[n] || !rest_[n].feasible) continue;
      const GangNode& node = gang_.nodes[n];
      const bool is_coupled = std::any_of(node.jobs.begin(), node.jobs.end(),
                                          [&](std::uint32_t job) { return taken_[job] > 0; });
      const Cover* cover = &rest_[n];
      if (is_coupled) {
        discounted_ = node.problem;
        for (std::size_t c = 0; c < node.jobs.size(); ++c) {
          if (taken_[node.jobs[c]] > 0) discounted_.cover.candidates[c].price = 0;
        }
        solve_node(solver_, discounted_, gang_.split.remainder, cells_, scratch_);
        cover = &scratch_;
      }
      CoverValue price;
      std::vector<std::uint32_t> added;
      for (const std::uint32_t c : cover->chosen) {
        const std::uint32_t job = node.jobs[c];
        if (taken_[job] > 0) continue;
        price = price.plus({gang_.jobs[job].cost, 1});
        added.push_back(job);
      }
      if (cover->lower != cover->price) cut_ = true;
      if (!(price < least)) continue;
      least = price;
      picks = std::move(added);
    }
    if (least == no_value) return;
    record(value.plus(least), picks);
  }

  void record(CoverValue value, const std::vector<std::uint32_t>& also) {
    if (out_.feasible && !(value < out_.value)) return;
    out_.feasible = true;
    out_.value = value;
    out_.jobs = also;
    for (std::uint32_t job = 0; job < taken_.size(); ++job) {
      if (taken_[job] > 0) out_.jobs.push_back(job);
    }
    std::sort(out_.jobs.begin(), out_.jobs.end());
  }

  void add_greedily(By by) {
    taken_.assign(gang_.jobs.size(), 0);
    seated_.assign(gang_.nodes.size(), false);
    CoverValue value;
    for (std::size_t seats = 0; seats < wanted(); ++seats) {
      const FullNode* best = nullptr;
      CoverValue least = no_value;
      for (const FullNode& full : full_) {
        if (seated_[full.node]) continue;
        CoverValue price{by == By::part ? full.part : 0, 0};
        for (const std::uint32_t job : full.jobs) {
          if (by == By::addition && taken_[job] == 0) {
            price = price.plus({gang_.jobs[job].cost, 1});
          }
        }
        if (!(price < least)) continue;
        least = price;
        best = &full;
        if (by == By::part) break;  // they are in this order
      }
      if (best == nullptr) return;
      value = value.plus(seat(*best));
    }
    finish(value);
  }

  const GangProblem& gang_;
  Cells& cells_;
  CoverSolver solver_;
  std::vector<FullNode> full_;        // cheapest part first
  std::vector<std::int64_t> sums_;    // of parts, by position
  std::vector<Cover> rest_;           // by node
  std::vector<std::uint32_t> taken_;  // by job: seated nodes that need it gone
  std::vector<bool> seated_;          // by node
  NodeProblem discounted_;
  Cover scratch_;
  GangCover out_;
  bool cut_ = false;
};

}  // namespace

void number_jobs(GangProblem& gang) {
  gang.jobs.clear();
  for (const GangNode& node : gang.nodes) {
    gang.jobs.insert(gang.jobs.end(), node.problem.victims.begin(), node.problem.victims.end());
  }
  const auto by_task = [](const Victim& a, const Victim& b) { return a.task < b.task; };
  std::sort(gang.jobs.begin(), gang.jobs.end(), by_task);
  gang.jobs.erase(std::unique(gang.jobs.begin(), gang.jobs.end()), gang.jobs.end());
  gang.parts.assign(gang.jobs.size(), 0);
  for (GangNode& node : gang.nodes) {
    node.jobs.clear();
    for (const Victim& victim : node.problem.victims) {
      const auto at = std::lower_bound(gang.jobs.begin(), gang.jobs.end(), victim, by_task);
      node.jobs.push_back(static_cast<std::uint32_t>(at - gang.jobs.begin()));
      ++gang.parts[node.jobs.back()];
    }
  }
}

GangCover cover_gang(const GangProblem& gang, Cells& cells) {
  return GangSearch(gang, cells).run();
}

std::optional<std::vector<std::uint32_t>> seats_of(const GangProblem& gang,
                                                   const std::vector<bool>& gone) {
  std::vector<std::uint32_t> seats;
  std::optional<std::uint32_t> rest;
  std::int32_t rest_fits = std::numeric_limits<std::int32_t>::max();
  for (std::uint32_t n = 0; n < gang.nodes.size(); ++n) {
    const std::int32_t fits = fitting(gang.nodes[n], gone);
    if (fits >= gang.split.per_node && seats.size() < static_cast<std::size_t>(gang.split.nodes)) {
      seats.push_back(n);
    } else if (fits >= gang.split.remainder && fits < rest_fits) {
      rest = n;  // the node with the fewest to spare
      rest_fits = fits;
    }
  }
  if (seats.size() < static_cast<std::size_t>(gang.split.nodes)) return std::nullopt;
  if (gang.split.remainder == 0) return seats;
  if (!rest) return std::nullopt;
  seats.push_back(*rest);
  return seats;
}

}  // namespace neap
