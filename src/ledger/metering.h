// The rules that say what the time of one allocation was. Integers, pure, and the same for any
// share: all is in µs here, the ledger multiplies by the milli-GPU held.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/model/events.h"
#include "core/model/units.h"
#include "ledger/account.h"
#include "ledger/amount.h"

namespace neap::ledger {

// Sums of reported steps. Mean = busy / steps.
struct StepSums {
  std::int64_t steps = 0;
  std::int64_t busy_us = 0;
};

// What is known of a task over all its allocations.
struct Progress {
  std::int64_t durable = 0;  // highest durable step
  StepSums alone;            // while it shared none of its devices
  StepSums all;

  // The reference cost of `steps`: measured by the pool, in isolation if ever it was alone.
  [[nodiscard]] std::int64_t reference_us(std::int64_t steps) const;
};

// µs by category, as one event settles them.
struct Settled {
  std::array<std::int64_t, settled_count> us{};

  void add(Category category, std::int64_t amount) {
    us[static_cast<std::size_t>(category)] += amount;
  }
  bool operator==(const Settled&) const = default;
};

enum class Stage : std::uint8_t { restoring, working, unhealthy };
enum class Ending : std::uint8_t { finished, yielded, broken_off };

// One allocation of a training task or of a replica. Time before `mark` is settled.
struct Meter {
  Time mark;
  Stage stage = Stage::restoring;
  StepSums open;  // steps reported, and not settled
  std::int64_t last_step = 0;
  std::optional<Time> begun;  // its process runs since
  std::optional<Time> asked;  // to stop or yield, not withdrawn
};

// ---- training --------------------------------------------------------------------------------
enum class Company : std::uint8_t { alone, shared };      // on its devices, since its last report
enum class StepSource : std::uint8_t { reported, none };  // by its contract

void started(Meter& meter, StepSource steps, Time now, Settled& settled);
void steps_reported(Meter& meter, Progress& progress, const StepsReported& report, Company company,
                    Time now, Settled& settled);
void checkpoint_durable(Meter& meter, Progress& progress, const CheckpointDurable& report, Time now,
                        Settled& settled);
void training_ended(Meter& meter, Progress& progress, Ending ending, Time now, Settled& settled);

// ---- inference -------------------------------------------------------------------------------
void replica_healthy(Meter& meter, Time now, Settled& settled);
void replica_unhealthy(Meter& meter, Time now, Settled& settled);
void requests_served(Meter& meter, const RequestsServed& report, Time now, Settled& settled);
void replica_ended(Meter& meter, Time now, Settled& settled);

}  // namespace neap::ledger
