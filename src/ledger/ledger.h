// The ledger: a pure reducer over the journal's events and decisions. Feed it every record in
// order and it knows where every µs of every device went; two ledgers fed the same agree bit for
// bit. Work per record is proportional to the devices it touches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/events.h"
#include "core/model/result.h"
#include "core/model/units.h"
#include "ledger/account.h"
#include "ledger/ledger_state.h"

namespace neap::ledger {

struct Options {
  // Price of a device model in thousandths of the unit price (bill = milli-GPU x µs x price).
  std::map<std::string, std::int64_t> price_milli = {};
  // Tasks that will never run again stay this many deep; team, service and pool totals keep all.
  std::size_t closed_kept = 10'000;
};

// The third of the three numbers of F3.
struct Waits {
  std::int64_t tasks = 0;  // submitted, replicas apart
  Amount waited_us;        // all their waiting for devices so far, again after a preemption too
  [[nodiscard]] std::int64_t mean_us() const;
};

// Overhead that a preemption for no task in particular causes (the guard restored) is billed here.
inline constexpr std::string_view pool_team = "(pool)";

class Ledger {
 public:
  explicit Ledger(Options options = {});

  // Records in order; `now` is the record's time and never falls.
  void apply(Time now, const Event& event);
  void apply(Time now, const Decision& decision);

  // At a moment not before the last record.
  [[nodiscard]] Totals pool(Time now) const;
  [[nodiscard]] std::optional<Totals> task(TaskId id, Time now) const;
  [[nodiscard]] std::optional<Totals> team(const std::string& name, Time now) const;
  [[nodiscard]] std::optional<Totals> service(ServiceId id, Time now) const;
  // What its switches took, as far as it is settled; and of all services.
  [[nodiscard]] std::optional<Switches> switches(ServiceId id) const;
  [[nodiscard]] Switches switches() const;
  [[nodiscard]] std::vector<std::string> teams() const;  // sorted
  [[nodiscard]] Waits waits(Time now) const;
  [[nodiscard]] Time now() const { return state_.now; }

  // For snapshots and closing balances.
  [[nodiscard]] std::string save() const { return encode(state_); }
  [[nodiscard]] static Result<Ledger> load(std::string_view bytes, Options options);

 private:
  Options options_;
  LedgerState state_;
};

}  // namespace neap::ledger
