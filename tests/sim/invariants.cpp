#include "tests/sim/invariants.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <variant>

#include "core/model/pool_index.h"
#include "core/rules/explain.h"
#include "core/rules/place.h"
#include "tests/sim/difference.h"
#include "tests/sim/trace.h"

namespace neap::sim {

namespace {

constexpr std::uint64_t hash_every = 16;
constexpr std::uint64_t reasons_every = 8;
constexpr std::uint64_t round_trip_every = 128;
constexpr std::size_t violations_kept = 10;

struct Sum {
  std::int64_t share = 0, memory = 0;
};

}  // namespace

Invariants::Invariants(const simulated::Machines& machines)
    : machines_(machines), traced_(std::getenv("NEAP_SIM_TRACE") != nullptr) {}

std::string Invariants::text_of(const TaskState& task) {
  return "task " + std::to_string(task.id.value) + " (" + task.spec.name + ", " +
         std::string(name_of(task.phase)) + ")";
}

void Invariants::note(std::string text) {
  if (violations_.size() == violations_kept) return;
  violations_.push_back("at " + std::to_string(now_.us / 1'000'000) + " s, record " +
                        std::to_string(sequence_) + ": " + std::move(text));
}

void Invariants::stepped(const PoolState& state, Time now, const Event& event,
                         const StepResult& result) {
  now_ = now;
  ++checked_;
  apply(second_, now, event);
  sequence_ = second_.sequence;
  if (traced_) std::fputs(trace_line(now, sequence_, event).c_str(), stdout);
  for (const Decision& decision : result.decisions) {
    ++sequence_;
    if (traced_) std::fputs(trace_line(now, sequence_, decision).c_str(), stdout);
    std::visit([&](const auto& d) { check(d); }, decision);
    apply(second_, now, decision);
  }
  check_devices(state);
  check_processes(state);
  check_tasks(state);
  check_claims(state);
  if (checked_ % reasons_every == 0) check_reasons_hold(state);
  if (checked_ % hash_every == 0) check_same(state, second_, "what its records make of it");
  if (checked_ % round_trip_every == 0) check_round_trip(state);
}

void Invariants::restarted(const PoolState& state, const SimulatedJournal& journal) {
  second_ = journal.replay();
  check_same(state, second_, "the replay of the whole journal");
  // A promise that was not durable was not made.
  std::erase_if(promised_, [&](const auto& promise) {
    const TaskState* task = second_.tasks.find(promise.second);
    return task == nullptr || task->spec.name != promise.first;
  });
  std::erase_if(ended_, [&](const auto& entry) {
    const TaskState* task = second_.tasks.find(entry.first);
    return task == nullptr || !has_ended(task->phase);
  });
}

void Invariants::spins(Time now) {
  now_ = now;
  violated("the engine asks for its timer again and again and goes nowhere");
}

void Invariants::check_all(const PoolState& state, const SimulatedJournal& journal) {
  SimulatedJournal all = journal;
  all.set_durable(all.size());
  check_same(state, all.replay(), "the replay of the whole journal");
  check_same(state, all.restore(), "the replay from its last snapshot");
  check_round_trip(state);
  check_reasons_hold(state);
}

// ---- what is held ----------------------------------------------------------------------------

void Invariants::check_devices(const PoolState& state) {
  std::vector<Sum> held(state.devices.size());
  state.tasks.for_each([&](const TaskState& task) {
    if (!holds_devices(task.phase)) {
      // A task without a process holds no quota.
      if (!task.slots.empty()) violated(task, " has slots and no process");
      return;
    }
    if (task.slots.size() != static_cast<std::size_t>(task.spec.request.count)) {
      violated(task, " holds another number of devices than it asked for");
    }
    for (const Slot& slot : task.slots) {
      held[slot.device.value].share += slot.share.value;
      held[slot.device.value].memory += slot.memory.value;
      if (slot.memory < task.spec.request.memory) violated(task, " has less memory than asked");
      if (slot.share < task.spec.request.share) violated(task, " has less compute than asked");
    }
  });
  for (std::size_t d = 0; d < held.size(); ++d) {
    const DeviceState& device = state.devices[d];
    if (held[d].share > whole_device.value) {
      violated(device, " carries ", held[d].share, " of 1000 milli-GPU");
    }
    if (held[d].memory > (device.memory - state.spec.device_reserve).value) {
      violated(device, " carries ", held[d].memory, " MiB of ", device.memory.value);
    }
    Sum tenants;
    for (const Tenant& tenant : device.tenants) {
      tenants.share += tenant.share.value;
      tenants.memory += tenant.memory.value;
    }
    if (tenants.share != held[d].share || device.used_share.value != held[d].share ||
        tenants.memory != held[d].memory || device.used_memory.value != held[d].memory) {
      violated(device, " counts another use than its tasks have");
    }
  }
}

// Every process that really runs is one the engine knows to hold just that: nothing was given
// back before its end was confirmed, and nothing was started that is not in the books.
void Invariants::check_processes(const PoolState& state) {
  for (const std::string& broken : machines_.broken_promises()) violated(broken);
  std::map<AllocationId, const TaskState*> holders;
  state.tasks.for_each([&](const TaskState& task) {
    if (!holds_devices(task.phase)) return;
    if (!holders.emplace(task.allocation, &task).second) {
      violated(task, " has the allocation of another task");
    }
  });
  for (const auto& [name, node] : machines_.nodes()) {
    for (const simulated::Machines::Device& device : node.devices) {
      for (const simulated::Machines::Process& process : device.processes) {
        const auto found = holders.find(process.allocation);
        const auto number = static_cast<std::int64_t>(process.allocation.value);
        if (found == holders.end()) {
          violated("allocation ", number, " still runs on ", device.spec.uuid,
                   ", and its capacity is counted as free");
          continue;
        }
        const TaskState& task = *found->second;
        const bool booked =
            std::any_of(task.slots.begin(), task.slots.end(), [&](const Slot& slot) {
              return state.device(slot.device).uuid == device.spec.uuid &&
                     slot.share == process.share && slot.memory == process.memory;
            });
        if (!booked) violated(task, " runs on ", device.spec.uuid, ", which it does not hold");
      }
    }
  }
}

// ---- tasks -----------------------------------------------------------------------------------

void Invariants::check_tasks(const PoolState& state) {
  for (const auto& [name, id] : promised_) {
    const TaskState* task = state.tasks.find(id);
    if (task == nullptr || task->spec.name != name) violated("task ", name, " is lost");
  }
  const bool work_left = !state.index->agenda.shapes.empty();
  state.tasks.for_each([&](const TaskState& task) {
    const auto known = ended_.find(task.id);
    if (known != ended_.end() && known->second != task.phase) {
      violated(task, " had ended as ", name_of(known->second));
    }
    if (has_ended(task.phase)) {
      ended_[task.id] = task.phase;
      return;
    }
    if (task.phase != Phase::waiting) return;
    const WaitCode reason = wait_code_of(state, task);
    const bool told = reason != WaitCode::none && reason != WaitCode::not_considered;
    if (!told && !work_left) violated(task, " waits without a reason");
  });
}

// Who stays and what is claimed never exceed a device: every plan can be carried out. And who is
// asked to go elsewhere has its place there (D8, POLICIES 5).
void Invariants::check_claims(const PoolState& state) {
  std::map<std::uint32_t, Sum> claimed;
  std::map<std::uint32_t, std::vector<TaskId>> leaving;
  for (const auto& [id, plan] : state.plans) {
    for (const Slot& slot : plan.slots) {
      claimed[slot.device.value].share += slot.share.value;
      for (const Victim& victim : plan.victims) {
        leaving[slot.device.value].push_back(victim.task);
      }
    }
  }
  for (const auto& [d, sum] : claimed) {
    const DeviceState& device = state.devices[d];
    std::int64_t share = sum.share;
    for (const Tenant& tenant : device.tenants) {
      const auto& gone = leaving[d];
      const bool stays = std::find(gone.begin(), gone.end(), tenant.task) == gone.end();
      share += stays ? tenant.share.value : 0;
    }
    if (share > whole_device.value) {
      violated(device, " has ", share, " of 1000 milli-GPU claimed or held for good");
    }
  }
  for (const TaskId id : state.index->leaving) {
    const TaskState& task = state.tasks.at(id);
    if (task.phase != Phase::yielding || task.stop_reason != StopReason::moved) continue;
    const auto plan = state.plans.find(id);
    if (plan == state.plans.end() || plan->second.kind != PlanKind::move) {
      violated(task, " is moved and has no place to go to");
    }
  }
}

// Nobody waits who could run, and the reason of who waits is the one that holds now.
void Invariants::check_reasons_hold(const PoolState& state) {
  if (!state.index->agenda.shapes.empty()) return;
  for (std::uint32_t s = 0; s < state.shapes.size(); ++s) {
    if (state.index->waiting[s].empty()) continue;
    const Placement placement = place(state, state.shapes[s]);
    const TaskState& task = state.tasks.at(state.index->waiting[s].begin()->task);
    const char* found = !placement.slots.empty()            ? "the engine's own search"
                        : could_run(state, state.shapes[s]) ? "a look at every device"
                                                            : nullptr;
    if (found != nullptr) {
      violated(task, " waits (", name_of(state.wait_codes[s]), ") and there is room for it, says ",
               found);
    }
  }
}

namespace {
// Guard and buffer are enough for all services at their largest: inference keeps to them.
bool region_is_enough(const PoolState& state) {
  const auto usable =
      std::count_if(state.devices.begin(), state.devices.end(), [&](const DeviceState& d) {
        return is_usable(state, d) && (d.role == Role::guard || d.role == Role::buffer);
      });
  std::int64_t needed = 0;
  for (const ServiceState& service : state.services) {
    const ServiceSpec& spec = service.spec;
    needed += service.removed ? 0 : std::int64_t{spec.max_replicas} * spec.request.count;
  }
  return needed > 0 && needed <= usable;
}
}  // namespace

bool could_run(const PoolState& state, const Shape& shape) {
  const Request& request = shape.request;
  const bool keeps_to_region = region_is_enough(state);
  for (const NodeState& node : state.nodes) {
    std::map<std::uint16_t, std::int32_t> fitting;  // by model
    for (std::int32_t i = 0; i < node.count; ++i) {
      const DeviceState& d = state.devices[node.first.value + static_cast<std::uint32_t>(i)];
      if (!is_usable(state, d)) continue;
      const bool training = shape.purpose != Purpose::inference;
      bool allowed = shape.dedicated == (d.role == Role::dedicated);
      if (training && d.role == Role::guard) allowed = false;
      if (!training && keeps_to_region && d.role == Role::core) allowed = false;
      if (training && d.role == Role::buffer && !shape.releasable) allowed = false;
      const auto& models = request.models;
      if (!models.empty() && std::find(models.begin(), models.end(),
                                       state.models[d.model.value].name) == models.end()) {
        allowed = false;
      }
      for (const Tenant& tenant : d.tenants) {
        const std::string& domain = state.tasks.at(tenant.task).spec.request.trust_domain;
        if (domain != request.trust_domain) allowed = false;
      }
      const MiB usable_memory = d.memory - state.spec.device_reserve;
      const bool whole = request.share == whole_device ||
                         request.memory.value * 1'000'000 >
                             usable_memory.value * state.spec.prefilter.out_above.value;
      if (!whole && usable_memory < state.spec.share_min_memory) allowed = false;
      const MilliGpu share = whole ? whole_device : request.share;
      const MiB memory = std::max(request.memory, MiB(whole ? 1 : 0));
      if (allowed && free_share(d) >= share && free_memory(state, d) >= memory) {
        ++fitting[d.model.value];
      }
    }
    for (const auto& [model, count] : fitting) {
      if (count >= request.count) return true;
    }
  }
  return false;
}

void Invariants::check_at_rest(const PoolState& state) {
  state.tasks.for_each([&](const TaskState& task) {
    if (!holds_devices(task.phase)) return;
    if (!machines_.is_running(task.allocation)) violated(task, " holds devices without a process");
  });
  if (!state.plans.empty()) violated("a plan is left that nobody carries out");
  check_reasons_hold(state);
}

// ---- records ---------------------------------------------------------------------------------

void Invariants::check_same(const PoolState& a, const PoolState& b, const char* what) {
  if (hash_of(a) == hash_of(b)) return;
  violated("the state is another one than ", what, ": ", state_difference(a, b));
}

void Invariants::check_round_trip(const PoolState& state) {
  const Result<PoolState> back = decode_snapshot(encode_snapshot(state));
  if (!back) {
    violated("the snapshot cannot be read: ", back.error().message);
    return;
  }
  check_same(state, *back, "its snapshot");
  if (!index_is_current(state)) {
    violated("the index is another one than a rebuilt one: ", index_difference(state));
  }
}

}  // namespace neap::sim
