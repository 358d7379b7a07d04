#include "ledger/ledger_state.h"

#include <algorithm>

#include "core/model/codec.h"

// The lists of fields that save the ledger; the core's visitors find them by name look-up.
namespace neap::ledger {
namespace {

// Raised with any change of the lists below.
constexpr std::uint32_t ledger_version = 2;

}  // namespace

template <class Visitor>
void visit_fields(Visitor& visitor, const Amount& amount) {
  visitor("high", amount.high());
  visitor("low", amount.low());
}
template <class Visitor>
void visit_fields(Visitor& visitor, Amount& amount) {
  std::int64_t high = 0;
  std::uint64_t low = 0;
  visitor("high", high);
  visitor("low", low);
  amount = Amount::from_halves(high, low);
}

NEAP_FIELDS_BEGIN(Account)
NEAP_ROW(mark, held_rate, bill_rate, held, billed)
for (auto& amount : self.settled) visitor("settled", amount);
NEAP_FIELDS_END
NEAP_FIELDS(NodeBook, name, first, count, use)
NEAP_FIELDS(DeviceBook, node, price_milli, healthy, excluded, guard, used_milli, tenants)
NEAP_FIELDS(TeamBook, name, account)
NEAP_FIELDS(Switches, given, taken, time)
NEAP_FIELDS(ServiceBook, team, account, switches)
NEAP_FIELDS(StepSums, steps, busy_us)
NEAP_FIELDS(Progress, durable, alone, all)
NEAP_FIELDS_BEGIN(TaskBook)
NEAP_ROW(id, name, team, service, sdk, watch, signals, progress)
NEAP_ROW(account, cancelled, closed, charged_to, asked_in, waiting, waiting_since)
NEAP_ROW(for_demand)
NEAP_FIELDS_END
NEAP_FIELDS(Meter, mark, stage, open, last_step, begun, asked)
NEAP_FIELDS(AllocationBook, id, task, milli, bill_rate, slots, meter, shared, reason)
NEAP_FIELDS(WaitBook, tasks, waited, waiting, waiting_since)

namespace {

// What the core's visitors do not know is saved as vectors, in an order that does not depend on
// hashing.
struct Saved {
  std::uint32_t version = ledger_version;
  std::vector<TaskBook> tasks;
  std::vector<AllocationBook> allocations;
  std::vector<TaskId> closed;
  std::vector<TaskId> victims;
  std::vector<AccountId> preemptors;
};
NEAP_FIELDS(Saved, version, tasks, allocations, closed, victims, preemptors)

}  // namespace

NEAP_FIELDS_BEGIN(LedgerState)
NEAP_ROW(now, provisioned, pool, nodes, devices, guard, teams, services)
NEAP_ROW(next_task, waits)
for (auto& amount : self.idle) visitor("idle", amount);
for (auto& milli : self.idle_milli) visitor("idle_milli", milli);
NEAP_FIELDS_END

std::string encode(const LedgerState& state) {
  Saved saved;
  for (const auto& [id, task] : state.tasks) saved.tasks.push_back(task);
  for (const auto& [id, allocation] : state.allocations) saved.allocations.push_back(allocation);
  const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
  std::sort(saved.tasks.begin(), saved.tasks.end(), by_id);
  std::sort(saved.allocations.begin(), saved.allocations.end(), by_id);
  saved.closed.assign(state.closed.begin(), state.closed.end());
  for (const auto& [victim, preemptor] : state.preemptors) {
    saved.victims.push_back(victim);
    saved.preemptors.push_back(preemptor);
  }
  Encoder encoder;
  encoder.put(saved);
  encoder.put(state);
  return encoder.take();
}

Result<LedgerState> decode(std::string_view bytes) {
  Decoder decoder(bytes);
  Saved saved;
  LedgerState state;
  decoder.get(saved);
  if (saved.version != ledger_version) {
    return fail(ErrorCode::conflict, "the ledger was saved as version " +
                                         std::to_string(saved.version) + ", this neap reads " +
                                         std::to_string(ledger_version));
  }
  decoder.get(state);
  if (decoder.failed() || !decoder.at_end() || saved.victims.size() != saved.preemptors.size()) {
    return fail(ErrorCode::invalid_argument, "the saved ledger is damaged");
  }
  for (TaskBook& task : saved.tasks) {
    if (!task.closed && !task.service.valid()) state.live_tasks[task.name] = task.id;
    state.tasks.emplace(task.id, std::move(task));
  }
  for (AllocationBook& a : saved.allocations) state.allocations.emplace(a.id, std::move(a));
  state.closed.assign(saved.closed.begin(), saved.closed.end());
  for (std::size_t i = 0; i < saved.victims.size(); ++i) {
    state.preemptors.emplace(saved.victims[i], saved.preemptors[i]);
  }
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    state.node_ids.emplace(state.nodes[i].name, NodeId(static_cast<std::uint32_t>(i)));
  }
  for (std::size_t i = 0; i < state.teams.size(); ++i) {
    state.team_ids.emplace(state.teams[i].name, AccountId(static_cast<std::uint32_t>(i)));
  }
  return state;
}

}  // namespace neap::ledger
