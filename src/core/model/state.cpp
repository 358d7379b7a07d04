#include "core/model/state.h"

#include <algorithm>

#include "core/model/check.h"
#include "core/model/codec.h"
#include "core/model/pool_index.h"

namespace neap {

PoolState::PoolState() : index(std::make_unique<PoolIndex>()) {}
PoolState::~PoolState() = default;
PoolState::PoolState(PoolState&&) noexcept = default;
PoolState& PoolState::operator=(PoolState&&) noexcept = default;

PoolState::PoolState(const PoolState& other)
    : spec(other.spec),
      configured(other.configured),
      now(other.now),
      sequence(other.sequence),
      nodes(other.nodes),
      devices(other.devices),
      domains(other.domains),
      racks(other.racks),
      models(other.models),
      tasks(other.tasks),
      services(other.services),
      shapes(other.shapes),
      wait_codes(other.wait_codes),
      preempt_retry_at(other.preempt_retry_at),
      plans(other.plans),
      pause(other.pause),
      conditions(other.conditions),
      next_allocation(other.next_allocation),
      demand(other.demand),
      basis(other.basis),
      tide(other.tide),
      pipelines(other.pipelines),
      next_pipeline(other.next_pipeline),
      guard_retry_at(other.guard_retry_at),
      room_look_at(other.room_look_at),
      consolidation_look_at(other.consolidation_look_at),
      growth_look_at(other.growth_look_at),
      lane_look_at(other.lane_look_at),
      deadlines_look_at(other.deadlines_look_at),
      expected_waits(other.expected_waits),
      newest_placed(other.newest_placed),
      arrivals(other.arrivals),
      arrivals_hour(other.arrivals_hour),
      drill(other.drill),
      last_drill(other.last_drill),
      last_start(other.last_start),
      adoption(other.adoption),
      profiles(other.profiles),
      lent(other.lent) {
  rebuild_index(*this);
}

PoolState& PoolState::operator=(const PoolState& other) {
  if (this != &other) *this = PoolState(other);
  return *this;
}

// ---- the table of tasks ----------------------------------------------------------------------

TaskState& TaskTable::add() {
  const std::uint32_t id = next_++;
  if (id / page_size >= pages_.size()) pages_.resize(id / page_size + 1);
  auto& page = pages_[id / page_size];
  if (!page) page = std::make_unique<Page>();
  auto& slot = page->tasks[id % page_size];
  slot = std::make_unique<TaskState>();
  slot->id = TaskId(id);
  ++page->used;
  ++live_;
  return *slot;
}

TaskState* TaskTable::find(TaskId id) {
  if (id.value / page_size >= pages_.size()) return nullptr;
  const auto& page = pages_[id.value / page_size];
  return page ? page->tasks[id.value % page_size].get() : nullptr;
}

const TaskState* TaskTable::find(TaskId id) const {
  if (id.value / page_size >= pages_.size()) return nullptr;
  const auto& page = pages_[id.value / page_size];
  return page ? page->tasks[id.value % page_size].get() : nullptr;
}

TaskState& TaskTable::at(TaskId id) {
  TaskState* task = find(id);
  NEAP_CHECK(task != nullptr);
  return *task;
}

const TaskState& TaskTable::at(TaskId id) const {
  const TaskState* task = find(id);
  NEAP_CHECK(task != nullptr);
  return *task;
}

void TaskTable::forget(TaskId id) {
  if (find(id) == nullptr) return;
  auto& page = pages_[id.value / page_size];
  page->tasks[id.value % page_size].reset();
  --live_;
  if (--page->used == 0) page.reset();
}

void TaskTable::restore(std::uint32_t next, std::vector<TaskState> tasks) {
  *this = TaskTable();
  for (TaskState& task : tasks) {
    next_ = task.id.value;
    add() = std::move(task);
  }
  next_ = next;
  if (next_ > 0) pages_.resize((next_ - 1) / page_size + 1);
}

TaskTable::TaskTable(const TaskTable& other) : next_(other.next_), live_(other.live_) {
  pages_.resize(other.pages_.size());
  for (std::size_t p = 0; p < pages_.size(); ++p) {
    if (!other.pages_[p]) continue;
    pages_[p] = std::make_unique<Page>();
    pages_[p]->used = other.pages_[p]->used;
    for (std::size_t i = 0; i < page_size; ++i) {
      const auto& task = other.pages_[p]->tasks[i];
      if (task) pages_[p]->tasks[i] = std::make_unique<TaskState>(*task);
    }
  }
}

TaskTable& TaskTable::operator=(const TaskTable& other) {
  if (this != &other) *this = TaskTable(other);
  return *this;
}

// ---- questions -------------------------------------------------------------------------------

bool is_usable(const PoolState& state, const DeviceState& device) {
  const NodeState& node = state.node(device.node);
  return device.health == DeviceHealth::healthy && !device.excluded && node.up && node.reachable;
}

MilliGpu free_share(const DeviceState& device) {
  return whole_device - device.used_share - device.held_share;
}

MiB free_memory(const PoolState& state, const DeviceState& device) {
  return device.memory - state.spec.device_reserve - device.foreign - device.used_memory -
         device.held_memory;
}

std::optional<NodeId> find_node(const PoolState& state, std::string_view name) {
  const auto found = state.index->node_names.find(std::string(name));
  if (found == state.index->node_names.end()) return std::nullopt;
  return found->second;
}

std::optional<TaskId> find_live_task(const PoolState& state, std::string_view name) {
  const auto found = state.index->task_names.find(std::string(name));
  if (found == state.index->task_names.end()) return std::nullopt;
  return found->second;
}

std::optional<ServiceId> find_live_service(const PoolState& state, std::string_view name) {
  const auto found = state.index->service_names.find(std::string(name));
  if (found == state.index->service_names.end()) return std::nullopt;
  return found->second;
}

const PipelineState* find_pipeline(const PoolState& state, std::string_view name) {
  for (auto at = state.pipelines.rbegin(); at != state.pipelines.rend(); ++at) {
    if (at->name == name) return &*at;
  }
  return nullptr;
}

const PipelineState* find_pipeline(const PoolState& state, PipelineId id) {
  const auto found =
      std::lower_bound(state.pipelines.begin(), state.pipelines.end(), id,
                       [](const PipelineState& pipeline, PipelineId i) { return pipeline.id < i; });
  return found != state.pipelines.end() && found->id == id ? &*found : nullptr;
}

namespace {
struct DeviceCount {
  std::int64_t has = 1, asked = 1;
};
// Alike where it has no range, and while it waits.
DeviceCount devices_of(const TaskState& task) {
  if (task.spec.request.least <= 0 || task.slots.empty()) return {};
  return {static_cast<std::int64_t>(task.slots.size()), task.spec.request.count};
}
}  // namespace

std::optional<Micros> remaining_work(const TaskState& task, Time now) {
  if (!task.spec.work) return std::nullopt;
  Micros spent = task.done;
  if (task.phase == Phase::running || task.phase == Phase::yielding) {
    spent += progress_of(task, now - task.started_at);
  }
  if (spent >= *task.spec.work) return std::nullopt;
  const Micros left = *task.spec.work - spent;
  const auto [devices, asked] = devices_of(task);
  return Micros((left.value * asked + devices - 1) / devices);
}

Micros progress_of(const TaskState& task, Micros time) {
  const auto [devices, asked] = devices_of(task);
  return Micros(time.value * devices / asked);
}

Micros restore_of(const TaskState& task) {
  return task.seen_restore.value > 0 ? task.seen_restore : task.spec.contract.restore;
}

Time leaves_by(const TaskState& task) {
  return task.phase == Phase::yielding ? task.yield_by : task.kill_at;
}

bool holds_one_of(const TaskState& task, const std::vector<Slot>& slots) {
  return std::any_of(task.slots.begin(), task.slots.end(), [&](const Slot& held) {
    return std::any_of(slots.begin(), slots.end(),
                       [&](const Slot& slot) { return slot.device == held.device; });
  });
}

std::int64_t held_milli(const TaskState& task) {
  std::int64_t sum = 0;
  for (const Slot& slot : task.slots) sum += slot.share.value;
  return sum;
}

// ---- names -----------------------------------------------------------------------------------

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, 9> names{"waiting",  "starting",  "running",
                                                  "yielding", "stopping",  "finished",
                                                  "failed",   "cancelled", "refused"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view name_of(WaitCode code) {
  constexpr std::array<std::string_view, 21> names{
      "none",          "not_considered", "no_such_device", "compute",    "memory",
      "whole_devices", "fragmented",     "guard",          "buffer",     "yield_pending",
      "paused",        "backoff",        "dedicated_full", "host",       "apart",
      "excluded",      "cell",           "stage",          "team_limit", "starts",
      "adoption"};
  return names[static_cast<std::size_t>(code)];
}

std::string_view name_of(ReleaseMode mode) {
  constexpr std::array<std::string_view, 4> names{"finish", "boundary", "on_demand", "kill"};
  return names[static_cast<std::size_t>(mode)];
}

std::string_view name_of(StopReason reason) {
  constexpr std::array<std::string_view, 14> names{
      "none",          "cancelled",      "scaled_down",
      "preempted",     "guard_restored", "contract_breach",
      "device_failed", "unhealthy",      "admission_revoked",
      "moved",         "replaced",       "resized",
      "adoption",      "drill_over"};
  return names[static_cast<std::size_t>(reason)];
}

std::string_view name_of(Role role) {
  constexpr std::array<std::string_view, 5> names{"core", "buffer", "guard", "dedicated", "lane"};
  return names[static_cast<std::size_t>(role)];
}

std::string_view name_of(Purpose purpose) {
  constexpr std::array<std::string_view, 3> names{"inference", "interactive", "batch"};
  return names[static_cast<std::size_t>(purpose)];
}

std::string_view name_of(StagePhase phase) {
  constexpr std::array<std::string_view, 6> names{"waiting", "running", "reading",
                                                  "done",    "failed",  "stopped"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view name_of(BoundCode code) {
  constexpr std::array<std::string_view, 9> names{"none",        "issued",     "not_batch",
                                                  "dedicated",   "windows",    "too_large",
                                                  "constrained", "infeasible", "requeued"};
  return names[static_cast<std::size_t>(code)];
}

bool learning_is_due(const PoolState& state) {
  const std::int64_t seen = state.demand.seen;
  const std::int64_t known = state.basis.table.empty() ? 0 : state.basis.seen;
  return seen >= demand_to_learn_from &&
         seen >= std::min(2 * known, known + demand_to_learn_again) && seen > known;
}

// ---- snapshots and the hash ------------------------------------------------------------------

namespace {

// The scalar and short parts, in one list for the codec; tasks, maps and plans follow by hand.
template <class Visitor, class State>
void visit_scalars(Visitor& visitor, State& self){
    NEAP_ROW(spec, configured, now, sequence, nodes, devices, domains,
             racks) NEAP_ROW(models, services, shapes, wait_codes, preempt_retry_at, pause)
        NEAP_ROW(next_allocation, demand, basis, tide, guard_retry_at)
            NEAP_ROW(room_look_at, consolidation_look_at, newest_placed, arrivals, arrivals_hour)
                NEAP_ROW(pipelines, next_pipeline) NEAP_ROW(growth_look_at)
                    NEAP_ROW(lane_look_at, deadlines_look_at, expected_waits, drill, last_drill)
                        NEAP_ROW(last_start, adoption, profiles, lent)}

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  // The finaliser of splitmix64, applied to each word in turn.
  h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t h = bytes.size();
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word = 0;
    for (std::size_t j = i; j < std::min(i + 8, bytes.size()); ++j) {
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[j])) << (8 * (j - i));
    }
    h = mix(h, word);
  }
  return h;
}

}  // namespace

std::string encode_snapshot(const PoolState& state) {
  Encoder out;
  out.put(codec_version);
  visit_scalars(out, state);
  out.put(state.tasks.next_id());
  out.put_unsigned(state.tasks.size());
  state.tasks.for_each([&](const TaskState& task) { out.put(task); });
  out.put_unsigned(state.plans.size());
  for (const auto& [id, plan] : state.plans) out.put(plan);
  out.put_unsigned(state.conditions.size());
  for (const auto& [name, detail] : state.conditions) {
    out.put(name);
    out.put(detail);
  }
  return out.take();
}

std::uint64_t hash_of(const PoolState& state) { return hash_bytes(encode_snapshot(state)); }

Result<PoolState> decode_snapshot(std::string_view bytes) {
  Decoder in(bytes);
  std::uint32_t version = 0;
  in.get(version);
  if (in.failed() || version != codec_version) {
    return fail(ErrorCode::invalid_argument, "this snapshot has version " +
                                                 std::to_string(version) + ", expected " +
                                                 std::to_string(codec_version));
  }
  PoolState state;
  visit_scalars(in, state);
  TaskId next;
  std::vector<TaskState> tasks;
  std::vector<Plan> plans;
  in.get(next);
  in.get(tasks);
  in.get(plans);
  const std::uint64_t conditions = in.get_unsigned();
  for (std::uint64_t i = 0; i < conditions && !in.failed(); ++i) {
    std::string name, detail;
    in.get(name);
    in.get(detail);
    state.conditions.emplace(std::move(name), std::move(detail));
  }
  if (in.failed() || !in.at_end()) {
    return fail(ErrorCode::invalid_argument, "this snapshot is cut short or altered");
  }
  state.tasks.restore(next.value, std::move(tasks));
  for (Plan& plan : plans) {
    const TaskId id = plan.task;
    state.plans.emplace(id, std::move(plan));
  }
  rebuild_index(state);
  return state;
}

}  // namespace neap
