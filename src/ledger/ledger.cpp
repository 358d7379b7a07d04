#include "ledger/ledger.h"

#include <algorithm>

#include "core/model/check.h"
#include "ledger/books.h"
#include "ledger/metering.h"

namespace neap::ledger {
namespace {

bool is_sorted_member(const std::vector<DeviceId>& sorted, DeviceId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

class EventBooker {
 public:
  EventBooker(LedgerState& state, const Options& options) : s_(state), books_(state, options) {}

  // What does not move device time: configuration, load samples, requests of people.
  template <class Other>
  void operator()(const Other&) {}

  void operator()(const NodeJoined& e) {
    const NodeId known = books_.node_named(e.spec.name);
    if (known.valid()) {
      books_.set_node(known, NodeUse::open);
    } else {
      books_.add_node(e.spec);
    }
  }

  void operator()(const NodeUnreachable& e) {
    const NodeId id = node(e.node);
    if (s_.nodes[id.value].use == NodeUse::open) books_.set_node(id, NodeUse::unreachable);
  }

  void operator()(const NodeLost& e) {
    const NodeId id = node(e.node);
    books_.set_node(id, NodeUse::lost);
    std::vector<AllocationId> gone;
    for (std::uint32_t i = 0; i < s_.nodes[id.value].count; ++i) {
      const auto& tenants = s_.devices[s_.nodes[id.value].first.value + i].tenants;
      gone.insert(gone.end(), tenants.begin(), tenants.end());
    }
    std::sort(gone.begin(), gone.end());
    gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
    for (const AllocationId gone_id : gone) {
      AllocationBook& allocation = *books_.find_allocation(gone_id);
      // The other parts of a gang hold what they hold until their end is confirmed.
      if (!has_part_on_live_node(allocation)) end(allocation, Ending::broken_off, Requeue::yes);
    }
  }

  void operator()(const DeviceHealthChanged& e) {
    const NodeBook& on = s_.nodes[node(e.node).value];
    books_.change_device(DeviceId(on.first.value + static_cast<std::uint32_t>(e.index)),
                         [&](DeviceBook& d) { d.healthy = e.health == DeviceHealth::healthy; });
  }

  void operator()(const TaskSubmitted& e) {
    TaskBook& task = books_.add_task(e.spec.name, e.spec.team, ServiceId::none());
    task.sdk = e.spec.contract.sdk;
    task.watch = e.spec.contract.watch;
    task.signals = e.spec.contract.signals;
  }

  // Its stages have nothing to wait for until they enter.
  void operator()(const PipelineSubmitted& e) {
    for (const StageSpec& stage : e.spec.stages) {
      if (!stage.task) continue;
      (*this)(TaskSubmitted{*stage.task});
      books_.stop_waiting(*books_.find_task(s_.live_tasks.at(stage.task->name)));
    }
  }

  void operator()(const TaskCancelRequested& e) {
    const auto found = s_.live_tasks.find(e.name);
    if (found == s_.live_tasks.end()) return;  // a replica: its service decides
    TaskBook& task = *books_.find_task(found->second);
    task.cancelled = true;
    if (task.account.held_rate == 0) books_.close_task(task);
  }

  void operator()(const ServiceSubmitted& e) { s_.services.push_back({e.spec.team, {}, {}}); }

  void operator()(const TaskStarted& e) {
    with(e.stamp.source, [&](AllocationBook& allocation, TaskBook& task) {
      if (task.service.valid()) return;
      const StepSource steps = task.sdk ? StepSource::reported : StepSource::none;
      books_.settle(allocation, [&](Meter& m, Settled& s) { started(m, steps, s_.now, s); });
    });
  }

  void operator()(const ReplicaHealthy& e) {
    with(e.stamp.source, [&](AllocationBook& allocation, TaskBook& task) {
      if (!task.service.valid()) return;
      books_.settle(allocation, [&](Meter& m, Settled& s) { replica_healthy(m, s_.now, s); });
    });
  }

  void operator()(const ReplicaUnhealthy& e) {
    with(e.stamp.source, [&](AllocationBook& allocation, TaskBook& task) {
      if (!task.service.valid()) return;
      books_.settle(allocation, [&](Meter& m, Settled& s) { replica_unhealthy(m, s_.now, s); });
    });
  }

  void operator()(const StepsReported& e) {
    with(e.stamp.source, [&](AllocationBook& allocation, TaskBook& task) {
      if (task.service.valid()) return;
      const Company company = books_.company_since_last_call(allocation);
      books_.settle(allocation, [&](Meter& m, Settled& s) {
        steps_reported(m, task.progress, e, company, s_.now, s);
      });
    });
  }

  void operator()(const RequestsServed& e) {
    with(e.allocation, [&](AllocationBook& allocation, TaskBook& task) {
      if (!task.service.valid()) return;
      books_.settle(allocation, [&](Meter& m, Settled& s) { requests_served(m, e, s_.now, s); });
    });
  }

  void operator()(const CheckpointDurable& e) {
    with(e.stamp.source, [&](AllocationBook& allocation, TaskBook& task) {
      if (task.service.valid()) return;
      books_.settle(allocation, [&](Meter& m, Settled& s) {
        checkpoint_durable(m, task.progress, e, s_.now, s);
      });
    });
  }

  void operator()(const StartFailed& e) {
    with(e.stamp.source, [&](AllocationBook& allocation, TaskBook&) {
      end(allocation, Ending::broken_off, Requeue::no);
    });
  }

  void operator()(const TaskExited& e) {
    with(e.stamp.source, [&](AllocationBook& allocation, TaskBook& task) {
      const bool by_exit = e.signal == 0;
      const bool contract = task.sdk || task.watch || task.signals;
      if (by_exit && e.code == 0 && !task.cancelled) {
        end(allocation, Ending::finished, Requeue::no);
      } else if (by_exit && e.code == 75 && contract) {
        // With signals alone, exit 75 is the word that all is saved.
        const bool all_saved = !task.sdk && !task.watch && !task.cancelled;
        end(allocation, all_saved ? Ending::finished : Ending::yielded, Requeue::yes);
      } else {
        const bool asked = allocation.reason == StopReason::preempted ||
                           allocation.reason == StopReason::guard_restored ||
                           allocation.reason == StopReason::moved ||
                           allocation.reason == StopReason::adoption ||
                           allocation.reason == StopReason::resized ||
                           allocation.reason == StopReason::device_failed;
        end(allocation, Ending::broken_off, asked ? Requeue::yes : Requeue::no);
      }
      if (by_exit && e.code == 0 && !task.service.valid()) books_.close_task(task);
    });
  }

 private:
  enum class Requeue : std::uint8_t { yes, no };

  template <class Visit>
  void with(AllocationId id, Visit&& visit) {
    AllocationBook* allocation = books_.find_allocation(id);
    if (allocation == nullptr) return;  // a late word of one that has ended
    visit(*allocation, *books_.find_task(allocation->task));
  }

  bool has_part_on_live_node(const AllocationBook& allocation) const {
    return std::any_of(allocation.slots.begin(), allocation.slots.end(), [&](const Slot& slot) {
      const NodeId on = s_.devices[slot.device.value].node;
      return s_.nodes[on.value].use != NodeUse::lost;
    });
  }

  NodeId node(const std::string& name) const {
    const NodeId id = books_.node_named(name);
    NEAP_CHECK(id.valid());
    return id;
  }

  void end(AllocationBook& allocation, Ending ending, Requeue requeue) {
    TaskBook& task = *books_.find_task(allocation.task);
    books_.settle(allocation, [&](Meter& m, Settled& s) {
      if (task.service.valid()) {
        replica_ended(m, s_.now, s);
      } else {
        training_ended(m, task.progress, ending, s_.now, s);
      }
    });
    const bool revoked = allocation.reason == StopReason::admission_revoked;
    books_.release(allocation);
    if (task.service.valid() || task.cancelled || revoked) {
      books_.close_task(task);
    } else if (requeue == Requeue::yes) {
      books_.start_waiting(task);
    }
  }

  LedgerState& s_;
  Books books_;
};

class DecisionBooker {
 public:
  DecisionBooker(LedgerState& state, const Options& options) : s_(state), books_(state, options) {}

  template <class Other>
  void operator()(const Other&) {}

  void operator()(const TaskPlaced& d) {
    books_.place(d);
    if (d.lender.valid()) preempted_for(d.lender, {Victim{.task = d.task}});
  }

  void operator()(const TaskRefused& d) {
    if (TaskBook* task = books_.find_task(d.task)) books_.close_task(*task);
  }

  void operator()(const StageEntered& d) {
    if (d.task.valid()) {
      if (TaskBook* task = books_.find_task(d.task)) books_.start_waiting(*task);
    } else if (d.service.value == s_.services.size()) {
      s_.services.push_back({d.team, {}, {}});
    }
  }

  void operator()(const StageEnded& d) {
    TaskBook* task = d.task.valid() ? books_.find_task(d.task) : nullptr;
    if (task != nullptr && task->account.held_rate == 0) books_.close_task(*task);
  }

  void operator()(const ReplicaAdded& d) {
    TaskBook& task = books_.add_task({}, s_.services[d.service.value].team, d.service);
    NEAP_CHECK(task.id == d.task);
    task.for_demand = d.cause == ReplicaCause::demand;
  }

  void operator()(const ReplicaDropped& d) {
    if (TaskBook* task = books_.find_task(d.task)) books_.close_task(*task);
  }

  void operator()(const RolesAssigned& d) {
    for (const DeviceId id : s_.guard) {
      if (!is_sorted_member(d.guard, id)) set_guard(id, false);
    }
    for (const DeviceId id : d.guard) set_guard(id, true);
    s_.guard = d.guard;
  }

  void operator()(const DeviceExcluded& d) {
    books_.change_device(d.device, [](DeviceBook& device) { device.excluded = true; });
  }

  void operator()(const DeviceReadmitted& d) {
    books_.change_device(d.device, [](DeviceBook& device) { device.excluded = false; });
  }

  void operator()(const PreemptionPlanned& d) { preempted_for(d.task, d.victims); }
  void operator()(const RoomReserved& d) { preempted_for(d.task, d.victims); }

  void operator()(const YieldAsked& d) { asked(d.allocation, d.reason); }
  void operator()(const StopAsked& d) {
    asked(d.allocation, d.reason);
    // With its pipeline, or alone.
    AllocationBook* allocation = books_.find_allocation(d.allocation);
    if (allocation == nullptr || d.reason != StopReason::cancelled) return;
    books_.find_task(allocation->task)->cancelled = true;
  }
  void operator()(const KillAsked& d) { asked(d.allocation, d.reason); }

  void operator()(const YieldWithdrawn& d) {
    AllocationBook* allocation = books_.find_allocation(d.allocation);
    if (allocation == nullptr) return;
    allocation->meter.asked.reset();
    allocation->reason = StopReason::none;
    s_.preemptors.erase(d.task);
    books_.find_task(d.task)->charged_to = AccountId::none();
  }

 private:
  void preempted_for(TaskId task, const std::vector<Victim>& victims) {
    const TaskBook* by = books_.find_task(task);
    if (by == nullptr) return;
    for (const Victim& victim : victims) s_.preemptors[victim.task] = by->team;
  }

  void set_guard(DeviceId id, bool guard) {
    books_.change_device(id, [guard](DeviceBook& device) { device.guard = guard; });
  }

  void asked(AllocationId id, StopReason reason) {
    AllocationBook* allocation = books_.find_allocation(id);
    if (allocation == nullptr) return;
    if (!allocation->meter.asked) allocation->meter.asked = s_.now;
    TaskBook& task = *books_.find_task(allocation->task);
    books_.note_asked(task, *allocation, reason);
    allocation->reason = reason;
    if (reason != StopReason::preempted && reason != StopReason::guard_restored &&
        reason != StopReason::moved && reason != StopReason::adoption &&
        reason != StopReason::resized) {
      return;
    }
    const auto preemptor = s_.preemptors.find(task.id);
    const bool planned = reason == StopReason::preempted && preemptor != s_.preemptors.end();
    task.charged_to = planned ? preemptor->second : books_.team(std::string(pool_team));
    task.asked_in = id;
  }

  LedgerState& s_;
  Books books_;
};

// What an account amounts to once it is brought up to `now`.
Totals totals_of(Account account, Time now) {
  account.advance(now);
  Totals totals;
  totals.provisioned = account.held;
  totals.billed = account.billed;
  Amount pending = account.held;
  for (std::size_t i = 0; i < settled_count; ++i) {
    totals.by_category[i] = account.settled[i];
    pending -= account.settled[i];
  }
  totals.by_category[static_cast<std::size_t>(Category::pending)] = pending;
  NEAP_CHECK(pending >= Amount());
  return totals;
}

}  // namespace

std::int64_t Waits::mean_us() const {
  return tasks == 0 ? 0 : static_cast<std::int64_t>(waited_us.value() / tasks);
}

Ledger::Ledger(Options options) : options_(std::move(options)) {
  options_.closed_kept = std::max<std::size_t>(1, options_.closed_kept);  // the one just closed
}

void Ledger::apply(Time now, const Event& event) {
  Books(state_, options_).advance(now);
  std::visit(EventBooker(state_, options_), event);
}

void Ledger::apply(Time now, const Decision& decision) {
  Books(state_, options_).advance(now);
  std::visit(DecisionBooker(state_, options_), decision);
}

Totals Ledger::pool(Time now) const {
  NEAP_CHECK(now >= state_.now);
  const std::int64_t us = (now - state_.now).value;
  Totals totals = totals_of(state_.pool, now);
  totals.provisioned =
      state_.provisioned +
      Amount::product(static_cast<std::int64_t>(state_.devices.size()) * whole_device.value, us);
  for (std::size_t i = 0; i < idle_count; ++i) {
    totals.by_category[static_cast<std::size_t>(idle_categories[i])] +=
        state_.idle[i] + Amount::product(state_.idle_milli[i], us);
  }
  Amount sum;
  for (const Amount amount : totals.by_category) sum += amount;
  NEAP_CHECK(sum == totals.provisioned);
  return totals;
}

std::optional<Totals> Ledger::task(TaskId id, Time now) const {
  const auto found = state_.tasks.find(id);
  if (found == state_.tasks.end()) return std::nullopt;
  return totals_of(found->second.account, now);
}

std::optional<Totals> Ledger::team(const std::string& name, Time now) const {
  const auto found = state_.team_ids.find(name);
  if (found == state_.team_ids.end()) return std::nullopt;
  return totals_of(state_.teams[found->second.value].account, now);
}

std::optional<Totals> Ledger::service(ServiceId id, Time now) const {
  if (id.value >= state_.services.size()) return std::nullopt;
  return totals_of(state_.services[id.value].account, now);
}

std::optional<Switches> Ledger::switches(ServiceId id) const {
  if (id.value >= state_.services.size()) return std::nullopt;
  return state_.services[id.value].switches;
}

Switches Ledger::switches() const {
  Switches all;
  for (const ServiceBook& service : state_.services) {
    all.given += service.switches.given;
    all.taken += service.switches.taken;
    all.time += service.switches.time;
  }
  return all;
}

std::vector<std::string> Ledger::teams() const {
  std::vector<std::string> names;
  for (const TeamBook& team : state_.teams) names.push_back(team.name);
  std::sort(names.begin(), names.end());
  return names;
}

Waits Ledger::waits(Time now) const {
  const WaitBook& book = state_.waits;
  return {book.tasks, book.waited + Amount::product(book.waiting, now.us) - book.waiting_since};
}

Result<Ledger> Ledger::load(std::string_view bytes, Options options) {
  auto state = decode(bytes);
  if (!state) return tl::unexpected(std::move(state.error()));
  Ledger ledger(std::move(options));
  ledger.state_ = std::move(*state);
  return ledger;
}

}  // namespace neap::ledger
