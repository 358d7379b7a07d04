// The cheapest victims for a gang over several nodes (D7): whole nodes, and one for the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/rules/place.h"
#include "core/rules/preempt.h"
#include "core/rules/preempt_node.h"

namespace neap {

struct GangNode {
  NodeProblem problem;
  std::vector<std::uint32_t> jobs;  // by candidate of the problem: its number in the gang's list
};

struct GangProblem {
  Split split;
  std::vector<GangNode> nodes;       // in order of node
  std::vector<Victim> jobs;          // every candidate once, in order of task
  std::vector<std::uint32_t> parts;  // by job: on how many of these nodes it is
};

// Numbers the candidates of `nodes`, whose problems have been read.
void number_jobs(GangProblem& gang);

struct GangCover {
  bool feasible = false;
  bool exact = false;  // these nodes allow no cheaper one, or none
  CoverValue value;
  std::vector<std::uint32_t> jobs;  // ascending
};

// Branch and bound over the choice of whole nodes, each of which must be empty, so that only the
// node of the rest leaves a choice of victims. When cells run out: the better of two greedy
// choices, by what a node adds and by its share of what its jobs cost.
[[nodiscard]] GangCover cover_gang(const GangProblem& gang, Cells& cells);

// Whether the gang can be placed once these jobs are gone; and where, by index of node.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> seats_of(const GangProblem& gang,
                                                                 const std::vector<bool>& gone);

}  // namespace neap
