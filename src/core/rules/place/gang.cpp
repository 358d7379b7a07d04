#include "core/rules/place/gang.h"

#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/place/nearness.h"

namespace neap {

namespace {

// A node and how many devices it can give, as the index and the node's host say.
struct Seat {
  NodeId node;
  std::int32_t devices = 0;
};

class GangPlacer {
 public:
  GangPlacer(const PoolState& state, const Shape& shape, ModelId model, std::uint8_t mask)
      : state_(state),
        shape_(shape),
        model_(model),
        mask_(mask),
        index_(state.index->models[model.value]),
        cells_(index_.cells[mask_slot(mask)]),
        split_(split_of(shape.request, state.models[model.value].per_node)) {}

  std::vector<Slot> run(GangParts parts) {
    const Cell within = shape_.request.near.within;
    const auto count = static_cast<std::uint32_t>(shape_.request.count);
    const bool on_one_node = within != Cell::any && within < Cell::rack;
    if (on_one_node || index_.free_whole[mask_slot(mask_)] < count) return {};
    const bool even = parts == GangParts::whole_nodes;
    if (even && full_nodes() < split_.nodes) return {};
    for (const std::uint32_t rack : racks(parts)) {
      if (try_cell(seats_of(state_.index->rack_nodes[rack]), parts)) return slots_;
    }
    if (within == Cell::rack) return {};
    for (const std::uint32_t domain : domains(parts)) {
      if (try_cell(seats_of(state_.index->domain_nodes[domain]), parts)) return slots_;
    }
    if (within == Cell::domain) return {};
    if (even ? try_cell(full_seats(), parts) : over_the_fullest()) return slots_;
    return {};
  }

 private:
  [[nodiscard]] std::int32_t full_nodes() const {
    const auto& buckets = index_.whole[mask_slot(mask_)];
    std::uint32_t nodes = 0;
    for (auto f = static_cast<std::size_t>(split_.per_node); f < buckets.size(); ++f) {
      nodes += buckets[f].size();
    }
    return static_cast<std::int32_t>(nodes);
  }

  // Those that could hold it all; where the fewest whole nodes, then the fewest devices, are left.
  std::vector<std::uint32_t> cells_for(const MostOf& free, const MostOf& full,
                                       GangParts parts) const {
    std::vector<std::uint32_t> cells = free.at_least(shape_.request.count);
    if (parts == GangParts::whole_nodes) {
      std::erase_if(cells, [&](std::uint32_t c) { return full.at(c) < split_.nodes; });
    }
    std::sort(cells.begin(), cells.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (full.at(a) != full.at(b)) return full.at(a) < full.at(b);
      return free.at(a) != free.at(b) ? free.at(a) < free.at(b) : a < b;
    });
    return cells;
  }
  std::vector<std::uint32_t> racks(GangParts parts) const {
    return cells_for(cells_.free_by_rack, cells_.full_by_rack, parts);
  }
  std::vector<std::uint32_t> domains(GangParts parts) const {
    return cells_for(cells_.free_by_domain, cells_.full_by_domain, parts);
  }

  // What a node can give; none where the task may not be at all.
  [[nodiscard]] Seat seat_of(NodeId node) const {
    std::int32_t free = 0;
    for (const auto& count : state_.index->node_counts[node.value]) {
      if (count.model == model_) free = count.free[mask_slot(mask_)];
    }
    if (free == 0) return {node, 0};
    free = std::min(free, devices_for(shape_.request, free_host(state_.node(node))));
    return {node, free > 0 && !is_kept_off(state_, shape_, node) ? free : 0};
  }

  std::vector<Seat> seats_of(const std::vector<NodeId>& nodes) const {
    std::vector<Seat> seats;
    for (const NodeId node : nodes) {
      const Seat seat = seat_of(node);
      if (seat.devices > 0) seats.push_back(seat);
    }
    // Training fills from the first node, inference from the last, so that they meet late.
    if (shape_.purpose == Purpose::inference) std::reverse(seats.begin(), seats.end());
    return seats;
  }

  std::vector<Seat> full_seats() const {
    std::vector<NodeId> nodes;
    const auto& buckets = index_.whole[mask_slot(mask_)];
    const std::int32_t least = split_.remainder > 0 ? split_.remainder : split_.per_node;
    for (auto f = static_cast<std::size_t>(least); f < buckets.size(); ++f) {
      for (auto n = buckets[f].first(); n; n = buckets[f].at_or_after(*n + 1)) {
        nodes.emplace_back(*n);
      }
    }
    std::sort(nodes.begin(), nodes.end());
    return seats_of(nodes);
  }

  bool try_cell(std::vector<Seat> seats, GangParts parts) {
    slots_.clear();
    std::int64_t sum = 0;
    for (const Seat& seat : seats) sum += seat.devices;
    if (sum < shape_.request.count) return false;
    return parts == GangParts::whole_nodes ? on_whole_nodes(std::move(seats))
                                           : on_few_nodes(std::move(seats));
  }

  // ---- whole nodes and one for the rest -------------------------------------------------------

  bool on_whole_nodes(std::vector<Seat> seats) {
    const auto middle = std::stable_partition(
        seats.begin(), seats.end(), [&](const Seat& s) { return s.devices >= split_.per_node; });
    if (middle - seats.begin() < split_.nodes) return false;
    in_few_cells(seats.begin(), middle, static_cast<std::size_t>(split_.nodes));
    std::vector<NodeId> used;
    for (auto at = seats.begin();
         at != middle && used.size() < static_cast<std::size_t>(split_.nodes); ++at) {
      if (take(at->node, split_.per_node) > 0) used.push_back(at->node);
    }
    if (used.size() < static_cast<std::size_t>(split_.nodes)) return false;
    return split_.remainder == 0 || take_rest(std::move(seats), used);
  }

  using Seats = std::vector<Seat>::iterator;

  // Orders them so that the first `wanted` are in few fault domains, and there in few racks.
  void in_few_cells(Seats begin, Seats end, std::size_t wanted) const {
    const auto domain = [&](const Seat& s) {
      return static_cast<std::uint32_t>(state_.node(s.node).domain.value);
    };
    const auto rack = [&](const Seat& s) { return state_.node(s.node).rack.value; };
    few_first(begin, end, wanted, domain);
    for (auto at = begin; at != end && wanted > 0;) {
      const auto next =
          std::find_if(at, end, [&](const Seat& s) { return domain(s) != domain(*at); });
      const std::size_t here = std::min(wanted, static_cast<std::size_t>(next - at));
      few_first(at, next, here, rack);
      wanted -= here;
      at = next;
    }
  }

  // The smallest cell that holds all that is wanted; if none does the largest, and so on.
  template <class CellOf>
  static void few_first(Seats begin, Seats end, std::size_t wanted, CellOf&& cell_of) {
    std::stable_sort(begin, end,
                     [&](const Seat& a, const Seat& b) { return cell_of(a) < cell_of(b); });
    struct Run {
      std::size_t first, size;
    };
    std::vector<Run> runs;
    for (auto at = begin; at != end;) {
      const auto next =
          std::find_if(at, end, [&](const Seat& s) { return cell_of(s) != cell_of(*at); });
      runs.push_back({static_cast<std::size_t>(at - begin), static_cast<std::size_t>(next - at)});
      at = next;
    }
    std::stable_sort(runs.begin(), runs.end(),
                     [](const Run& a, const Run& b) { return a.size > b.size; });
    const std::vector<Seat> seats(begin, end);
    auto out = begin;
    while (!runs.empty()) {
      // From the largest down: the last that still has enough, or the very largest.
      auto best = runs.begin();
      for (auto at = runs.begin(); at != runs.end() && at->size >= wanted; ++at) {
        if (at->size < best->size) best = at;
      }
      const auto from = seats.begin() + static_cast<std::ptrdiff_t>(best->first);
      out = std::copy(from, from + static_cast<std::ptrdiff_t>(best->size), out);
      wanted -= std::min(wanted, best->size);
      runs.erase(best);
      if (wanted == 0) break;
    }
    for (const Run& run : runs) {
      const auto from = seats.begin() + static_cast<std::ptrdiff_t>(run.first);
      out = std::copy(from, from + static_cast<std::ptrdiff_t>(run.size), out);
    }
  }

  // Near the others, on the node with the fewest devices that are enough.
  bool take_rest(std::vector<Seat> seats, const std::vector<NodeId>& used) {
    std::erase_if(seats, [&](const Seat& seat) {
      return seat.devices < split_.remainder ||
             std::find(used.begin(), used.end(), seat.node) != used.end();
    });
    const auto distance = [&](const Seat& seat) {
      int least = 2;
      for (const NodeId node : used) {
        const bool same_rack = state_.node(node).rack == state_.node(seat.node).rack;
        const bool same_domain = state_.node(node).domain == state_.node(seat.node).domain;
        least = std::min(least, same_rack ? 0 : same_domain ? 1 : 2);
      }
      return least;
    };
    struct Choice {
      int distance;
      std::int32_t devices;
      NodeId node;
    };
    std::vector<Choice> choices;
    for (const Seat& seat : seats) choices.push_back({distance(seat), seat.devices, seat.node});
    std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return a.distance != b.distance ? a.distance < b.distance : a.devices < b.devices;
    });
    return std::any_of(choices.begin(), choices.end(), [&](const Choice& choice) {
      return take(choice.node, split_.remainder) > 0;
    });
  }

  // ---- what is free, of few nodes -------------------------------------------------------------

  // Again and again the node with the most; for the last part the one with the fewest that are
  // enough. Of equal ones the first.
  bool on_few_nodes(std::vector<Seat> seats) {
    std::reverse(seats.begin(), seats.end());
    std::stable_sort(seats.begin(), seats.end(),
                     [](const Seat& a, const Seat& b) { return a.devices < b.devices; });
    const auto has_less = [](const Seat& s, std::int32_t n) { return s.devices < n; };
    std::int32_t left = shape_.request.count;
    while (left > 0 && !seats.empty()) {
      auto best = std::prev(seats.end());
      if (best->devices > left) {
        const auto enough = std::lower_bound(seats.begin(), seats.end(), left, has_less);
        best = std::prev(std::lower_bound(enough, seats.end(), enough->devices + 1, has_less));
      }
      left -= take_most(best->node, std::min(best->devices, left));
      seats.erase(best);
    }
    return left == 0;
  }

  // Over the whole pool. Nodes with much come first, and most of the time no others are looked at.
  bool over_the_fullest() {
    const auto& buckets = index_.whole[mask_slot(mask_)];
    std::vector<Seat> seats;
    std::int32_t sum = 0;
    bool tried = false;
    for (std::size_t f = buckets.size(); f-- > 1;) {
      std::vector<NodeId> nodes;
      for (auto n = buckets[f].first(); n; n = buckets[f].at_or_after(*n + 1)) {
        nodes.emplace_back(*n);
      }
      for (const Seat& seat : seats_of(nodes)) {
        seats.push_back(seat);
        sum += seat.devices;
        if (tried || sum < shape_.request.count) continue;
        if (try_cell(seats, GangParts::uneven)) return true;
        tried = true;  // the predicate refused some: all are needed
      }
    }
    return try_cell(std::move(seats), GangParts::uneven);
  }

  // ---- asking the predicate -------------------------------------------------------------------

  std::int32_t take(NodeId node, std::int32_t devices) {
    NodeRoom room = room_of(state_, node, shape_);
    for (DeviceRoom& device : room.devices) {
      device.allowed = device.allowed && state_.device(device.device).model == model_;
    }
    const auto part = place_on_node(state_, room, shape_, devices, mask_);
    slots_.insert(slots_.end(), part.begin(), part.end());
    return static_cast<std::int32_t>(part.size());
  }

  std::int32_t take_most(NodeId node, std::int32_t devices) {
    for (; devices > 0; --devices) {
      if (take(node, devices) > 0) return devices;
    }
    return 0;
  }

  const PoolState& state_;
  const Shape& shape_;
  ModelId model_;
  std::uint8_t mask_;
  const ModelIndex& index_;
  const CellCounts& cells_;
  Split split_;
  std::vector<Slot> slots_;
};

}  // namespace

std::vector<Slot> place_gang(const PoolState& state, const Shape& shape, ModelId model,
                             std::uint8_t mask, GangParts parts) {
  return GangPlacer(state, shape, model, mask).run(parts);
}

}  // namespace neap
