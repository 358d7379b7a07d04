// Two reducers of one journal, written apart, agree bit for bit; F4.
#include <gtest/gtest.h>

#include <cstdlib>

#include "ledger/ledger.h"
#include "ledger/testing/random_records.h"

namespace neap::ledger::agreement_test {
namespace {

using testing::Answers;
using testing::Journal;

const std::map<std::string, std::int64_t> prices = {{"A", 1'000}, {"B", 2'750}};

void feed(Ledger& ledger, const Journal& journal, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) {
    std::visit([&](const auto& record) { ledger.apply(journal[i].first, record); },
               journal[i].second);
  }
}

std::string differences(const Totals& a, const Totals& b) {
  std::string text;
  const auto compare = [&](std::string_view name, Amount x, Amount y) {
    if (x != y) text += "  " + std::string(name) + " " + x.to_string() + " / " + y.to_string();
  };
  for (std::size_t i = 0; i < category_count; ++i) {
    compare(name_of(static_cast<Category>(i)), a.by_category[i], b.by_category[i]);
  }
  compare("provisioned", a.provisioned, b.provisioned);
  compare("billed", a.billed, b.billed);
  return text;
}

void expect_equal(const Ledger& ledger, const Answers& answers, Time end) {
  EXPECT_EQ(differences(ledger.pool(end), answers.pool), "");
  for (const auto& [id, totals] : answers.tasks) {
    EXPECT_EQ(differences(ledger.task(TaskId(id), end).value(), totals), "") << "task " << id;
  }
  for (const auto& [name, totals] : answers.teams) {
    EXPECT_EQ(differences(ledger.team(name, end).value(), totals), "") << "team " << name;
  }
  for (const auto& [id, totals] : answers.services) {
    EXPECT_EQ(differences(ledger.service(ServiceId(id), end).value(), totals), "") << id;
  }
  EXPECT_EQ(ledger.waits(end).tasks, answers.waiting_tasks);
  EXPECT_EQ(ledger.waits(end).waited_us.to_string(), answers.waited.to_string());
}

TEST(Agreement, F4_TwoReducersAgreeBitForBit) {
  std::array<Amount, category_count> seen{};
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Journal journal = testing::random_journal(seed, 400);
    const Time end = journal.back().first + seconds(5);
    Ledger ledger({.price_milli = prices});
    feed(ledger, journal, 0, journal.size());
    const Answers answers = testing::reduce(journal, end, prices);
    expect_equal(ledger, answers, end);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    for (std::size_t i = 0; i < category_count; ++i) seen[i] += answers.pool.by_category[i];
  }
  for (std::size_t i = 0; i < category_count; ++i) {
    EXPECT_GT(seen[i], Amount()) << "never reached: " << name_of(static_cast<Category>(i));
  }
}

TEST(Agreement, AtEveryMomentAndThroughASavedLedger) {
  const Journal journal = testing::random_journal(4711, 300);
  Ledger whole({.price_milli = prices});
  Ledger reloaded({.price_milli = prices});
  for (std::size_t i = 0; i < journal.size(); ++i) {
    feed(whole, journal, i, i + 1);
    feed(reloaded, journal, i, i + 1);
    reloaded = Ledger::load(reloaded.save(), {.price_milli = prices}).value();
    ASSERT_EQ(whole.save(), reloaded.save()) << "record " << i;
    if (i % 20 != 0) continue;
    const Time end = journal[i].first;
    const Journal so_far(journal.begin(), journal.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    expect_equal(whole, testing::reduce(so_far, end, prices), end);
    ASSERT_FALSE(HasFailure()) << "record " << i;
  }
}

TEST(Agreement, PoolTeamsAndTasksAddUp) {
  const Journal journal = testing::random_journal(99, 600);
  const Time end = journal.back().first;
  Ledger ledger({.price_milli = prices});
  feed(ledger, journal, 0, journal.size());
  Amount held, billed;
  for (const std::string& team : ledger.teams()) {
    held += ledger.team(team, end)->provisioned;
    billed += ledger.team(team, end)->billed;
  }
  const Totals pool = ledger.pool(end);
  const Amount idle =
      pool.of(Category::guard_idle) + pool.of(Category::fragmented_idle) + pool.of(Category::free);
  // What no task held is idle, or the idle part of "fault"; billing moves between teams only.
  EXPECT_LE(held + idle, pool.provisioned);
  EXPECT_EQ(billed, pool.billed);
}

// Planted faults: one reducer gets a slightly wrong journal. What the comparison would not notice
// it would not notice in a wrong reducer either.
struct Fault {
  const char* name;
  bool (*plant)(Journal::value_type& record);  // false: not of the kind it spoils
};

template <class Kind, class Spoil>
bool spoil(Journal::value_type& record, Spoil&& change) {
  auto* event = std::get_if<Event>(&record.second);
  Kind* kind = event != nullptr ? std::get_if<Kind>(event) : nullptr;
  if (kind == nullptr) return false;
  change(*kind);
  return true;
}

constexpr Fault faults[] = {
    {"a checkpoint one step further",
     [](auto& r) { return spoil<CheckpointDurable>(r, [](auto& e) { ++e.step; }); }},
    {"a checkpoint one µs earlier",
     [](auto& r) { return spoil<CheckpointDurable>(r, [](auto& e) { e.captured.us -= 1; }); }},
    {"a stall one µs longer",
     [](auto& r) { return spoil<CheckpointDurable>(r, [](auto& e) { e.stall += Micros(1); }); }},
    {"a busier step",
     [](auto& r) { return spoil<StepsReported>(r, [](auto& e) { e.busy += seconds(1); }); }},
    {"a response more in time",
     [](auto& r) { return spoil<RequestsServed>(r, [](auto& e) { ++e.within_slo; }); }},
    {"an exit code", [](auto& r) { return spoil<TaskExited>(r, [](auto& e) { e.code ^= 75; }); }},
    {"another team",
     [](auto& r) { return spoil<TaskSubmitted>(r, [](auto& e) { e.spec.team = "x"; }); }},
};

TEST(Agreement, PlantedFaultsAreNoticed) {
  for (const Fault& fault : faults) {
    int noticed = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const Journal journal = testing::random_journal(seed, 150);
      const Time end = journal.back().first;
      const Answers answers = testing::reduce(journal, end, prices);
      Journal spoilt = journal;
      for (auto& record : spoilt) fault.plant(record);
      Ledger ledger({.price_milli = prices});
      feed(ledger, spoilt, 0, spoilt.size());
      bool equal = ledger.pool(end) == answers.pool;
      for (const auto& [name, totals] : answers.teams) {
        equal = equal && ledger.team(name, end).value_or(Totals{}) == totals;
      }
      noticed += equal ? 0 : 1;
    }
    EXPECT_GT(noticed, 0) << fault.name;
  }
}

}  // namespace
}  // namespace neap::ledger::agreement_test
