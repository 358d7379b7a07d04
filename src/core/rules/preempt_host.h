// The cheapest victims on one node where more than devices may be short: the node's host, or a
// pair of linked devices. Beside that it is the CoverSolver's answer.
#pragma once

#include <cstdint>

#include "core/rules/preempt_node.h"

namespace neap {

// Victims for whom `devices` devices of the node fit, its host covers their part, and where the
// demand wants so, all are in one pair. Exact while cells last, as CoverSolver.
void solve_node(CoverSolver& solver, const NodeProblem& problem, std::int32_t devices, Cells& cells,
                Cover& out);

}  // namespace neap
