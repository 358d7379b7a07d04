// What a placement policy is to the experiment.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/rules/place/best_nodes.h"
#include "simulate/openb/cluster.h"
#include "simulate/openb/workload.h"
#include "trace/chance.h"

namespace neap::simulate {

using leftover::BestNodes;
using leftover::Grade;
using leftover::ShapeRef;

// Between nodes of one score: the first of the cluster, or any of them.
enum class Ties : std::uint8_t { fixed, random };

class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  // A pod has arrived: where it goes, nothing when the policy finds no node.
  [[nodiscard]] virtual std::optional<Choice> choose(const Cluster& cluster, const Pod& pod) = 0;
  // After every placement and removal.
  virtual void changed(const Cluster& cluster, std::uint32_t node) = 0;
  // A pod departs from where it was, waits, or does so no longer.
  virtual void departed(const Pod&) {}
  virtual void waits(const Pod&) {}
  virtual void waits_no_longer(const Pod&) {}
  // Before an arrival: what a pool does beside its decisions, such as to learn.
  virtual void meanwhile(const Cluster&) {}
};

// By the highest score. Grader as in best_nodes.h, and besides
//   void changed(const Node&, std::uint32_t node);
//   DeviceMask devices(const Node&, std::uint32_t node, ShapeRef);
template <class Grader>
class ScoredPolicy : public Policy {
 public:
  ScoredPolicy(Grader grader, const Workload& workload, Ties ties, std::uint64_t seed)
      : grader_(std::move(grader)), best_(workload.shapes, grader_), ties_(ties), chance_(seed) {}

  std::optional<Choice> choose(const Cluster& cluster, const Pod& pod) override {
    const auto has_memory = [&](std::uint32_t n) { return cluster.node(n).memory >= pod.memory; };
    std::uint32_t node = 0;
    if (ties_ == Ties::fixed) {
      const auto best = best_.best(cluster.nodes(), pod.shape, has_memory);
      if (!best) return {};
      node = best->node;
    } else {
      const std::vector<std::uint32_t> nodes =
          best_.all_best(cluster.nodes(), pod.shape, has_memory);
      if (nodes.empty()) return {};
      node = nodes[chance_.below(nodes.size())];
    }
    return Choice{node, grader_.devices(cluster.node(node), node, {pod.demand, pod.shape})};
  }

  void changed(const Cluster& cluster, std::uint32_t node) override {
    grader_.changed(cluster.node(node), node);
    best_.changed(cluster.nodes(), node);
  }

 protected:
  Grader& grader() { return grader_; }

 private:
  Grader grader_;
  BestNodes<Grader> best_;
  Ties ties_;
  trace::Chance chance_;
};

struct PolicyOptions {
  std::uint64_t seed = 0;
  Ties ties = Ties::fixed;
};

// The published policies: random, dotprod, clustering, packing, bestfit, fgd. Null for another
// name. The cluster is that of the run, before its first pod.
[[nodiscard]] std::unique_ptr<Policy> make_reference_policy(std::string_view name,
                                                            const Workload& workload,
                                                            const Cluster& cluster,
                                                            PolicyOptions options);

}  // namespace neap::simulate
