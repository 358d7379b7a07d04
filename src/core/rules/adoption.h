// The stages in which a pool takes up sharing (SPEC F8): what one has shown, whether the next may
// begin, and who has to leave when it goes back.
#pragma once

#include <string>
#include <vector>

#include "core/model/state.h"

namespace neap {

[[nodiscard]] std::string_view name_of(AdoptionStage stage);
[[nodiscard]] std::string_view name_of(Preset preset);
[[nodiscard]] std::string_view name_of(Isolation isolation);

// One condition of the check before the next stage.
struct AdoptionGate {
  std::string name;  // stable, such as "stabilised"
  bool met = false;
  std::string detail;  // measured, and what is asked for
};
// Of the stage after the present one; none after the last.
[[nodiscard]] std::vector<AdoptionGate> stage_gates(const PoolState& state, Time now);
// Those that are not met, in one line; empty when all are.
[[nodiscard]] std::string missing_gates(const PoolState& state, Time now);

// One step forward or any number back; forward only with all gates met, or forced with a reason.
[[nodiscard]] Result<void> check_stage_change(const PoolState& state,
                                              const AdoptionChangeRequested& change, Time now);

// A running training task that the stage no longer has where it is: on devices that are not lent,
// or, where each has its devices alone, beside another one that was there before it.
[[nodiscard]] bool is_out_of_stage(const PoolState& state, const TaskState& task);
// Inference takes devices of training back in the last stage alone.
[[nodiscard]] bool may_claim_back(const PoolState& state, const Shape& demand);

// ---- for apply -------------------------------------------------------------------------------

void begin_stage(PoolState& state, const AdoptionChangeRequested& change);
enum class Ending : std::uint8_t { finished, kept, failed, out_of_memory, asked };
[[nodiscard]] Ending ending_of(const TaskExited& exit, const TaskState& task);
void note_end(PoolState& state, const TaskState& task, Ending ending);
void note_stop(AdoptionBook& book, StopReason reason);
void withdraw_yield(AdoptionBook& book);
// A replica's or task's use of memory, before it is taken over.
void note_memory(PoolState& state, const TaskState& task, MiB peak);
// For so long the service was as it was at its last sample.
void note_shortage(PoolState& state, const ServiceState& service, Micros time);

}  // namespace neap
