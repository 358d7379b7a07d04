#include "core/rules/preempt_host.h"

#include <algorithm>
#include <limits>

namespace neap {

namespace {

// A node with more candidates than this is not worth all of a search's operations.
constexpr std::int64_t cells_per_node = 20'000;

class HostSearch {
 public:
  HostSearch(const CoverProblem& cover, const NodeProblem& node, std::int32_t devices,
             HostPart wanted)
      : cover_(cover), node_(node), devices_(devices), wanted_(wanted) {
    for (std::uint32_t c = 0; c < cover.candidates.size(); ++c) order_.push_back(c);
    std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return cover.candidates[a].price < cover.candidates[b].price;
    });
  }

  // `first` is enough for the devices alone: its price is the lower bound when cells run out.
  void run(Cells& cells, Cover& out) {
    lacks_.clear();
    for (const CoverDevice& device : cover_.devices) lacks_.push_back(device.lacks);
    std::vector<bool> all(cover_.candidates.size(), true);
    best_.clear();
    if (!is_enough(all)) {
      out = {};
      return;
    }
    const std::int64_t lower = out.price;
    drop_the_dearest(all);
    Cells mine(std::min(cells.left(), cells_per_node));
    const std::int64_t before = mine.left();
    chosen_.assign(cover_.candidates.size(), false);
    descend(0, {}, mine);
    cells.spend(before - std::max<std::int64_t>(0, mine.left()));
    out.feasible = true;
    out.price = value_.price;
    out.lower = cut_ ? std::min(lower, value_.price) : value_.price;
    out.chosen = best_;
  }

 private:
  [[nodiscard]] bool is_enough(const std::vector<bool>& gone) const {
    HostPart host = node_.room.host;
    std::vector<Shortfall> lacks = lacks_;
    for (std::size_t c = 0; c < gone.size(); ++c) {
      if (!gone[c]) continue;
      host = host.plus(node_.host_frees[c]);
      const CoverCandidate& candidate = cover_.candidates[c];
      for (std::uint32_t p = candidate.first; p < candidate.first + candidate.count; ++p) {
        lacks[cover_.pieces[p].device].reduce(cover_.pieces[p].frees);
      }
    }
    if (!host.covers(wanted_)) return false;
    std::int32_t fitting = 0;
    for (std::size_t d = 0; d < lacks.size(); ++d) {
      fitting += cover_.devices[d].usable && lacks[d].met() ? 1 : 0;
    }
    return fitting >= devices_;
  }

  void record(const std::vector<bool>& gone, CoverValue value) {
    value_ = value;
    best_.clear();
    for (std::uint32_t c = 0; c < gone.size(); ++c) {
      if (gone[c]) best_.push_back(c);
    }
  }

  // A first answer: all of them, less those that are to spare, the dearest first.
  void drop_the_dearest(std::vector<bool> gone) {
    for (std::size_t i = order_.size(); i-- > 0;) {
      gone[order_[i]] = false;
      if (!is_enough(gone)) gone[order_[i]] = true;
    }
    CoverValue value;
    for (std::size_t c = 0; c < gone.size(); ++c) {
      if (gone[c]) value = value.plus({cover_.candidates[c].price, 1});
    }
    record(gone, value);
  }

  // Leaves out or takes the candidates in turn. `chosen_` with all that follow is the most that
  // can come of it.
  void descend(std::size_t at, CoverValue value, Cells& cells) {
    cells.spend(static_cast<std::int64_t>(cover_.pieces.size() + cover_.devices.size()));
    if (cells.spent()) {
      cut_ = true;
      return;
    }
    if (!(value < value_)) return;
    if (is_enough(chosen_)) {
      record(chosen_, value);
      return;
    }
    if (at == order_.size()) return;
    std::vector<bool> rest = chosen_;
    for (std::size_t i = at; i < order_.size(); ++i) rest[order_[i]] = true;
    if (!is_enough(rest)) return;
    const std::uint32_t c = order_[at];
    chosen_[c] = true;
    descend(at + 1, value.plus({cover_.candidates[c].price, 1}), cells);
    chosen_[c] = false;
    descend(at + 1, value, cells);
  }

  const CoverProblem& cover_;
  const NodeProblem& node_;
  std::int32_t devices_;
  HostPart wanted_;
  std::vector<std::uint32_t> order_;  // cheapest first
  std::vector<Shortfall> lacks_;
  std::vector<bool> chosen_;
  std::vector<std::uint32_t> best_;
  CoverValue value_;
  bool cut_ = false;
};

void with_host(CoverSolver& solver, const CoverProblem& cover, const NodeProblem& node,
               std::int32_t devices, Cells& cells, Cover& out) {
  solver.solve(cover, devices, cells, out);
  if (!out.feasible || !needs_host(node.request)) return;
  const HostPart wanted = host_part(node.request, devices);
  HostPart host = node.room.host;
  for (const std::uint32_t c : out.chosen) host = host.plus(node.host_frees[c]);
  if (!host.covers(wanted)) HostSearch(cover, node, devices, wanted).run(cells, out);
}

}  // namespace

void solve_node(CoverSolver& solver, const NodeProblem& problem, std::int32_t devices, Cells& cells,
                Cover& out) {
  const auto& rooms = problem.room.devices;
  if (problem.request.near.within != Cell::pair || devices < 2) {
    with_host(solver, problem.cover, problem, devices, cells, out);
    return;
  }
  Cover best;
  std::int64_t lower = std::numeric_limits<std::int64_t>::max();
  for (std::size_t d = 0; d < rooms.size(); ++d) {
    const auto same = [&](const DeviceRoom& room) { return room.pair == rooms[d].pair; };
    const bool is_first = std::find_if(rooms.begin(), rooms.end(), same) ==
                          rooms.begin() + static_cast<std::ptrdiff_t>(d);
    if (rooms[d].pair < 0 || !is_first) continue;
    CoverProblem one = problem.cover;
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      one.devices[i].usable = one.devices[i].usable && same(rooms[i]);
    }
    Cover cover;
    with_host(solver, one, problem, devices, cells, cover);
    if (!cover.feasible) continue;
    lower = std::min(lower, cover.lower);
    const bool better = !best.feasible || cover.price < best.price ||
                        (cover.price == best.price && cover.chosen.size() < best.chosen.size());
    if (better) best = std::move(cover);
  }
  best.lower = best.feasible ? lower : 0;
  out = std::move(best);
}

}  // namespace neap
