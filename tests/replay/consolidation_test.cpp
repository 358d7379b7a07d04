// C5, D8: what consolidation gains on the published traces. The daemon's own placement fills the
// cluster with tasks that come and go; then nothing comes any more for a third of a lifetime. At
// that low tide the planner says who moves, device by device, until none can be emptied.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine.h"
#include "core/model/pool_index.h"
#include "core/rules/defragment.h"
#include "trace/bytes.h"
#include "trace/chance.h"
#include "trace/openb.h"

namespace neap {
namespace {

constexpr MiB device_memory{32'768};
constexpr std::int64_t lifetimes = 2;  // arrivals go on for so many mean lifetimes
constexpr Micros lifetime = hours(4);  // the mean

struct Ending {
  Time at;
  TaskId task;
  bool operator>(const Ending& other) const {
    return at != other.at ? at > other.at : task > other.task;
  }
};

class Pool {
 public:
  explicit Pool(const std::vector<trace::OpenbNode>& nodes) {
    PoolSpec spec;
    spec.tiers = {{"batch", 40, Purpose::batch}};
    spec.reserve.most = 0;
    spec.defragment.enabled = false;
    tell(PoolConfigured{spec});
    for (const trace::OpenbNode& node : nodes) {
      if (node.gpus == 0) continue;
      NodeSpec joined;
      joined.name = node.name;
      joined.fault_domain = "d" + std::to_string(node_count_++ % 8);
      for (std::int32_t g = 0; g < node.gpus; ++g) {
        joined.devices.push_back({.uuid = node.name + "-" + std::to_string(g),
                                  .model = node.model,
                                  .memory = device_memory});
      }
      devices_ += node.gpus;
      tell(NodeJoined{joined});
    }
  }

  void submit(const trace::OpenbPod& pod, std::uint64_t number) {
    TaskSubmitted event;
    TaskSpec& spec = event.spec;
    spec.name = "t" + std::to_string(number);
    spec.tier = "batch";
    spec.request.count = pod.gpus;
    spec.request.share = pod.each;
    if (pod.each < whole_device) spec.request.memory = MiB(pod.each.value * 20);
    std::size_t from = 0;
    while (!pod.models.empty() && from != std::string::npos) {
      const std::size_t bar = pod.models.find('|', from);
      spec.request.models.push_back(pod.models.substr(from, bar - from));
      from = bar == std::string::npos ? bar : bar + 1;
    }
    std::sort(spec.request.models.begin(), spec.request.models.end());
    spec.contract.sdk = spec.contract.on_demand = true;
    spec.contract.interval = minutes(10);
    spec.contract.restore = seconds(60);
    if (check_event(state, Event(event))) tell(event);
  }

  void end(TaskId id, int code) {
    const TaskState& task = state.tasks.at(id);
    TaskExited exited;
    exited.stamp = stamp(task);
    exited.code = code;
    tell(exited);
  }

  void cancel(const std::string& name) { tell(TaskCancelRequested{name, "test"}); }

  // What was placed has started; tells who.
  std::vector<TaskId> start_placed() {
    std::vector<TaskId> started = std::move(placed_);
    placed_.clear();
    for (const TaskId id : started) tell(TaskStarted{stamp(state.tasks.at(id))});
    return started;
  }

  void decide_and_act(const Decision& decision) { apply(state, now, decision); }
  [[nodiscard]] std::int64_t wholly_free() const {
    std::int64_t free = 0;
    for (const ModelIndex& model : state.index->models) {
      free += model.free_whole[mask_slot(1U << static_cast<unsigned>(Role::core))];
    }
    return free;
  }
  [[nodiscard]] std::int64_t partly_used() const {
    return std::count_if(state.devices.begin(), state.devices.end(), [](const DeviceState& d) {
      return d.used_share > MilliGpu(0) && d.used_share < whole_device;
    });
  }
  // Devices that would be free if every part fitted beside every other: no consolidation gains
  // more.
  [[nodiscard]] std::int64_t at_best() const {
    std::int64_t milli = 0;
    for (const DeviceState& d : state.devices) {
      const bool partly = d.used_share > MilliGpu(0) && d.used_share < whole_device;
      milli += partly ? d.used_share.value : 0;
    }
    return partly_used() - (milli + whole_device.value - 1) / whole_device.value;
  }
  [[nodiscard]] std::int64_t devices() const { return devices_; }

  PoolState state;
  Time now{hours(24 * 100).value};

 private:
  static ReportStamp stamp(const TaskState& task) {
    return {task.allocation, task.report_epoch, task.report_sequence + 1};
  }

  void tell(const Event& event) {
    StepResult result;
    step(state, now, event, result);
    for (const Decision& decision : result.decisions) {
      if (const auto* placed = std::get_if<TaskPlaced>(&decision)) placed_.push_back(placed->task);
    }
  }

  std::vector<TaskId> placed_;
  std::int64_t devices_ = 0, node_count_ = 0;
};

template <class Reader, class Row>
std::vector<Row> rows_of(const std::string& path) {
  auto bytes = trace::open_bytes(path);
  EXPECT_TRUE(bytes) << to_string(bytes.error());
  Reader reader(std::move(*bytes));
  std::vector<Row> rows;
  Row row;
  while (reader.next(row).value_or(false)) rows.push_back(row);
  return rows;
}

// As many pods come in a lifetime as fill 95 % of the devices; each stays for one to a mean twice.
void fill(Pool& pool, const std::vector<trace::OpenbPod>& pods) {
  std::vector<trace::OpenbPod> drawn_from;
  std::int64_t milli = 0;
  for (const trace::OpenbPod& pod : pods) {
    if (pod.gpus == 0) continue;
    drawn_from.push_back(pod);
    milli += pod.gpus * pod.each.value;
  }
  const std::int64_t mean = milli / static_cast<std::int64_t>(drawn_from.size());
  const std::int64_t in_a_lifetime = pool.devices() * 950 / mean;
  const Micros every(lifetime.value / in_a_lifetime);
  trace::Chance chance(42);
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings;
  for (std::int64_t n = 0; n < in_a_lifetime * lifetimes; ++n) {
    pool.now = pool.now + every;
    while (!endings.empty() && endings.top().at <= pool.now) {
      pool.end(endings.top().task, 0);
      endings.pop();
    }
    pool.submit(drawn_from[chance.below(drawn_from.size())], static_cast<std::uint64_t>(n));
    for (const TaskId id : pool.start_placed()) {
      const auto length =
          static_cast<std::int64_t>(chance.below(static_cast<std::uint64_t>(lifetime.value) * 2));
      endings.push({pool.now + Micros(length), id});
    }
  }
  // Nobody comes from here on, nobody waits, and everybody may be moved.
  std::vector<std::string> waiting;
  pool.state.tasks.for_each([&](const TaskState& task) {
    if (task.phase == Phase::waiting) waiting.push_back(task.spec.name);
  });
  for (const std::string& name : waiting) pool.cancel(name);
  pool.now = pool.now + lifetime / 3;
  while (!endings.empty() && endings.top().at <= pool.now) {
    pool.end(endings.top().task, 0);
    endings.pop();
  }
}

struct Gained {
  std::int64_t devices = 0, moves = 0;
};

// The cells that cost the fewest moves for a device first. Each move is a plan, a yield and a
// start, as the daemon's are, and nothing is ever claimed twice.
Gained consolidate(Pool& pool, std::size_t most_moves_a_device) {
  Gained gained;
  for (std::size_t most = 1; most <= most_moves_a_device; ++most) {
    for (std::uint32_t d = 0; d < pool.state.devices.size(); ++d) {
      if (pool.state.devices[d].tenants.size() > most) continue;
      const auto cell = consolidate_device(pool.state, DeviceId(d), pool.now);
      if (!cell) continue;
      const std::int64_t before = pool.wholly_free();
      for (const Move& move : cell->moves) {
        pool.decide_and_act(MovePlanned{move.task, move.to, TaskId::none(), move.offer.release_by});
        const AllocationId at = pool.state.tasks.at(move.task).allocation;
        pool.decide_and_act(
            YieldAsked{move.task, at, move.offer.mode, move.offer.release_by, StopReason::moved});
      }
      for (const DeviceState& device : pool.state.devices) {
        EXPECT_LE(device.used_share + device.held_share, whole_device) << device.uuid;
      }
      for (const Move& move : cell->moves) {
        pool.end(move.task, 75);
        EXPECT_EQ(pool.state.tasks.at(move.task).slots, move.to) << "it goes on where it was to";
      }
      pool.start_placed();
      EXPECT_EQ(pool.wholly_free(), before + 1);
      gained.devices += pool.wholly_free() - before;
      gained.moves += static_cast<std::int64_t>(cell->moves.size());
    }
  }
  return gained;
}

class Consolidation : public testing::TestWithParam<const char*> {};

TEST_P(Consolidation, D8_WholeDevicesGainedPerMigratedTask) {
  const char* traces = std::getenv("NEAP_TRACES");
  if (traces == nullptr) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const std::string folder = std::string(traces) + "/openb/";
  const std::string trace = GetParam();
  const auto nodes =
      rows_of<trace::OpenbNodeReader, trace::OpenbNode>(folder + "openb_node_list_gpu_node.csv");
  const auto pods =
      rows_of<trace::OpenbPodReader, trace::OpenbPod>(folder + "openb_pod_list_" + trace + ".csv");
  Pool pool(nodes);
  fill(pool, pods);
  const std::int64_t free = pool.wholly_free(), partly = pool.partly_used();
  const std::int64_t at_best = pool.at_best();
  const Gained one = consolidate(pool, 1);
  const Gained more = consolidate(pool, 4);
  const std::int64_t devices = one.devices + more.devices, moves = one.moves + more.moves;
  std::printf(
      "defragment %s: %lld whole devices gained by %lld moves (%.2f each); before: %lld of %lld "
      "wholly free, %lld partly used, no more than %lld to gain\n",
      trace.c_str(), static_cast<long long>(devices), static_cast<long long>(moves),
      static_cast<double>(devices) / static_cast<double>(moves), static_cast<long long>(free),
      static_cast<long long>(pool.devices()), static_cast<long long>(partly),
      static_cast<long long>(at_best));
  EXPECT_GT(one.devices, 0);
  EXPECT_EQ(one.devices, one.moves);
  EXPECT_LE(devices, at_best);
}

INSTANTIATE_TEST_SUITE_P(Published, Consolidation,
                         testing::Values("default", "cpu200", "gpushare60", "multigpu30",
                                         "gpuspec20"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace neap
