// Pools for tests, from text: one line for each tier, node and task.
//
//   tier infer 100 inference
//   node a r1 8 A100 81920 roles=ccccccbg
//   task job1 normal on=a:0-3,b:0 share=500 memory=4096 started=-3600 captured=-60
//
// A node has a name, a fault domain, a number of devices, their model, and MiB of memory each;
// roles: c core, b buffer, g guard, d dedicated, l lane; rack, cpu (milli) and mem (MiB) of the
// host; linked=2: devices are linked by twos. A task runs on the devices of `on`, each `share`
// milli-GPU of it (all of it when not said). Times are seconds: moments from the pool's now,
// which is a midnight; lengths as they are.
//
// Further keys of a task: phase=running|yielding|stopping|starting|waiting, trust, count, models,
// contract (sdk+signals+watch+ondemand, or none; sdk when not said), interval, save, stall, drain,
// release, restore, seen_save, seen_stall, seen_restore, ondemand_seen, work, deadline,
// window=FROM-TO (of the day), preemptions, today, interruptible, lane; cpu and mem (milli and MiB
// of hosts), within, exclude=NODE+NODE, group, apart, per_domain, weights.
#pragma once

#include <string_view>

#include "core/model/state.h"

namespace neap::testing {

inline constexpr Time pool_now{hours(24 * 100).value};

// Tiers infer 100 inference, talk 90 interactive, near 80 batch and normal 40 batch are there
// when the text names none. A mistake in the text ends the test.
[[nodiscard]] PoolState pool_of(std::string_view text);

[[nodiscard]] TaskId task_named(const PoolState& state, std::string_view name);
[[nodiscard]] TierId tier_named(const PoolState& state, std::string_view name);

// A demand: "infer count=2 share=500 memory=1024 models=A100 trust=x releasable dedicated lane".
[[nodiscard]] Shape demand_of(const PoolState& state, std::string_view text);

}  // namespace neap::testing
