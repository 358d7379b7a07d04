// Keeps the accounts while records are applied: what is held and idle, who is billed.
#pragma once

#include "ledger/ledger.h"
#include "ledger/ledger_state.h"

namespace neap::ledger {

class Books {
 public:
  Books(LedgerState& state, const Options& options) : s_(state), options_(options) {}

  // All totals up to `now`; the first step of every record.
  void advance(Time now);

  void add_node(const NodeSpec& spec);
  // Where a node is not open, what is free there cannot be used.
  void set_node(NodeId node, NodeUse use);
  [[nodiscard]] NodeId node_named(const std::string& name) const;
  // Applies `change` to a device and moves its idle share to the category it now belongs to.
  template <class Change>
  void change_device(DeviceId id, Change&& change) {
    DeviceBook& device = s_.devices[id.value];
    count_idle(device, -1);
    change(device);
    count_idle(device, +1);
  }

  [[nodiscard]] AccountId team(const std::string& name);
  TaskBook& add_task(const std::string& name, const std::string& team, ServiceId service);
  [[nodiscard]] TaskBook* find_task(TaskId id);
  void start_waiting(TaskBook& task);
  void stop_waiting(TaskBook& task);
  void close_task(TaskBook& task);

  void place(const TaskPlaced& placed);
  [[nodiscard]] AllocationBook* find_allocation(AllocationId id);
  // Whether another task was on any of its devices since the last call.
  // Before its reason becomes this one.
  void note_asked(const TaskBook& task, const AllocationBook& allocation, StopReason reason);
  [[nodiscard]] Company company_since_last_call(AllocationBook& allocation);
  void release(AllocationBook& allocation);

  // Runs a rule of metering.h on an allocation and books what it settles.
  template <class Rule>
  void settle(AllocationBook& allocation, Rule&& rule) {
    Settled settled;
    const Time before = allocation.meter.mark;
    rule(allocation.meter, settled);
    book(allocation, settled, before);
  }

 private:
  void count_idle(const DeviceBook& device, std::int64_t sign);
  void book(const AllocationBook& allocation, const Settled& settled, Time before);
  void book_switch(const TaskBook& task, const AllocationBook& allocation, const Settled& settled);
  void charge(TaskBook& task, const AllocationBook& allocation, const Settled& settled);
  void change_rates(TaskBook& task, const AllocationBook& allocation, std::int64_t sign);
  [[nodiscard]] Account* service_account(ServiceId id);

  LedgerState& s_;
  const Options& options_;
};

}  // namespace neap::ledger
