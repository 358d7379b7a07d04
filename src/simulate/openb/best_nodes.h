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

#include "simulate/openb/cluster.h"

namespace neap::simulate {

struct Grade {
  std::int64_t score = 0;
  std::uint32_t cell = 0;
};

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
//   std::optional<Grade> grade(const Node&, std::uint32_t node, ShapeRef);   nothing: does not fit
//   std::int64_t price(ShapeRef, std::uint32_t cell);
//   std::uint32_t cells() const;
template <class Grader>
class BestNodes {
 public:
  BestNodes(const std::vector<Demand>& shapes, Grader& grader) : grader_(grader) {
    for (const Demand& demand : shapes) rankings_.emplace_back().demand = demand;
  }

  void changed(const Cluster& cluster, std::uint32_t node) {
    log_.push_back({node, cluster.node(node).version});
    // A shape that has not been asked for so long starts anew.
    if (log_.size() > 8 * cluster.nodes().size() + 1024) {
      const std::size_t half = log_.size() / 2;
      log_.erase(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(half));
      dropped_ += half;
    }
  }

  // The highest score, of equals the node with the lowest index.
  [[nodiscard]] std::optional<ScoredNode> best(const Cluster& cluster, const Pod& pod) {
    Ranking& ranking = up_to_date(cluster, pod.shape);
    std::optional<ScoredNode> best;
    for (Cell& cell : ranking.cells) {
      drop_stale(cluster, cell.heap);
      if (cell.heap.empty()) continue;
      const std::int64_t price = grader_.price({ranking.demand, pod.shape}, cell.id);
      const Entry& top = cell.heap.front();
      if (best && !ahead(top.score - price, top.node, *best)) continue;
      const Entry* found = cluster.node(top.node).memory >= pod.memory
                               ? &top
                               : first_with_memory(cluster, cell.heap, pod.memory);
      if (found == nullptr || (best && !ahead(found->score - price, found->node, *best))) continue;
      best = {found->node, found->score - price};
    }
    return best;
  }

  // All nodes with the highest score, by index.
  [[nodiscard]] std::vector<std::uint32_t> all_best(const Cluster& cluster, const Pod& pod) {
    std::vector<std::uint32_t> nodes;
    const auto top = best(cluster, pod);
    if (!top) return nodes;
    Ranking& ranking = rankings_[pod.shape];
    for (const Cell& cell : ranking.cells) {
      const std::int64_t price = grader_.price({ranking.demand, pod.shape}, cell.id);
      collect(cluster, cell.heap, top->score + price, pod.memory, nodes);
    }
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }

 private:
  struct Entry {
    std::int64_t score;
    std::uint32_t node;
    std::uint32_t version;

    // The heap keeps the largest on top: the highest score, then the lowest node.
    bool operator<(const Entry& other) const {
      return score != other.score ? score < other.score : node > other.node;
    }
  };
  using Heap = std::vector<Entry>;
  struct Cell {
    std::uint32_t id;
    Heap heap;
  };
  struct Ranking {
    Demand demand;
    std::size_t seen = 0;  // of the log
    bool built = false;
    std::size_t entries = 0;  // stale ones too
    std::vector<Cell> cells;
    std::vector<std::uint16_t> place;  // of a cell's id among the cells, plus one
  };
  struct Change {
    std::uint32_t node;
    std::uint32_t version;
  };

  static bool ahead(std::int64_t score, std::uint32_t node, const ScoredNode& of) {
    return score != of.score ? score > of.score : node < of.node;
  }

  static bool stale(const Cluster& cluster, const Entry& entry) {
    return cluster.node(entry.node).version != entry.version;
  }

  Ranking& up_to_date(const Cluster& cluster, std::uint32_t shape) {
    Ranking& ranking = rankings_[shape];
    const std::size_t end = dropped_ + log_.size();
    if (!ranking.built || ranking.seen < dropped_ || end - ranking.seen > cluster.nodes().size()) {
      rebuild(cluster, ranking, shape);
    } else {
      for (std::size_t i = ranking.seen - dropped_; i < log_.size(); ++i) {
        const Node& node = cluster.node(log_[i].node);
        if (node.version != log_[i].version) continue;  // changed again, further on
        if (Heap* heap = push(cluster, ranking, shape, log_[i].node)) {
          std::push_heap(heap->begin(), heap->end());
        }
      }
      if (ranking.entries > 2 * cluster.nodes().size() + 64) compact(cluster, ranking);
    }
    ranking.seen = end;
    return ranking;
  }

  // The heap that has got one more entry at its end, which is not yet a heap.
  Heap* push(const Cluster& cluster, Ranking& ranking, std::uint32_t shape, std::uint32_t index) {
    const Node& node = cluster.node(index);
    const std::optional<Grade> grade = grader_.grade(node, index, {ranking.demand, shape});
    if (!grade) return nullptr;
    Heap& heap = cell_of(ranking, grade->cell).heap;
    heap.push_back({grade->score, index, node.version});
    ++ranking.entries;
    return &heap;
  }

  Cell& cell_of(Ranking& ranking, std::uint32_t id) {
    if (ranking.place.empty()) ranking.place.resize(grader_.cells(), 0);
    std::uint16_t& place = ranking.place[id];
    if (place == 0) {
      ranking.cells.push_back({id, {}});
      place = static_cast<std::uint16_t>(ranking.cells.size());
    }
    return ranking.cells[place - 1U];
  }

  void rebuild(const Cluster& cluster, Ranking& ranking, std::uint32_t shape) {
    for (Cell& cell : ranking.cells) cell.heap.clear();
    ranking.entries = 0;
    ranking.built = true;
    for (std::uint32_t n = 0; n < cluster.nodes().size(); ++n) push(cluster, ranking, shape, n);
    for (Cell& cell : ranking.cells) std::make_heap(cell.heap.begin(), cell.heap.end());
  }

  static void compact(const Cluster& cluster, Ranking& ranking) {
    ranking.entries = 0;
    for (Cell& cell : ranking.cells) {
      std::erase_if(cell.heap, [&](const Entry& entry) { return stale(cluster, entry); });
      std::make_heap(cell.heap.begin(), cell.heap.end());
      ranking.entries += cell.heap.size();
    }
  }

  static void drop_stale(const Cluster& cluster, Heap& heap) {
    while (!heap.empty() && stale(cluster, heap.front())) {
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
    }
  }

  // The first in the order of the heap that has the memory: memory is seldom what is short, so
  // it is not worth a ranking of its own for every amount.
  const Entry* first_with_memory(const Cluster& cluster, const Heap& heap, MiB memory) {
    const auto behind = [&](std::size_t a, std::size_t b) { return heap[a] < heap[b]; };
    open_.assign(1, 0);
    while (!open_.empty()) {
      std::pop_heap(open_.begin(), open_.end(), behind);
      const std::size_t at = open_.back();
      open_.pop_back();
      const Entry& entry = heap[at];
      if (!stale(cluster, entry) && cluster.node(entry.node).memory >= memory) return &entry;
      for (const std::size_t child : {2 * at + 1, 2 * at + 2}) {
        if (child >= heap.size()) continue;
        open_.push_back(child);
        std::push_heap(open_.begin(), open_.end(), behind);
      }
    }
    return nullptr;
  }

  void collect(const Cluster& cluster, const Heap& heap, std::int64_t score, MiB memory,
               std::vector<std::uint32_t>& into) {
    open_.assign(1, 0);
    while (!open_.empty()) {
      const std::size_t at = open_.back();
      open_.pop_back();
      if (at >= heap.size() || heap[at].score < score) continue;
      const Entry& entry = heap[at];
      if (entry.score == score && !stale(cluster, entry) &&
          cluster.node(entry.node).memory >= memory) {
        into.push_back(entry.node);
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

}  // namespace neap::simulate
