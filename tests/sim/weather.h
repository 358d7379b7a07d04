// One seed's pool, work and bad luck.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/site.h"

namespace neap::sim {

struct Outcome {
  std::vector<std::string> violations;
  std::uint64_t events = 0;
  std::uint64_t crashes = 0;
  // What the run was about, so that a test can see that seeds reach what they are meant to reach.
  std::uint64_t finished = 0, preempted = 0, failed = 0, refused = 0, waiting = 0;
  std::uint64_t reserved = 0, moved = 0, lent = 0;
};

// A bug planted in the engine or in the loop around it.
struct Planted {
  Step step;                            // none: the real engine
  std::function<Event(Event)> rewrite;  // of events on their way in
  LoopBug loop = LoopBug::none;
};

// Runs one seed to its end: first with faults, then without them until everything is at rest.
[[nodiscard]] Outcome run_seed(std::uint64_t seed, const Planted& planted = {});

}  // namespace neap::sim
