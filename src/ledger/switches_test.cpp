// What switches cost (SPEC D5): the part of drain and restore that belongs to replicas which came
// for a higher demand or left for a lower one, by service; and nothing of the exclusive sum.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "ledger/ledger.h"
#include "ledger/testing/random_records.h"
#include "ledger/testing/scene.h"

namespace neap::ledger::switches_test {
namespace {

using testing::Journal;
using testing::Scene;

std::int64_t seconds_of(const Switches& switches) {
  return static_cast<std::int64_t>(switches.time.value() / 1'000'000'000);
}

TEST(Switches, D5_LoadingForDemandAndLeavingForLessAreCharged) {
  Scene s(4);
  const TaskId first = s.replica();  // its service is to have one
  const AllocationId a = s.place(first, 0);
  s.wait(50);
  s.healthy(a);
  const TaskId more(s.next_task++);
  s.decide(ReplicaAdded{ServiceId(0), more, "demand", ReplicaCause::demand});
  const AllocationId b = s.place(more, 1);
  s.wait(40);
  s.healthy(b);
  EXPECT_EQ(s.show().substr(0, 10), "restore 90");
  EXPECT_EQ(seconds_of(s.ledger.switches(ServiceId(0)).value()), 40) << "the first one is none";
  s.wait(100);
  s.decide(StopAsked{more, b, StopReason::scaled_down, s.now});
  s.wait(20);
  s.served(b, 4, 4, 5);  // 5 s of its last 20 are useful work
  s.exit(b, 0);
  const Switches done = s.ledger.switches(ServiceId(0)).value();
  EXPECT_EQ(seconds_of(done), 40 + s.seconds_of(Category::drain));
  EXPECT_GT(s.seconds_of(Category::drain), 10);
  EXPECT_EQ(done.given, 1);
  EXPECT_EQ(done.taken, 1);
  s.decide(StopAsked{first, a, StopReason::replaced, s.now});
  s.wait(30);
  s.exit(a, 0);
  EXPECT_EQ(s.ledger.switches(ServiceId(0)).value(), done) << "a new version is no switch";
  EXPECT_EQ(s.ledger.switches(), done);
  EXPECT_FALSE(s.ledger.switches(ServiceId(7)));
}

// From the ledger's own accounts, record by record: whatever a service's drain or restore grew by
// is a switch's or is not, by what the journal says of that allocation.
enum class Fault : std::uint8_t { none, counts_rolls, charges_the_other };

class Watch {
 public:
  explicit Watch(Fault fault) : fault_(fault) {}

  void feed(Time now, const testing::Record& record) {
    const auto before = grown(now);
    std::visit([&](const auto& body) { ledger_.apply(now, body); }, record);
    const auto after = grown(now);
    for (std::uint32_t service = 0; service < 2; ++service) {
      Amount amount;
      const AllocationId at = subject_of(record);
      const Replica* replica = at.valid() ? &allocations_[at] : nullptr;
      if (replica != nullptr && replica->service == service) {
        if (replica->for_demand) amount += after[service].first - before[service].first;
        if (replica->leaves) amount += after[service].second - before[service].second;
      }
      const bool other = fault_ == Fault::charges_the_other;
      expected_[other ? 1 - service : service] += amount;
    }
    learn(record);
  }

  [[nodiscard]] bool agrees() const {
    return ledger_.switches(ServiceId(0)).value().time == expected_[0] &&
           ledger_.switches(ServiceId(1)).value().time == expected_[1] &&
           ledger_.switches().time == expected_[0] + expected_[1];
  }
  [[nodiscard]] bool is_part_of_its_accounts(Time now) const {
    for (std::uint32_t service = 0; service < 2; ++service) {
      const Totals totals = ledger_.service(ServiceId(service), now).value();
      const Amount most = totals.of(Category::drain) + totals.of(Category::restore);
      if (ledger_.switches(ServiceId(service)).value().time > most) return false;
    }
    return true;
  }
  [[nodiscard]] Amount all() const { return ledger_.switches().time; }

 private:
  struct Replica {
    std::uint32_t service = 9;
    bool for_demand = false, leaves = false;
  };

  [[nodiscard]] std::array<std::pair<Amount, Amount>, 2> grown(Time now) const {
    std::array<std::pair<Amount, Amount>, 2> out;
    for (std::uint32_t service = 0; service < 2; ++service) {
      const auto totals = ledger_.service(ServiceId(service), now);
      if (!totals) continue;
      out[service] = {totals->of(Category::restore), totals->of(Category::drain)};
    }
    return out;
  }

  static AllocationId subject_of(const testing::Record& record) {
    const auto* event = std::get_if<Event>(&record);
    if (event == nullptr) return AllocationId::none();
    if (const auto* served = std::get_if<RequestsServed>(event)) return served->allocation;
    const ReportStamp* stamp = stamp_of(*event);
    return stamp == nullptr ? AllocationId::none() : stamp->source;
  }

  void learn(const testing::Record& record) {
    const auto* decision = std::get_if<Decision>(&record);
    if (decision == nullptr) return;
    if (const auto* added = std::get_if<ReplicaAdded>(decision)) {
      const bool counts = added->cause == ReplicaCause::demand ||
                          (fault_ == Fault::counts_rolls && added->cause == ReplicaCause::roll);
      replicas_[added->task] = {added->service.value, counts, false};
    } else if (const auto* placed = std::get_if<TaskPlaced>(decision)) {
      const auto found = replicas_.find(placed->task);
      allocations_[placed->allocation] = found == replicas_.end() ? Replica() : found->second;
    } else if (const auto* stop = std::get_if<StopAsked>(decision)) {
      allocations_[stop->allocation].leaves = stop->reason == StopReason::scaled_down;
    } else if (const auto* kill = std::get_if<KillAsked>(decision)) {
      allocations_[kill->allocation].leaves = kill->reason == StopReason::scaled_down;
    } else if (const auto* yield = std::get_if<YieldAsked>(decision)) {
      allocations_[yield->allocation].leaves = yield->reason == StopReason::scaled_down;
    } else if (const auto* stays = std::get_if<YieldWithdrawn>(decision)) {
      allocations_[stays->allocation].leaves = false;
    }
  }

  Fault fault_;
  Ledger ledger_;
  std::array<Amount, 2> expected_;
  std::map<TaskId, Replica> replicas_;
  std::map<AllocationId, Replica> allocations_;
};

// Seeds in which the accounts and the watch agree; a node that is lost settles several allocations
// at once, so only journals without one are asked.
int agreeing(Fault fault, int& asked, Amount& seen) {
  int agree = 0;
  for (std::uint64_t seed = 1; asked < 60 && seed <= 2'000; ++seed) {
    const Journal journal = testing::random_journal(seed, 150);
    const bool loses = std::any_of(journal.begin(), journal.end(), [](const auto& record) {
      const auto* event = std::get_if<Event>(&record.second);
      return event != nullptr && std::holds_alternative<NodeLost>(*event);
    });
    if (loses) continue;
    ++asked;
    Watch watch(fault);
    for (const auto& [now, record] : journal) watch.feed(now, record);
    if (watch.agrees() && watch.is_part_of_its_accounts(journal.back().first)) ++agree;
    seen += watch.all();
  }
  return agree;
}

TEST(Switches, D5_TheyAreAPartOfWhatTheirServiceIsBookedFor) {
  int asked = 0;
  Amount seen;
  EXPECT_EQ(agreeing(Fault::none, asked, seen), asked);
  EXPECT_EQ(asked, 60);
  EXPECT_GT(seen, Amount());
  for (const Fault fault : {Fault::counts_rolls, Fault::charges_the_other}) {
    int of = 0;
    EXPECT_LT(agreeing(fault, of, seen), of) << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace neap::ledger::switches_test
