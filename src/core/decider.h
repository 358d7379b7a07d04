// The steps of decide(), one method each. For engine.cpp alone.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "core/engine.h"
#include "core/model/pool_index.h"
#include "core/model/state.h"

namespace neap {

struct Departure;
struct Move;
struct Offer;
struct Placement;
struct Proposal;

// Placements tried in one call of decide(); what is left goes on with the next event, so that no
// event waits behind a long queue.
inline constexpr int placements_per_decide = 512;
inline constexpr int victim_searches_per_decide = 16;
inline constexpr int deadlines_per_decide = 64;
inline constexpr int lending_nodes_per_decide = 256;  // asked for room to lend
// A search for victims that found none is repeated after this time.
inline constexpr Micros preempt_retry = seconds(5);
inline constexpr std::int64_t slots_counted_at_once = 10'000;

class Decider {
 public:
  Decider(PoolState& state, Time now, StepResult& result)
      : state_(state), now_(now), result_(result) {}

  void admit_submitted();
  void watch_devices();
  void keep_deadlines();
  void keep_guard();
  void advance_pipelines();
  void scale_services();
  void settle_plans();
  void keep_room();
  void keep_accepted_deadlines();
  void keep_lane();
  void place_waiting();
  void defragment();
  void grow();
  void rehearse();
  void report_conditions();

 private:
  void emit(Decision decision);
  void keep_task_deadline(const TaskState& task);
  void attend(const TaskState& task);
  void stop(const TaskState& task, StopReason reason);
  void withdraw_from(DeviceId device);
  void start(const TaskState& task, std::vector<Slot> slots);
  [[nodiscard]] bool is_over_limit(const TaskState& task) const;
  void drop_plan_of(TaskId task, const std::string& why);
  enum class Preempting : std::uint8_t { planned, impossible, paused };
  enum class Again : std::uint8_t { in_its_time, now };  // after a search that found nobody
  Preempting try_preempt(const TaskState& task, int& searches, Again again = Again::in_its_time);
  bool let_heavier_claim(const TaskState& task, int& searches);
  std::vector<Victim> plan_victims(const TaskState& task, Proposal proposal, Time needed_by);
  enum class Asking : std::uint8_t { nobody, others };  // to yield
  std::optional<Proposal> find_proposal(const Shape& shape, Time by, Asking asking);
  void set_wait_code(ShapeId shape, WaitCode code);
  void count_demand();
  void spread_roles();
  void clear_guard();
  void clear_adoption();
  void scale_service(ServiceId id);
  enum class Rolling : std::uint8_t { ended, goes_on };
  Rolling roll_service(ServiceId id);
  void settle_plan(TaskId task);
  [[nodiscard]] bool has_lost_a_device(const Plan& plan) const;
  // decider_room.cpp
  Time reserve_for_waiters();
  [[nodiscard]] std::vector<TaskId> first_waiters(TierId tier) const;
  bool has_turn(const TaskState& task);
  bool reserve(const TaskState& task);
  void make_room_for(TaskId task);
  void move_for(TaskId task, TaskId tenant, const Departure& departure, Time stay);
  void move(const Move& move, TaskId for_task);
  void settle_move(const Plan& plan);
  bool give_room_to(const TaskState& task);
  bool lend_room_to(const TaskState& task);
  void lend_room_behind(ShapeId shape);
  bool reclaim_loans(TaskId lender);
  void stop_consolidating();
  // decider_resize.cpp
  [[nodiscard]] Placement place_some(const Shape& shape) const;
  bool shrink_for(const TaskState& task, Time needed_by);
  void resize(TaskId task, std::vector<Slot> slots, const Offer& offer, TaskId for_task);
  void stop_growing();
  // decider_lane.cpp
  Time keep_deadline_of(TaskId id, TierId tier);
  bool judge_promises();
  void force_due();
  bool start_in_order();
  void start_elsewhere();
  enum class LaneStart : std::uint8_t { started, blocked, impossible };
  LaneStart start_in_lane(const TaskState& task);
  Time clear_lane();
  void drop_plans_on_lane();
  Time ask_to_leave_lane(const TaskState& task, Time by);

  PoolState& state_;
  Time now_;
  StepResult& result_;
  int lending_nodes_left_ = lending_nodes_per_decide;
  bool room_was_given_ = false;  // a task for whom it was kept has it: the next one has its turn
};

// The action that carries a decision out, if it needs one.
void append_actions(const PoolState& state, const Decision& decision, std::vector<Action>& out);

}  // namespace neap
