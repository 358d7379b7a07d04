// What must hold at every event, whatever goes wrong. Compares what the engine believes with what
// is really there, and with a second state that is built from the records alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/simulated/machines.h"
#include "core/engine.h"
#include "tests/sim/daemon.h"

namespace neap::sim {

class Invariants : public LoopObserver {
 public:
  explicit Invariants(const simulated::Machines& machines);

  void stepped(const PoolState& state, Time now, const Event& event,
               const StepResult& result) override;
  void restarted(const PoolState& state, const SimulatedJournal& journal) override;
  void spins(Time now) override;

  // Somebody was told that this task is in the pool: it must never vanish.
  void promise(const std::string& name, TaskId id) { promised_[name] = id; }
  // All that is checked only now and then, at the end.
  void check_all(const PoolState& state, const SimulatedJournal& journal);
  // Everything has come to rest: whoever holds devices has a process, whoever waits cannot run.
  void check_at_rest(const PoolState& state);

  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  [[nodiscard]] std::uint64_t checked() const { return checked_; }
  [[nodiscard]] std::uint64_t reserved() const { return reserved_; }
  [[nodiscard]] std::uint64_t lent() const { return lent_; }
  [[nodiscard]] std::uint64_t moved() const { return moved_; }

 private:
  static std::string text_of(std::string_view text) { return std::string(text); }
  static std::string text_of(std::int64_t number) { return std::to_string(number); }
  static std::string text_of(const TaskState& task);
  static std::string text_of(const DeviceState& device) { return "device " + device.uuid; }
  template <class... Parts>
  void violated(const Parts&... parts) {
    std::string text;
    (text.append(text_of(parts)), ...);
    note(std::move(text));
  }
  void note(std::string text);
  void check_devices(const PoolState& state);
  void check_processes(const PoolState& state);
  void check_tasks(const PoolState& state);
  void check_reasons_hold(const PoolState& state);
  void check_same(const PoolState& a, const PoolState& b, const char* what);
  void check_round_trip(const PoolState& state);

  // Before each decision is applied to the second state.
  void check(const TaskPlaced& d);
  void check(const PreemptionPlanned& d);
  void check(const RoomReserved& d);
  void check(const MovePlanned& d);
  void check(const YieldAsked& d);
  void check(const StopAsked& d);
  void check(const KillAsked& d);
  void check(const TaskRefused& d);
  void check(const ReplicaAdded& d);
  template <class Other>
  void check(const Other& /*nothing to hold*/) {}
  void check_loan(const TaskState& task, const TaskPlaced& d);
  void check_guard_kept(const TaskState& task, const std::vector<Slot>& slots);
  void check_victim(const TaskState& victim, ReleaseMode mode);
  void check_asked(const TaskState& victim, const TaskState& task, ReleaseMode mode);
  void check_room(TaskId task, const std::vector<Slot>& slots, const std::vector<Victim>& victims);
  void check_roles(const TaskState& task, const std::vector<Slot>& slots);
  void check_helps(const std::vector<Slot>& slots, const std::vector<Victim>& victims);
  void check_claims(const PoolState& state);

  const simulated::Machines& machines_;
  bool traced_ = false;
  PoolState second_;
  Time now_;
  std::uint64_t sequence_ = 0;
  std::uint64_t checked_ = 0, reserved_ = 0, moved_ = 0, lent_ = 0;
  std::map<std::string, TaskId> promised_;
  std::map<TaskId, Phase> ended_;
  std::vector<std::string> violations_;
};

// Whether the devices could take one more task of this shape now, found by looking at every
// device; for requests that fit one node. An answer that shares no code with rules/place.h.
[[nodiscard]] bool could_run(const PoolState& state, const Shape& shape);

}  // namespace neap::sim
