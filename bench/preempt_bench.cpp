// CPU time of one search for victims in a full pool, while tasks come and go.
//
//   preempt_bench [nodes] [searches]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "core/model/pool_index.h"
#include "core/rules/preempt.h"

namespace {

using namespace neap;

constexpr std::int32_t devices_per_node = 8;
constexpr Time start{hours(24 * 100).value};

void add_nodes(PoolState& state, std::uint32_t nodes) {
  state.domains = {"r0"};
  state.models = {{"A100", MiB(81'920), devices_per_node}};
  for (std::uint32_t n = 0; n < nodes; ++n) {
    NodeState& node = state.nodes.emplace_back();
    node.name = "n" + std::to_string(n);
    node.domain = DomainId(0);
    node.first = DeviceId(n * devices_per_node);
    node.count = devices_per_node;
    for (std::int32_t d = 0; d < devices_per_node; ++d) {
      DeviceState& device = state.devices.emplace_back();
      device.node = NodeId(n);
      device.index = d;
      device.uuid = node.name + "-" + std::to_string(d);
      device.model = ModelId(0);
      device.memory = MiB(81'920);
    }
  }
}

// As a task that has run for a while, and is between two checkpoints.
void start_anew(TaskState& task, trace::Chance& chance, Time now) {
  task.phase = Phase::running;
  task.spec.contract.sdk = true;
  task.spec.contract.on_demand = bench::below<std::int64_t>(chance, 4) == 0;
  task.spec.contract.interval = minutes(10);
  task.spec.contract.restore = seconds(60 + bench::below<std::int64_t>(chance, 240));
  task.started_at = now - Micros(bench::below<std::int64_t>(chance, hours(10).value));
  task.captured = std::max(task.started_at,
                           now - Micros(bench::below<std::int64_t>(chance, minutes(10).value)));
  task.preemptions = static_cast<std::int32_t>(bench::below<std::int64_t>(chance, 3));
  task.spec.work.reset();
  if (bench::below<std::int64_t>(chance, 2) == 0) {
    task.spec.work =
        now - task.started_at + Micros(bench::below<std::int64_t>(chance, hours(50).value));
  }
}

void add_tasks(PoolState& state, trace::Chance& chance) {
  for (const NodeState& node : state.nodes) {
    // Most nodes hold eight small tasks, some a task over two, four or all devices.
    const std::int64_t draw = bench::below<std::int64_t>(chance, 20);
    const std::int32_t size = draw < 14 ? 1 : draw < 16 ? 2 : draw < 18 ? 4 : 8;
    for (std::int32_t d = 0; d < node.count; d += size) {
      TaskState& task = state.tasks.add();
      task.spec.name = "t" + std::to_string(task.id.value);
      task.tier = TierId(bench::below<std::int64_t>(chance, 4) == 0 ? 1 : 2);
      task.purpose = Purpose::batch;
      task.spec.request.count = size;
      task.allocation = AllocationId(state.next_allocation++);
      for (std::int32_t i = 0; i < size; ++i) {
        task.slots.push_back({DeviceId(node.first.value + static_cast<std::uint32_t>(d + i)),
                              whole_device, MiB(81'920)});
      }
      start_anew(task, chance, start);
    }
  }
}

PoolState full_pool(std::uint32_t nodes, trace::Chance& chance) {
  PoolState state;
  state.now = start;
  state.spec.tiers = {{"infer", 100, Purpose::inference},
                      {"near", 80, Purpose::batch},
                      {"normal", 40, Purpose::batch}};
  add_nodes(state, nodes);
  add_tasks(state, chance);
  rebuild_index(state);
  return state;
}

// Of this thread: what others run on the machine is not counted.
std::int64_t cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

struct Times {
  std::vector<std::int64_t> ns;

  template <class Work>
  void add(Work&& work) {
    const std::int64_t from = cpu_ns();
    work();
    ns.push_back(cpu_ns() - from);
  }
  void print(const std::string& what) {
    std::sort(ns.begin(), ns.end());
    const auto at = [&](std::size_t ppm) {
      return static_cast<double>(ns[std::min(ns.size() - 1, ns.size() * ppm / 1'000'000)]) / 1e3;
    };
    std::printf("%-44s p50 %8.1f us  p99 %8.1f us  p99.9 %8.1f us  max %8.1f us\n", what.c_str(),
                at(500'000), at(990'000), at(999'000), at(1'000'000));
  }
};

// The devices of a chosen task get a new tenant at once, so that the pool stays full.
void replace(PoolState& state, trace::Chance& chance, TaskId id, Time now) {
  TaskState& task = state.tasks.at(id);
  start_anew(task, chance, now);
  task.started_at = task.captured = now;
  for (const Slot& slot : task.slots) state.index->victims.touch(state.device(slot.device).node);
}

void search(PoolState& state, trace::Chance& chance, const Shape& demand, Micros within,
            int searches, const std::string& what) {
  Time now = state.now;
  Times first, warm, settle;
  first.add([&] { (void)find_victims(state, demand, now, now + within); });
  std::int64_t found = 0, exact = 0;
  for (int i = 0; i < searches; ++i) {
    // Ten records between two searches: a checkpoint each, and 0.1 s.
    for (int r = 0; r < 10; ++r) {
      now = now + milliseconds(10);
      const TaskId id(static_cast<std::uint32_t>(
          bench::below<std::int64_t>(chance, state.tasks.next_id().value)));
      TaskState& task = state.tasks.at(id);
      task.captured = now;
      for (const Slot& slot : task.slots) {
        state.index->victims.touch(state.device(slot.device).node);
      }
      settle.add([&] { settle_victim_bounds(state, now, 4); });
    }
    std::optional<Proposal> proposal;
    warm.add([&] { proposal = find_victims(state, demand, now, now + within); });
    if (!proposal) continue;
    ++found;
    exact += proposal->lower_bound == proposal->cost ? 1 : 0;
    for (const Victim& victim : proposal->victims) replace(state, chance, victim.task, now);
  }
  state.now = now;
  first.print(what + ", first");
  warm.print(what + ", warm");
  settle.print(what + ", upkeep per record");
  std::printf("%-44s %lld of %d, exact %lld\n", (what + ", found").c_str(),
              static_cast<long long>(found), searches, static_cast<long long>(exact));
}

}  // namespace

int main(int argc, char** argv) {
  const auto nodes = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 10'000);
  const int searches = argc > 2 ? std::atoi(argv[2]) : 2'000;
  trace::Chance chance(1);
  PoolState state = full_pool(nodes, chance);
  std::printf("%u nodes, %u devices, %zu running tasks\n", nodes, nodes * devices_per_node,
              state.tasks.size());
  Shape demand;
  demand.tier = TierId(0);
  demand.purpose = Purpose::inference;
  for (const std::int32_t count : {1, 8}) {
    for (const Micros within : {seconds(660), seconds(30)}) {
      demand.request.count = count;
      search(
          state, chance, demand, within, searches,
          std::to_string(count) + " devices in " + std::to_string(within.value / 1'000'000) + " s");
    }
  }
  demand.request.count = 32;
  search(state, chance, demand, seconds(660), searches / 10, "a gang of 32 in 660 s");
  return 0;
}
