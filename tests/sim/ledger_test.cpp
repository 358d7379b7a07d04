// The ledger over runs of the real engine, faults and daemon crashes included: it agrees with the
// second reducer bit for bit, and at any moment holds what the devices hold. // F4
#include "ledger/ledger.h"

#include <gtest/gtest.h>

#include "ledger/testing/second_reducer.h"
#include "tests/sim/weather.h"

namespace neap::sim::ledger_test {
namespace {

using ledger::Category;
using ledger::Ledger;
using ledger::Totals;

// What a run journalled, seen from inside its engine. After a crash the state goes back to what
// was durable, and so do the records.
struct Recording {
  ledger::testing::Journal journal;
  std::vector<std::int64_t> held_milli;  // by all devices, after each record; -1: not looked at

  void take(PoolState& state, Time now, const Event& event, StepResult& result) {
    journal.resize(state.sequence);
    held_milli.resize(state.sequence);
    step(state, now, event, result);
    journal.emplace_back(now, event);
    for (const Decision& decision : result.decisions) journal.emplace_back(now, decision);
    held_milli.resize(journal.size(), -1);
    held_milli.back() = 0;
    for (const DeviceState& device : state.devices) held_milli.back() += device.used_share.value;
  }
};

std::string as_text(const Totals& totals) {
  std::string text = "provisioned " + totals.provisioned.to_string();
  for (std::size_t i = 0; i < ledger::category_count; ++i) {
    text += "\n" + std::string(name_of(static_cast<Category>(i))) + " " +
            totals.by_category[i].to_string();
  }
  return text + "\nbilled " + totals.billed.to_string();
}

// milli-GPU that the ledger holds: by how much held time grows in one µs.
std::int64_t held_by(const Ledger& books) {
  const Time next = books.now() + Micros(1);
  const auto pending = [&](Time at) { return books.pool(at).of(Category::pending).value(); };
  return static_cast<std::int64_t>(pending(next) - pending(books.now()));
}

TEST(LedgerOverRuns, F4_AgreesWithTheSecondReducerAndTheDevices) {
  ledger::Amount useful, lost, drained;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Recording recording;
    Planted planted;
    planted.step = [&](PoolState& state, Time now, const Event& event, StepResult& result) {
      recording.take(state, now, event, result);
    };
    ASSERT_TRUE(run_seed(seed, planted).violations.empty()) << "seed " << seed;
    ASSERT_FALSE(recording.journal.empty());
    Ledger books;
    for (std::size_t i = 0; i < recording.journal.size(); ++i) {
      const auto& [at, record] = recording.journal[i];
      std::visit([&, when = at](const auto& r) { books.apply(when, r); }, record);
      if (recording.held_milli[i] < 0 || i % 7 != 0) continue;
      ASSERT_EQ(held_by(books), recording.held_milli[i]) << "seed " << seed << " record " << i;
    }
    const Time end = books.now();
    const ledger::testing::Answers answers = ledger::testing::reduce(recording.journal, end);
    ASSERT_EQ(as_text(books.pool(end)), as_text(answers.pool)) << "seed " << seed;
    for (const auto& [team, totals] : answers.teams) {
      ASSERT_EQ(as_text(books.team(team, end).value()), as_text(totals)) << "seed " << seed;
    }
    for (const auto& [task, totals] : answers.tasks) {
      ASSERT_EQ(as_text(books.task(TaskId(task), end).value()), as_text(totals)) << task;
    }
    EXPECT_EQ(books.waits(end).waited_us, answers.waited) << "seed " << seed;
    const Totals pool = books.pool(end);
    useful += pool.useful();
    lost += pool.of(Category::lost_and_replayed);
    drained += pool.of(Category::drain);
  }
  // Runs without work, losses and yields would prove nothing.
  EXPECT_GT(useful, ledger::Amount());
  EXPECT_GT(lost, ledger::Amount());
  EXPECT_GT(drained, ledger::Amount());
}

}  // namespace
}  // namespace neap::sim::ledger_test
