#include "ledger/ledger.h"

#include <gtest/gtest.h>

#include <chrono>

#include "ledger/testing/scene.h"
#include "ledger/testing/second_reducer.h"

namespace neap::ledger {
namespace {

using testing::Scene;

// ---- training ----------------------------------------------------------------------------------

TEST(Training, IsPendingUntilDurableThenUseful) {
  Scene s(1);
  const AllocationId a = s.place(s.training(), 0);
  s.wait(5);
  s.start(a);
  s.wait(13);  // 3 s of them load the model
  s.steps(a, 10, 10, 10);
  EXPECT_EQ(s.show(), "restore 8 pending 10");
  s.checkpoint(a, 10);
  EXPECT_EQ(s.show(), "useful_training 10 restore 8");
  EXPECT_EQ(s.ledger.pool(s.now).effective_utilisation_ppm(), 555'555);
}

TEST(Training, KillingEveryStepGivesNothing) {
  Scene s(1);
  const TaskId task = s.training();
  for (int i = 0; i < 50; ++i) {
    const AllocationId a = s.place(task, 0);
    s.start(a);
    s.wait(1);
    s.steps(a, 1, 1, 1);
    s.exit(a, 0, 9);
  }
  EXPECT_EQ(s.show(), "lost_and_replayed 50");
  EXPECT_EQ(s.ledger.pool(s.now).effective_utilisation_ppm(), 0);
}

std::int64_t utilisation_with_checkpoint_every(std::int64_t steps) {
  Scene s(1);
  const AllocationId a = s.place(s.training(), 0);
  s.start(a);
  for (std::int64_t step = 1; step <= 120; ++step) {
    s.wait(1);
    s.steps(a, step, 1, 1);
    if (step % steps != 0) continue;
    s.wait(2);
    s.checkpoint(a, step, 2);
  }
  return s.ledger.pool(s.now).effective_utilisation_ppm();
}

TEST(Training, ACheckpointEveryStepLowersUtilisation) {
  EXPECT_EQ(utilisation_with_checkpoint_every(1), 333'333);
  EXPECT_EQ(utilisation_with_checkpoint_every(10), 833'333);
  EXPECT_EQ(utilisation_with_checkpoint_every(120), 983'606);
}

TEST(Training, ReplayedStepsAddNothing) {
  Scene s(1);
  const TaskId task = s.training();
  AllocationId a = s.place(task, 0);
  s.start(a);
  s.wait(10);
  s.steps(a, 10, 10, 10);
  s.checkpoint(a, 10);
  s.exit(a, 1);
  a = s.place(task, 0);  // comes back from an older state
  s.start(a);
  s.wait(8);
  s.steps(a, 8, 8, 8);
  s.checkpoint(a, 8);
  EXPECT_EQ(s.show(), "useful_training 10 lost_and_replayed 8");
  s.wait(4);
  s.steps(a, 12, 4, 4);
  s.checkpoint(a, 12);
  EXPECT_EQ(s.show(), "useful_training 12 lost_and_replayed 10");
}

TEST(Training, ClaimsAreCappedByTheTimeHeld) {
  Scene s(1);
  const AllocationId a = s.place(s.training(), 0);
  s.start(a);
  s.wait(10);
  s.steps(a, 10, 10, 10);
  s.checkpoint(a, 1'000'000'000);  // a step that was never done
  EXPECT_EQ(s.show(), "useful_training 10");
}

TEST(Training, WithoutStepsIsUnverifiedAndApart) {
  Scene s(1);
  const TaskId task = s.watched();
  const AllocationId a = s.place(task, 0);
  s.wait(3);
  s.start(a);
  s.wait(20);
  s.checkpoint(a, 0);
  s.wait(7);
  EXPECT_EQ(s.show(), "unverified 20 restore 3 pending 7");
  s.ask_yield(task, a, StopReason::preempted);
  s.wait(2);
  s.exit(a, 75);
  EXPECT_EQ(s.show(), "unverified 20 lost_and_replayed 7 drain 2 restore 3");
  const Totals totals = s.ledger.pool(s.now);
  EXPECT_EQ(totals.effective_utilisation_ppm(), 0);
  EXPECT_EQ(totals.unverified_ppm(), 625'000);
}

TEST(Training, SignalsAloneSaveEverythingByExit75) {
  Scene s(1);
  const TaskId task = s.submit("a", {.signals = true});
  const AllocationId a = s.place(task, 0);
  s.start(a);
  s.wait(20);
  s.exit(a, 75);
  EXPECT_EQ(s.show(), "unverified 20");
}

TEST(Training, YieldAtABoundaryLosesNothing) {
  Scene s(1);
  const TaskId task = s.training();
  const AllocationId a = s.place(task, 0);
  s.start(a);
  s.wait(10);
  s.steps(a, 10, 10, 10);
  s.ask_yield(task, a, StopReason::preempted);
  s.wait(2);
  s.checkpoint(a, 10, 2);
  s.wait(3);
  s.exit(a, 75);
  EXPECT_EQ(s.show(), "useful_training 10 checkpoint_stall 2 drain 3");
}

TEST(Training, FinishedWorkCounts) {
  Scene s(1);
  const AllocationId a = s.place(s.training(), 0);
  s.start(a);
  s.wait(10);
  s.steps(a, 10, 10, 10);
  s.wait(2);
  s.exit(a, 0);
  s.wait(1);
  EXPECT_EQ(s.show(), "useful_training 10 held_idle 2 free 1");
}

TEST(Training, CancelledWorkDoesNot) {
  Scene s(1);
  const TaskId task = s.training();
  const AllocationId a = s.place(task, 0);
  s.start(a);
  s.wait(10);
  s.steps(a, 10, 10, 10);
  s.event(TaskCancelRequested{"t0", "somebody"});
  s.exit(a, 0);
  EXPECT_EQ(s.show(), "lost_and_replayed 10");
}

TEST(Training, InterferenceIsWhatSharedStepsCostMore) {
  Scene s(1);
  const AllocationId a = s.place(s.training(), 0, 500);
  s.start(a);
  s.wait(10);
  s.steps(a, 10, 10, 10);  // alone: 1 s a step
  s.checkpoint(a, 10);
  const AllocationId b = s.place(s.training(), 0, 500);
  s.wait(15);
  s.steps(a, 20, 10, 15);  // shared: 1.5 s a step
  s.checkpoint(a, 20);
  EXPECT_EQ(s.show(s.ledger.task(TaskId(0), s.now).value()),
            "useful_training 10 interference 2.500");
  EXPECT_EQ(s.show(), "useful_training 10 interference 2.500 fragmented_idle 5 pending 7.500");
  EXPECT_EQ(b, AllocationId(1));
}

TEST(Training, FailureToStartIsRestore) {
  Scene s(1);
  const AllocationId a = s.place(s.training(), 0);
  s.wait(4);
  s.event(StartFailed{{a, 0, 0}, "no image"});
  s.wait(1);
  EXPECT_EQ(s.show(), "restore 4 free 1");
}

TEST(Training, LostNodeLosesWhatWasNotDurable) {
  Scene s(2);
  const AllocationId a = s.place(s.training(), 0);
  s.start(a);
  s.wait(10);
  s.steps(a, 10, 10, 10);
  s.checkpoint(a, 10);
  s.wait(6);
  s.event(NodeLost{"n0"});
  s.wait(1);
  EXPECT_EQ(s.show(), "useful_training 10 lost_and_replayed 6 free 16 fault 2");
}

// ---- inference ---------------------------------------------------------------------------------

TEST(Inference, CountsResponsesInTimeOnly) {
  Scene s(1);
  const AllocationId a = s.place(s.replica(), 0);
  s.wait(5);
  s.healthy(a);
  s.wait(10);
  s.served(a, 8, 6, 3);  // 3 s for six in time: two late ones cost 1 s
  EXPECT_EQ(s.show(), "useful_inference 3 restore 5 slo_missed 1 held_idle 6");
  EXPECT_EQ(Scene::show(s.ledger.service(ServiceId(0), s.now).value()), s.show());
}

TEST(Inference, PaddingGainsNoMoreThanTheTimeHeld) {
  Scene s(1);
  const AllocationId a = s.place(s.replica(), 0);
  s.healthy(a);
  s.wait(10);
  s.served(a, 1'000, 1'000, 500);
  s.served(a, 1'000, 1'000, 500);
  EXPECT_EQ(s.show(), "useful_inference 10");
}

TEST(Inference, AllLateGivesNothing) {
  Scene s(1);
  const AllocationId a = s.place(s.replica(), 0);
  s.healthy(a);
  s.wait(30);
  s.served(a, 100, 0, 0);
  EXPECT_EQ(s.show(), "slo_missed 10 held_idle 20");
}

TEST(Inference, DrainsAfterBeingAskedAndUnhealthyTimeIsFault) {
  Scene s(1);
  const TaskId task = s.replica();
  const AllocationId a = s.place(task, 0);
  s.healthy(a);
  s.wait(10);
  s.event(ReplicaUnhealthy{{a, 0, 0}, "timeout"});
  s.wait(4);
  s.healthy(a);
  s.wait(3);
  s.decide(StopAsked{task, a, StopReason::scaled_down, s.now});
  s.wait(2);
  s.exit(a, 0);
  EXPECT_EQ(s.show(), "drain 2 held_idle 13 fault 4");
}

// ---- the pool ----------------------------------------------------------------------------------

TEST(Pool, IdleTimeHasItsCause) {
  Scene s(4);
  s.decide(RolesAssigned{{DeviceId(0)}, {}});
  const AllocationId a = s.place(s.training(), 1, 250);
  s.event(DeviceHealthChanged{"n0", 2, DeviceHealth::failed, "xid 79"});
  s.wait(8);
  EXPECT_EQ(s.show(), "guard_idle 8 fragmented_idle 6 free 8 fault 8 pending 2");
  s.decide(DeviceExcluded{DeviceId(3), MiB(1)});
  s.decide(RolesAssigned{{DeviceId(1)}, {}});
  s.event(DeviceHealthChanged{"n0", 2, DeviceHealth::healthy, ""});
  s.wait(4);
  EXPECT_EQ(s.show(), "guard_idle 11 fragmented_idle 6 free 16 fault 12 pending 3");
  s.event(NodeUnreachable{"n0"});
  s.wait(4);  // what runs there goes on, what is free cannot be used
  EXPECT_EQ(s.seconds_of(Category::fault), 27);
  EXPECT_EQ(a, AllocationId(0));
}

TEST(Pool, WaitsAreCountedUntilPlacementAndAgainAfterAPreemption) {
  Scene s(2);
  const TaskId first = s.training();
  s.training();
  s.wait(10);
  const AllocationId a = s.place(first, 0);
  s.start(a);
  s.wait(5);
  EXPECT_EQ(s.ledger.waits(s.now).waited_us.to_string(), "25000000");
  EXPECT_EQ(s.ledger.waits(s.now).mean_us(), 12'500'000);
  s.ask_yield(first, a, StopReason::preempted);
  s.exit(a, 75);
  s.wait(3);
  EXPECT_EQ(s.ledger.waits(s.now).waited_us.to_string(), "31000000");
  s.event(TaskCancelRequested{"t1", "somebody"});
  s.wait(100);
  EXPECT_EQ(s.ledger.waits(s.now).waited_us.to_string(), "131000000");
  EXPECT_EQ(s.ledger.waits(s.now).tasks, 2);
}

// D9: a stage waits for devices from the moment in which it enters.
TEST(Pool, AStageThatWaitsForOthersWaitsForNoDevice) {
  Scene s(1);
  PipelineSubmitted chain;
  for (const char* name : {"p.a", "p.b"}) {
    TaskSpec spec;
    spec.name = name;
    spec.contract.sdk = true;
    chain.spec.stages.emplace_back().task = spec;
  }
  s.event(chain);
  s.decide(StageEntered{PipelineId(0), 0, TaskId(0), ServiceId::none(), {}});
  s.wait(10);
  const AllocationId a = s.place(TaskId(0), 0);
  s.start(a);
  s.wait(100);
  EXPECT_EQ(s.ledger.waits(s.now).waited_us.to_string(), "10000000");
  s.exit(a, 0);
  s.decide(StageEntered{PipelineId(0), 1, TaskId(1), ServiceId::none(), {}});
  s.wait(5);
  EXPECT_EQ(s.ledger.waits(s.now).waited_us.to_string(), "15000000");
  s.decide(StageEnded{PipelineId(0), 1, TaskId(1), StagePhase::stopped, "cancelled"});
  s.wait(100);
  EXPECT_EQ(s.ledger.waits(s.now).waited_us.to_string(), "15000000");
  EXPECT_EQ(s.ledger.waits(s.now).tasks, 2);
}

TEST(Bill, FollowsReservationAndPrice) {
  Scene s(1, {.price_milli = {{"A", 2'500}}});
  const AllocationId a = s.place(s.training("vision"), 0, 400);
  s.wait(10);  // whether it worked or not
  EXPECT_EQ(s.ledger.team("vision", s.now)->billed.to_string(), "10000000000000");
  EXPECT_EQ(s.ledger.task(TaskId(0), s.now)->billed.to_string(), "10000000000000");
  EXPECT_EQ(a, AllocationId(0));
}

TEST(Bill, OverheadOfAPreemptionGoesToThePreemptor) {
  Scene s(1);
  const TaskId victim = s.training("victim");
  const TaskId strong = s.training("strong");
  AllocationId a = s.place(victim, 0);
  s.start(a);
  s.wait(10);
  s.steps(a, 10, 10, 10);
  PreemptionPlanned plan;
  plan.task = strong;
  plan.victims.push_back({.task = victim});
  s.decide(plan);
  s.ask_yield(victim, a, StopReason::preempted);
  s.wait(2);
  s.checkpoint(a, 10, 2);
  s.wait(3);
  s.exit(a, 75);  // stall 2 and drain 3: on the preemptor
  const AllocationId b = s.place(strong, 0);
  s.wait(100);
  s.exit(b, 1);
  a = s.place(victim, 0);
  s.wait(7);
  s.start(a);
  s.wait(10);
  s.steps(a, 20, 10, 10);  // restore 7: on the preemptor as well
  s.wait(5);
  s.exit(a, 1);  // its own fault: on the victim
  const auto device_seconds = [&](const char* team) {
    return static_cast<std::int64_t>(s.ledger.team(team, s.now)->billed.value() /
                                     1'000'000'000'000);
  };
  EXPECT_EQ(device_seconds("victim"), 10 + 10 + 5);
  EXPECT_EQ(device_seconds("strong"), 100 + 2 + 3 + 7);
  EXPECT_EQ(s.ledger.pool(s.now).billed,
            s.ledger.team("victim", s.now)->billed + s.ledger.team("strong", s.now)->billed);
}

TEST(Bill, AWithdrawnRequestChargesNobodyElse) {
  Scene s(1);
  const TaskId victim = s.training("victim");
  const AllocationId a = s.place(victim, 0);
  s.start(a);
  s.ask_yield(victim, a, StopReason::guard_restored);
  s.decide(YieldWithdrawn{victim, a});
  s.wait(4);
  s.steps(a, 1, 1, 1);
  s.exit(a, 0, 9);
  EXPECT_EQ(s.ledger.team("victim", s.now)->billed.to_string(), "4000000000000");
  EXPECT_EQ(s.ledger.team(std::string(pool_team), s.now)->billed, Amount());
}

// ---- size --------------------------------------------------------------------------------------

constexpr std::int64_t day_s = 86'400;
constexpr std::int64_t ten_years_s = 3'652 * day_s;

TEST(Scale, TenYearsOf80000DevicesSumExactly) {
  testing::Journal journal;
  for (int n = 0; n < 10'000; ++n) {
    NodeSpec node;
    node.name = "n" + std::to_string(n);
    node.devices.resize(8);
    journal.emplace_back(Time(0), Event{NodeJoined{node}});
  }
  // One gang over all but one device of a node, working day by day, and one task that is killed.
  TaskSpec spec;
  spec.name = spec.team = "gang";
  spec.contract.sdk = true;
  journal.emplace_back(Time(0), Event{TaskSubmitted{spec}});
  TaskPlaced placed{TaskId(0), AllocationId(0), {}};
  for (std::uint32_t d = 0; d < 79'992; ++d) {
    placed.slots.push_back({DeviceId(d), whole_device, MiB(1)});
  }
  journal.emplace_back(Time(0), Decision{placed});
  const ReportStamp stamp{AllocationId(0), 0, 0};
  std::int64_t step = 0;
  for (std::int64_t s = day_s; s <= ten_years_s; s += day_s) {
    step += 1'000;
    const Time at(s * 1'000'000);
    journal.emplace_back(at, Event{StepsReported{stamp, step, 1'000, seconds(day_s)}});
    CheckpointDurable durable;
    durable.stamp = stamp;
    durable.step = step;
    durable.captured = at;
    journal.emplace_back(at, Event{durable});
  }
  const Time end(ten_years_s * 1'000'000);
  Ledger ledger;
  for (const auto& [at, record] : journal) {
    std::visit([&, when = at](const auto& r) { ledger.apply(when, r); }, record);
  }
  const Totals totals = ledger.pool(end);  // checks that the categories sum to the whole
  EXPECT_EQ(totals.provisioned.to_string(), "25242624000000000000000");  // 80,000 x 1000 x µs
  EXPECT_EQ(totals.useful().to_string(), "25240099737600000000000");
  EXPECT_EQ(totals.of(Category::free).to_string(), "2524262400000000000");
  EXPECT_EQ(totals.billed.to_string(), "25240099737600000000000000");
  EXPECT_EQ(totals, testing::reduce(journal, end).pool);
  EXPECT_EQ(Amount::parse(totals.billed.to_string()).value(), totals.billed);
}

// µs for each of many reports in a pool of so many nodes.
double cost_of_a_report(int nodes) {
  Scene s(8);
  for (int n = 1; n < nodes; ++n) {
    NodeSpec node;
    node.name = "n" + std::to_string(n);
    node.devices.resize(8);
    s.event(NodeJoined{node});
  }
  const AllocationId a = s.place(s.training(), 0);
  s.start(a);
  const auto begin = std::chrono::steady_clock::now();
  constexpr int count = 20'000;
  for (int i = 1; i <= count; ++i) {
    s.wait(1);
    s.steps(a, i, 1, 1);
    s.checkpoint(a, i);
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  return took.count() / count;
}

TEST(Scale, ARecordCostsWhatItTouches) {
  const double small = cost_of_a_report(10);
  const double large = cost_of_a_report(10'000);
  // A scan of the pool would be a thousand times dearer.
  EXPECT_LT(large, 20 * small + 5) << small << " µs, " << large << " µs";
}

TEST(Scale, ClosedTasksAreForgottenAndTheirTimeIsNot) {
  Scene s(1, {.closed_kept = 3});
  for (int i = 0; i < 10; ++i) {
    const AllocationId a = s.place(s.training("team"), 0);
    s.start(a);
    s.wait(1);
    s.steps(a, 1, 1, 1);
    s.exit(a, 0);
  }
  EXPECT_FALSE(s.ledger.task(TaskId(6), s.now));
  EXPECT_TRUE(s.ledger.task(TaskId(7), s.now));
  EXPECT_EQ(Scene::show(s.ledger.team("team", s.now).value()), "useful_training 10");
}

// ---- amounts -----------------------------------------------------------------------------------

TEST(Amounts, AreExactDecimalStrings) {
  for (const char* text :
       {"0", "7", "-7", "18446744073709551616", "170141183460469231731687303715884105727",
        "-170141183460469231731687303715884105727"}) {
    EXPECT_EQ(Amount::parse(text).value().to_string(), text);
  }
  for (const char* text :
       {"", "-", "1.5", "+1", " 1", "12a", "170141183460469231731687303715884105728"}) {
    EXPECT_FALSE(Amount::parse(text)) << text;
  }
  const Amount amount = Amount::parse("-123456789012345678901234567890").value();
  EXPECT_EQ(Amount::from_halves(amount.high(), amount.low()), amount);
  EXPECT_EQ(Amount::product(INT64_MAX, INT64_MAX).to_string(),
            "85070591730234615847396907784232501249");
}

TEST(Amounts, ScaleWithoutOverflow) {
  EXPECT_EQ(scaled(7, 10, 3), 23);
  EXPECT_EQ(scaled(0, 10, 3), 0);
  EXPECT_EQ(scaled(INT64_MAX, INT64_MAX, 1), INT64_MAX);  // saturated
  EXPECT_EQ(scaled(INT64_MAX, 3, INT64_MAX), 3);
}

TEST(Saved, DamageIsRefused) {
  Scene s(2);
  s.place(s.training(), 0);
  const std::string bytes = s.ledger.save();
  EXPECT_TRUE(Ledger::load(bytes, {}));
  EXPECT_FALSE(Ledger::load(bytes.substr(0, bytes.size() - 1), {}));
  EXPECT_FALSE(Ledger::load(bytes + "x", {}));
  EXPECT_EQ(Ledger::load("\x7f", {}).error().code, ErrorCode::conflict);
}

}  // namespace
}  // namespace neap::ledger
