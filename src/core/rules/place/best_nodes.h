// For every shape of pod, the node with the highest score, kept up to date lazily.
//
// A shape keeps heaps of (score, node). A node that changes is noted in one log; a shape reads the
// log when it is asked next, scores the nodes that have changed since, and pushes what it gets. An
// entry counts while the node's version is still its own, so nothing is ever taken out but from
// the top. Entries lie in cells: nodes of one cell have the same price, and a price is taken from
// a score only when the tops of the cells are compared. So a new price costs nothing here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/rules/place/supply.h"

namespace neap::leftover {

struct Grade {
  std::int64_t score = 0;
  std::uint32_t cell = 0;
};

// Which of nodes with equal scores is taken.
enum class Equals : std::uint8_t { first, last };

struct ScoredNode {
  std::uint32_t node = 0;
  std::int64_t score = 0;  // less the price
};

// A shape of pods as the index knows it.
struct ShapeRef {
  const Demand& demand;
  std::uint32_t id;
};

// Grader:
//   using Nodes = ...;   with size(), and operator[] that gives a Supply or what is one
//   std::optional<Grade> grade(const Supply&, std::uint32_t node, ShapeRef);   nothing: no room
//   std::int64_t price(ShapeRef, std::uint32_t cell);
//   std::uint32_t cells() const;
// Accept: bool(std::uint32_t node): whether it will do, beside its score.
template <class Grader>
class BestNodes {
 public:
  using Nodes = typename Grader::Nodes;

  explicit BestNodes(Grader& grader) : grader_(grader) {}
  BestNodes(const std::vector<Demand>& shapes, Grader& grader) : grader_(grader) {
    for (const Demand& demand : shapes) add(demand, Equals::first);
  }

  // The id of a new shape.
  std::uint32_t add(const Demand& demand, Equals equals) {
    Ranking& ranking = rankings_.emplace_back();
    ranking.demand = demand;
    ranking.flip = equals == Equals::last ? ~std::uint32_t{0} : 0;
    return static_cast<std::uint32_t>(rankings_.size() - 1);
  }
  // Another demand takes the place of one that is not asked for any more.
  void replace(std::uint32_t shape, const Demand& demand, Equals equals) {
    rankings_[shape] = Ranking();
    rankings_[shape].demand = demand;
    rankings_[shape].flip = equals == Equals::last ? ~std::uint32_t{0} : 0;
  }
  // All scores may have changed.
  void forget_scores() {
    for (Ranking& ranking : rankings_) ranking.built = false;
  }

  void changed(const Nodes& nodes, std::uint32_t node) {
    log_.push_back({node, nodes[node].version});
    // A shape that has not been asked for so long starts anew.
    if (log_.size() > 8 * nodes.size() + 1024) {
      const std::size_t half = log_.size() / 2;
      log_.erase(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(half));
      dropped_ += half;
    }
  }

  // The highest score of those that will do; of equals the first or last node.
  template <class Accept>
  [[nodiscard]] std::optional<ScoredNode> best(const Nodes& nodes, std::uint32_t shape,
                                               const Accept& accept) {
    Ranking& ranking = up_to_date(nodes, shape);
    std::optional<Entry> best;
    for (Cell& cell : ranking.cells) {
      drop_stale(nodes, ranking, cell.heap);
      if (cell.heap.empty()) continue;
      const std::int64_t price = grader_.price({ranking.demand, shape}, cell.id);
      if (best && !(*best < less(cell.heap.front(), price))) continue;
      const Entry* found = accept(cell.heap.front().order ^ ranking.flip)
                               ? &cell.heap.front()
                               : first_accepted(nodes, ranking, cell.heap, accept);
      if (found != nullptr && (!best || *best < less(*found, price))) best = less(*found, price);
    }
    if (!best) return std::nullopt;
    return ScoredNode{best->order ^ ranking.flip, best->score};
  }

  // All nodes with the highest score of those that will do, by index.
  template <class Accept>
  [[nodiscard]] std::vector<std::uint32_t> all_best(const Nodes& nodes, std::uint32_t shape,
                                                    const Accept& accept) {
    std::vector<std::uint32_t> found;
    const auto top = best(nodes, shape, accept);
    if (!top) return found;
    const Ranking& ranking = rankings_[shape];
    for (const Cell& cell : ranking.cells) {
      const std::int64_t price = grader_.price({ranking.demand, shape}, cell.id);
      collect(nodes, ranking, cell.heap, top->score + price, found);
    }
    std::erase_if(found, [&](std::uint32_t node) { return !accept(node); });
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  struct Entry {
    std::int64_t score;
    std::uint32_t order;  // among equals: the node, or its complement where the last is taken
    std::uint32_t version;

    // The heap keeps the largest on top: the highest score, then the first in order.
    bool operator<(const Entry& other) const {
      return score != other.score ? score < other.score : order > other.order;
    }
  };
  using Heap = std::vector<Entry>;
  struct Cell {
    std::uint32_t id;
    Heap heap;
  };
  struct Ranking {
    Demand demand;
    std::uint32_t flip = 0;  // node ^ flip is an entry's order
    std::size_t seen = 0;    // of the log
    bool built = false;
    std::size_t entries = 0;  // stale ones too
    std::vector<Cell> cells;
    std::vector<std::uint16_t> place;  // of a cell's id among the cells, plus one
  };
  struct Change {
    std::uint32_t node;
    std::uint32_t version;
  };

  static Entry less(Entry entry, std::int64_t price) {
    entry.score -= price;
    return entry;
  }

  static bool stale(const Nodes& nodes, const Ranking& ranking, const Entry& entry) {
    return nodes[entry.order ^ ranking.flip].version != entry.version;
  }

  Ranking& up_to_date(const Nodes& nodes, std::uint32_t shape) {
    Ranking& ranking = rankings_[shape];
    const std::size_t end = dropped_ + log_.size();
    if (!ranking.built || ranking.seen < dropped_ || end - ranking.seen > nodes.size()) {
      rebuild(nodes, ranking, shape);
    } else {
      for (std::size_t i = ranking.seen - dropped_; i < log_.size(); ++i) {
        const auto& node = nodes[log_[i].node];
        if (node.version != log_[i].version) continue;  // changed again, further on
        if (Heap* heap = push(nodes, ranking, shape, log_[i].node)) {
          std::push_heap(heap->begin(), heap->end());
        }
      }
      if (ranking.entries > 2 * nodes.size() + 64) compact(nodes, ranking);
    }
    ranking.seen = end;
    return ranking;
  }

  // The heap that has got one more entry at its end, which is not yet a heap.
  Heap* push(const Nodes& nodes, Ranking& ranking, std::uint32_t shape, std::uint32_t index) {
    const auto& node = nodes[index];
    const std::optional<Grade> grade = grader_.grade(node, index, {ranking.demand, shape});
    if (!grade) return nullptr;
    Heap& heap = cell_of(ranking, grade->cell).heap;
    heap.push_back({grade->score, index ^ ranking.flip, node.version});
    ++ranking.entries;
    return &heap;
  }

  Cell& cell_of(Ranking& ranking, std::uint32_t id) {
    if (ranking.place.size() <= id) ranking.place.resize(grader_.cells(), 0);
    std::uint16_t& place = ranking.place[id];
    if (place == 0) {
      ranking.cells.push_back({id, {}});
      place = static_cast<std::uint16_t>(ranking.cells.size());
    }
    return ranking.cells[place - 1U];
  }

  void rebuild(const Nodes& nodes, Ranking& ranking, std::uint32_t shape) {
    for (Cell& cell : ranking.cells) cell.heap.clear();
    ranking.entries = 0;
    ranking.built = true;
    for (std::uint32_t n = 0; n < nodes.size(); ++n) push(nodes, ranking, shape, n);
    for (Cell& cell : ranking.cells) std::make_heap(cell.heap.begin(), cell.heap.end());
  }

  static void compact(const Nodes& nodes, Ranking& ranking) {
    ranking.entries = 0;
    for (Cell& cell : ranking.cells) {
      std::erase_if(cell.heap, [&](const Entry& entry) { return stale(nodes, ranking, entry); });
      std::make_heap(cell.heap.begin(), cell.heap.end());
      ranking.entries += cell.heap.size();
    }
  }

  static void drop_stale(const Nodes& nodes, const Ranking& ranking, Heap& heap) {
    while (!heap.empty() && stale(nodes, ranking, heap.front())) {
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
    }
  }

  // The first in the order of the heap that will do: what is accepted beside the score is seldom
  // short, so it is not worth a ranking of its own for every amount.
  template <class Accept>
  const Entry* first_accepted(const Nodes& nodes, const Ranking& ranking, const Heap& heap,
                              const Accept& accept) {
    const auto behind = [&](std::size_t a, std::size_t b) { return heap[a] < heap[b]; };
    open_.assign(1, 0);
    while (!open_.empty()) {
      std::pop_heap(open_.begin(), open_.end(), behind);
      const std::size_t at = open_.back();
      open_.pop_back();
      const Entry& entry = heap[at];
      if (!stale(nodes, ranking, entry) && accept(entry.order ^ ranking.flip)) return &entry;
      for (const std::size_t child : {2 * at + 1, 2 * at + 2}) {
        if (child >= heap.size()) continue;
        open_.push_back(child);
        std::push_heap(open_.begin(), open_.end(), behind);
      }
    }
    return nullptr;
  }

  void collect(const Nodes& nodes, const Ranking& ranking, const Heap& heap, std::int64_t score,
               std::vector<std::uint32_t>& into) {
    open_.assign(1, 0);
    while (!open_.empty()) {
      const std::size_t at = open_.back();
      open_.pop_back();
      if (at >= heap.size() || heap[at].score < score) continue;
      const Entry& entry = heap[at];
      if (entry.score == score && !stale(nodes, ranking, entry)) {
        into.push_back(entry.order ^ ranking.flip);
      }
      open_.push_back(2 * at + 1);
      open_.push_back(2 * at + 2);
    }
  }

  Grader& grader_;
  std::vector<Ranking> rankings_;
  std::vector<Change> log_;
  std::size_t dropped_ = 0;  // from the front of the log, in all
  std::vector<std::size_t> open_;
};

}  // namespace neap::leftover
