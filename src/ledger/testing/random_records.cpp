#include "ledger/testing/random_records.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace neap::ledger::testing {
namespace {

constexpr int devices_per_node = 4;
constexpr int node_count = 3;

struct Task {
  TaskId id;
  ServiceId service;
  std::string name;
  bool placed = false;
  bool over = false;
  bool waits_for_stage = false;
};

struct Running {
  AllocationId id;
  std::size_t task = 0;
  std::vector<Slot> slots;
  std::int64_t step = 0;
  bool revoked = false;  // then its end is the end of its task
};

class RandomPool {
 public:
  explicit RandomPool(std::uint64_t seed) : random_(seed * 2654435769U + 1) {}

  Journal make(int records) {
    for (int n = 0; n < node_count; ++n) join(n);
    ServiceSpec service;
    service.name = "chat";
    service.team = "serving";
    put(Event{ServiceSubmitted{service}});
    service.name = "search";
    put(Event{ServiceSubmitted{service}});
    while (static_cast<int>(journal_.size()) < records) {
      if (below(10) != 0)
        now_ = now_ + Micros(below(4) == 0 ? below(100'000'000) : below(1'000'000));
      turn();
    }
    return std::move(journal_);
  }

 private:
  std::int64_t below(std::int64_t n) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return static_cast<std::int64_t>((random_ >> 11) % static_cast<std::uint64_t>(n));
  }

  void put(Record record) { journal_.emplace_back(now_, std::move(record)); }

  static std::string node(std::int64_t n) { return "node" + std::to_string(n); }

  void join(std::int64_t n) {
    NodeSpec spec;
    spec.name = node(n);
    for (int i = 0; i < devices_per_node; ++i) {
      spec.devices.push_back({.uuid = spec.name + std::to_string(i), .model = n == 0 ? "B" : "A"});
    }
    put(Event{NodeJoined{spec}});
    lost_[static_cast<std::size_t>(n)] = false;
  }

  void turn() {
    const std::int64_t kind = below(100);
    if (kind < 2) {
      chain();
    } else if (kind < 8) {
      submit();
    } else if (kind < 28) {
      place();
    } else if (kind < 34) {
      change_pool();
    } else if (kind < 37) {
      cancel();
    } else if (!running_.empty()) {
      const auto at = static_cast<std::size_t>(below(static_cast<std::int64_t>(running_.size())));
      if (kind < 50) {
        decide_about(at);
      } else if (kind < 90) {
        report(at);
      } else {
        exit(at);
      }
    }
  }

  void submit() {
    Task task;
    task.id = TaskId(static_cast<std::uint32_t>(tasks_.size()));
    if (below(3) == 0) {
      task.service = ServiceId(task.id.value % 2);
      const auto cause = static_cast<ReplicaCause>(task.id.value / 2 % 3);
      put(Decision{ReplicaAdded{task.service, task.id, "load", cause}});
    } else {
      TaskSpec spec;
      spec.name = task.name = "task" + std::to_string(tasks_.size());
      spec.team = below(2) == 0 ? "vision" : "speech";
      spec.contract.sdk = below(2) == 0;
      spec.contract.watch = below(3) == 0;
      spec.contract.signals = below(2) == 0;
      put(Event{TaskSubmitted{spec}});
      if (below(15) == 0) {
        put(Decision{TaskRefused{task.id, "predictable", ""}});
        task.over = true;
      }
    }
    tasks_.push_back(task);
  }

  // A pipeline of two stages; or the next stage of one enters, or is ended instead.
  void chain() {
    const auto next = std::find_if(tasks_.begin(), tasks_.end(), [](const Task& task) {
      return task.waits_for_stage && !task.over;
    });
    if (next != tasks_.end()) {
      next->waits_for_stage = false;
      if (below(4) != 0) {
        return put(Decision{StageEntered{PipelineId(0), 0, next->id, ServiceId::none(), {}}});
      }
      next->over = true;
      return put(Decision{StageEnded{PipelineId(0), 0, next->id, StagePhase::stopped, ""}});
    }
    PipelineSubmitted pipeline;
    for (int n = 0; n < 2; ++n) {
      Task task;
      task.id = TaskId(static_cast<std::uint32_t>(tasks_.size()));
      task.name = "task" + std::to_string(tasks_.size());
      task.waits_for_stage = true;
      TaskSpec spec;
      spec.name = task.name;
      spec.team = "vision";
      spec.contract.sdk = true;
      pipeline.spec.stages.emplace_back().task = spec;
      tasks_.push_back(task);
    }
    put(Event{pipeline});
  }

  void place() {
    std::vector<std::size_t> waiting;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (!tasks_[i].placed && !tasks_[i].over && !tasks_[i].waits_for_stage) waiting.push_back(i);
    }
    if (waiting.empty()) return;
    const std::size_t task =
        waiting[static_cast<std::size_t>(below(static_cast<std::int64_t>(waiting.size())))];
    Running running;
    const std::int64_t want = 1 + below(3);
    const std::int64_t share = below(2) == 0 ? 1000 : 1 + below(700);
    for (std::uint32_t d = 0; d < node_count * devices_per_node; ++d) {
      const std::uint32_t device =
          (d * 5 + static_cast<std::uint32_t>(task)) % (node_count * devices_per_node);
      if (used_[device] + share > 1000 || lost_[device / devices_per_node]) continue;
      running.slots.push_back({DeviceId(device), MilliGpu(share), MiB(1)});
      if (static_cast<std::int64_t>(running.slots.size()) == want) break;
    }
    if (running.slots.empty()) return;
    for (const Slot& slot : running.slots) used_[slot.device.value] += share;
    running.id = AllocationId(next_allocation_++);
    running.task = task;
    running.step = below(3) * 10;
    tasks_[task].placed = true;
    put(Decision{TaskPlaced{tasks_[task].id, running.id, running.slots}});
    running_.push_back(running);
  }

  void change_pool() {
    const std::int64_t n = below(node_count);
    const auto device = static_cast<std::int32_t>(below(devices_per_node));
    switch (below(7)) {
      case 0:
        return put(Event{NodeUnreachable{node(n)}});
      case 1:
        return join(n);
      case 2:
        return lose(n);
      case 3:
        return put(Event{DeviceHealthChanged{
            node(n), device, below(2) == 0 ? DeviceHealth::failed : DeviceHealth::healthy, ""}});
      case 4: {
        RolesAssigned roles;
        for (std::uint32_t d = 0; d < node_count * devices_per_node; ++d) {
          if (below(4) == 0) roles.guard.push_back(DeviceId(d));
        }
        return put(Decision{roles});
      }
      case 5:
        return put(Decision{DeviceExcluded{DeviceId(static_cast<std::uint32_t>(device))}});
      default:
        return put(Decision{DeviceReadmitted{DeviceId(static_cast<std::uint32_t>(device))}});
    }
  }

  void lose(std::int64_t n) {
    put(Event{NodeLost{node(n)}});
    lost_[static_cast<std::size_t>(n)] = true;
    for (std::size_t i = running_.size(); i-- > 0;) {
      const bool all_gone =
          std::all_of(running_[i].slots.begin(), running_[i].slots.end(),
                      [&](const Slot& s) { return lost_[s.device.value / devices_per_node]; });
      if (all_gone) vacate(i);
    }
  }

  void cancel() {
    if (tasks_.empty()) return;
    Task& task = tasks_[static_cast<std::size_t>(below(static_cast<std::int64_t>(tasks_.size())))];
    if (task.over || task.service.valid()) return;
    put(Event{TaskCancelRequested{task.name, "somebody"}});
    task.over = true;
  }

  void decide_about(std::size_t at) {
    Running& running = running_[at];
    const TaskId task = tasks_[running.task].id;
    static constexpr StopReason reasons[] = {
        StopReason::preempted,     StopReason::guard_restored,  StopReason::scaled_down,
        StopReason::device_failed, StopReason::contract_breach, StopReason::admission_revoked,
        StopReason::moved,         StopReason::replaced,        StopReason::adoption,
        StopReason::resized,       StopReason::drill_over};
    const StopReason reason = reasons[below(std::ssize(reasons))];
    const std::int64_t kind = below(5);
    running.revoked = kind != 0 && kind != 2 && reason == StopReason::admission_revoked;
    switch (kind) {
      case 0: {
        const auto other =
            tasks_[static_cast<std::size_t>(below(static_cast<std::int64_t>(tasks_.size())))].id;
        PreemptionPlanned plan;
        plan.task = other;
        plan.victims.push_back({.task = task});
        put(Decision{plan});
        return put(Decision{
            YieldAsked{task, running.id, ReleaseMode::boundary, now_, StopReason::preempted}});
      }
      case 1:
        return put(Decision{YieldAsked{task, running.id, ReleaseMode::on_demand, now_, reason}});
      case 2:
        return put(Decision{YieldWithdrawn{task, running.id}});
      case 3:
        return put(Decision{StopAsked{task, running.id, reason, now_}});
      default:
        return put(Decision{KillAsked{task, running.id, reason}});
    }
  }

  void report(std::size_t at) {
    Running& running = running_[at];
    const ReportStamp stamp{running.id, 0, 0};
    switch (below(8)) {
      case 0:
        return put(Event{TaskStarted{stamp}});
      case 1:
        return put(Event{ReplicaHealthy{stamp}});
      case 2:
        return put(Event{ReplicaUnhealthy{stamp, ""}});
      case 3: {
        const std::int64_t responses = below(100);
        return put(Event{RequestsServed{running.id, responses, below(responses + 1),
                                        Micros(below(12'000'000))}});
      }
      case 4:
      case 5: {
        const std::int64_t count = below(20);
        running.step += count;
        return put(Event{StepsReported{stamp, running.step, count, Micros(below(9'000'000))}});
      }
      default: {
        CheckpointDurable durable;
        durable.stamp = stamp;
        durable.step = std::max<std::int64_t>(0, running.step - below(12));
        durable.captured = now_ - Micros(below(20'000'000) - 1'000'000);
        durable.stall = Micros(below(3) == 0 ? 0 : below(8'000'000));
        return put(Event{durable});
      }
    }
  }

  void exit(std::size_t at) {
    Running& running = running_[at];
    const ReportStamp stamp{running.id, 0, 0};
    if (below(8) == 0) {
      put(Event{StartFailed{stamp, ""}});
    } else {
      static constexpr std::int32_t codes[] = {0, 75, 75, 1};
      const std::int32_t code = codes[below(4)];
      const std::int32_t signal = below(6) == 0 ? 9 : 0;
      put(Event{TaskExited{stamp, code, signal, ""}});
      if (code == 0 && signal == 0) tasks_[running.task].over = true;
    }
    // A word that comes too late changes nothing.
    if (below(4) == 0) put(Event{StepsReported{stamp, 1'000, 10, Micros(5)}});
    vacate(at);
  }

  void vacate(std::size_t at) {
    for (const Slot& slot : running_[at].slots) used_[slot.device.value] -= slot.share.value;
    Task& task = tasks_[running_[at].task];
    task.placed = false;
    if (task.service.valid() || running_[at].revoked) task.over = true;
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  std::uint64_t random_;
  Time now_{1'000'000'000};
  Journal journal_;
  std::vector<Task> tasks_;
  std::vector<Running> running_;
  std::map<std::uint32_t, std::int64_t> used_;
  std::array<bool, node_count> lost_{};
  std::uint64_t next_allocation_ = 0;
};

}  // namespace

Journal random_journal(std::uint64_t seed, int records) { return RandomPool(seed).make(records); }

}  // namespace neap::ledger::testing
