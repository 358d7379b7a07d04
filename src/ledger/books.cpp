#include "ledger/books.h"

#include <algorithm>

#include "core/model/check.h"

namespace neap::ledger {
namespace {

constexpr std::int64_t whole = whole_device.value;

std::size_t idle_index(const DeviceBook& device, const NodeBook& node) {
  if (!device.healthy || device.excluded || node.use != NodeUse::open) return 3;  // fault
  if (device.guard) return 0;                                                     // guard_idle
  return device.used_milli > 0 ? 1 : 2;  // fragmented_idle : free
}

}  // namespace

void Books::advance(Time now) {
  NEAP_CHECK(now >= s_.now);
  const std::int64_t us = (now - s_.now).value;
  if (us == 0) return;
  s_.provisioned += Amount::product(static_cast<std::int64_t>(s_.devices.size()) * whole, us);
  for (std::size_t i = 0; i < idle_count; ++i) {
    s_.idle[i] += Amount::product(s_.idle_milli[i], us);
  }
  s_.pool.advance(now);
  s_.now = now;
}

void Books::count_idle(const DeviceBook& device, std::int64_t sign) {
  const NodeBook& node = s_.nodes[device.node.value];
  s_.idle_milli[idle_index(device, node)] += sign * (whole - device.used_milli);
}

void Books::add_node(const NodeSpec& spec) {
  const NodeId id(static_cast<std::uint32_t>(s_.nodes.size()));
  s_.nodes.push_back({spec.name, DeviceId(static_cast<std::uint32_t>(s_.devices.size())),
                      static_cast<std::uint32_t>(spec.devices.size()), NodeUse::open});
  s_.node_ids.emplace(spec.name, id);
  for (const DeviceSpec& device : spec.devices) {
    const auto price = options_.price_milli.find(device.model);
    DeviceBook book;
    book.node = id;
    book.price_milli = price == options_.price_milli.end() ? 1000 : price->second;
    s_.devices.push_back(std::move(book));
    count_idle(s_.devices.back(), +1);
  }
}

void Books::set_node(NodeId id, NodeUse use) {
  NodeBook& node = s_.nodes[id.value];
  for (std::uint32_t i = 0; i < node.count; ++i) count_idle(s_.devices[node.first.value + i], -1);
  node.use = use;
  for (std::uint32_t i = 0; i < node.count; ++i) count_idle(s_.devices[node.first.value + i], +1);
}

NodeId Books::node_named(const std::string& name) const {
  const auto found = s_.node_ids.find(name);
  return found == s_.node_ids.end() ? NodeId::none() : found->second;
}

AccountId Books::team(const std::string& name) {
  const auto [at, added] =
      s_.team_ids.emplace(name, AccountId(static_cast<std::uint32_t>(s_.teams.size())));
  if (added) s_.teams.push_back({name, {}});
  return at->second;
}

TaskBook& Books::add_task(const std::string& name, const std::string& team_name,
                          ServiceId service) {
  const TaskId id(s_.next_task++);
  TaskBook& task = s_.tasks[id];
  task.id = id;
  task.name = name;
  task.team = team(team_name);
  task.service = service;
  task.account.mark = s_.now;
  if (!service.valid()) {
    s_.live_tasks[name] = id;
    ++s_.waits.tasks;
    start_waiting(task);
  }
  return task;
}

TaskBook* Books::find_task(TaskId id) {
  const auto found = s_.tasks.find(id);
  return found == s_.tasks.end() ? nullptr : &found->second;
}

void Books::start_waiting(TaskBook& task) {
  if (task.waiting) return;
  task.waiting = true;
  task.waiting_since = s_.now;
  ++s_.waits.waiting;
  s_.waits.waiting_since += Amount(s_.now.us);
}

void Books::stop_waiting(TaskBook& task) {
  if (!task.waiting) return;
  task.waiting = false;
  --s_.waits.waiting;
  s_.waits.waiting_since -= Amount(task.waiting_since.us);
  s_.waits.waited += Amount((s_.now - task.waiting_since).value);
}

void Books::close_task(TaskBook& task) {
  if (task.closed) return;
  stop_waiting(task);
  task.closed = true;
  s_.preemptors.erase(task.id);
  const auto live = s_.live_tasks.find(task.name);
  if (live != s_.live_tasks.end() && live->second == task.id) s_.live_tasks.erase(live);
  s_.closed.push_back(task.id);
  if (s_.closed.size() <= options_.closed_kept) return;
  const TaskId oldest = s_.closed.front();
  s_.closed.pop_front();
  s_.tasks.erase(oldest);
}

void Books::place(const TaskPlaced& placed) {
  TaskBook* task = find_task(placed.task);
  NEAP_CHECK(task != nullptr);
  stop_waiting(*task);
  AllocationBook& allocation = s_.allocations[placed.allocation];
  allocation.id = placed.allocation;
  allocation.task = placed.task;
  allocation.meter.mark = s_.now;
  for (const Slot& slot : placed.slots) {
    allocation.milli += slot.share.value;
    allocation.bill_rate += slot.share.value * s_.devices[slot.device.value].price_milli;
    allocation.slots.push_back(slot);
    change_device(slot.device, [&](DeviceBook& device) {
      for (const AllocationId other : device.tenants) {
        s_.allocations.at(other).shared = allocation.shared = true;
      }
      device.used_milli += slot.share.value;
      device.tenants.push_back(placed.allocation);
      NEAP_CHECK(device.used_milli <= whole);
    });
  }
  change_rates(*task, allocation, +1);
  if (task->for_demand) ++s_.services[task->service.value].switches.taken;
}

AllocationBook* Books::find_allocation(AllocationId id) {
  const auto found = s_.allocations.find(id);
  return found == s_.allocations.end() ? nullptr : &found->second;
}

Company Books::company_since_last_call(AllocationBook& allocation) {
  const Company company = allocation.shared ? Company::shared : Company::alone;
  allocation.shared = std::any_of(
      allocation.slots.begin(), allocation.slots.end(),
      [&](const Slot& slot) { return s_.devices[slot.device.value].tenants.size() > 1; });
  return company;
}

void Books::release(AllocationBook& allocation) {
  NEAP_CHECK(allocation.meter.mark == s_.now);  // all its time is settled
  TaskBook* task = find_task(allocation.task);
  change_rates(*task, allocation, -1);
  for (const Slot& slot : allocation.slots) {
    change_device(slot.device, [&](DeviceBook& device) {
      device.tenants.erase(std::find(device.tenants.begin(), device.tenants.end(), allocation.id));
      device.used_milli -= slot.share.value;
    });
  }
  s_.allocations.erase(allocation.id);
}

Account* Books::service_account(ServiceId id) {
  return id.valid() ? &s_.services[id.value].account : nullptr;
}

void Books::change_rates(TaskBook& task, const AllocationBook& allocation, std::int64_t sign) {
  const auto change = [&](Account& account) {
    account.advance(s_.now);
    account.held_rate += sign * allocation.milli;
    account.bill_rate += sign * allocation.bill_rate;
  };
  change(s_.pool);
  change(task.account);
  change(s_.teams[task.team.value].account);
  if (Account* service = service_account(task.service)) change(*service);
}

void Books::book(const AllocationBook& allocation, const Settled& settled, Time before) {
  std::int64_t sum = 0;
  TaskBook& task = *find_task(allocation.task);
  Account& team = s_.teams[task.team.value].account;
  Account* service = service_account(task.service);
  for (std::size_t i = 0; i < settled_count; ++i) {
    const std::int64_t us = settled.us[i];
    if (us == 0) continue;
    NEAP_CHECK(us > 0);
    sum += us;
    const Amount amount = Amount::product(allocation.milli, us);
    s_.pool.settled[i] += amount;
    task.account.settled[i] += amount;
    team.settled[i] += amount;
    if (service != nullptr) service->settled[i] += amount;
  }
  // Each µs is settled exactly once: this is what makes the ledger's sum exact.
  NEAP_CHECK(sum == (allocation.meter.mark - before).value && allocation.meter.mark <= s_.now);
  if (service != nullptr) book_switch(task, allocation, settled);
  if (task.charged_to.valid()) charge(task, allocation, settled);
}

void Books::note_asked(const TaskBook& task, const AllocationBook& allocation, StopReason reason) {
  if (!task.service.valid() || reason != StopReason::scaled_down) return;
  if (allocation.reason != StopReason::scaled_down) {
    ++s_.services[task.service.value].switches.given;
  }
}

// What a load for a higher demand and a departure for a lower one cost. No time of its own: the
// account has it as restore and drain.
void Books::book_switch(const TaskBook& task, const AllocationBook& allocation,
                        const Settled& settled) {
  std::int64_t us = 0;
  if (task.for_demand) us += settled.us[static_cast<std::size_t>(Category::restore)];
  if (allocation.reason == StopReason::scaled_down) {
    us += settled.us[static_cast<std::size_t>(Category::drain)];
  }
  s_.services[task.service.value].switches.time += Amount::product(allocation.milli, us);
}

void Books::charge(TaskBook& task, const AllocationBook& allocation, const Settled& settled) {
  std::int64_t overhead = 0;
  for (const Category category : {Category::lost_and_replayed, Category::checkpoint_stall,
                                  Category::drain, Category::restore}) {
    overhead += settled.us[static_cast<std::size_t>(category)];
  }
  const Amount amount = Amount::product(allocation.bill_rate, overhead);
  task.account.billed -= amount;
  s_.teams[task.team.value].account.billed -= amount;
  if (Account* service = service_account(task.service)) service->billed -= amount;
  s_.teams[task.charged_to.value].account.billed += amount;
  // In a later allocation the overhead ends with the restore.
  if (allocation.id != task.asked_in && allocation.meter.stage != Stage::restoring) {
    task.charged_to = AccountId::none();
  }
}

}  // namespace neap::ledger
