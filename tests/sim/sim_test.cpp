// Deterministic simulation: seeds with faults, invariants at every event, then calm until all is at
// rest. NEAP_SIM_SEEDS says how many seeds, NEAP_SIM_FIRST_SEED which is the first.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/sim/planted.h"
#include "tests/sim/weather.h"

namespace neap::sim {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string command_for(std::uint64_t seed) {
  return "NEAP_SIM_FIRST_SEED=" + std::to_string(seed) +
         " NEAP_SIM_SEEDS=1 build/tests/suite_sim --gtest_filter=Simulation.Seeds";
}

// A failed CHECK ends the process: its seed has to be said then.
char last_words[256];
void say_last_words(int /*signal*/) {
  const ssize_t ignored = write(STDERR_FILENO, last_words, std::strlen(last_words));
  static_cast<void>(ignored);
  std::signal(SIGABRT, SIG_DFL);
  std::raise(SIGABRT);
}

Outcome run_and_name(std::uint64_t seed, const Planted& planted = {}) {
  std::snprintf(last_words, sizeof last_words, "seed %llu; again: %s\n",
                static_cast<unsigned long long>(seed), command_for(seed).c_str());
  const auto before = std::signal(SIGABRT, say_last_words);
  Outcome outcome = run_seed(seed, planted);
  std::signal(SIGABRT, before);
  return outcome;
}

TEST(Simulation, Seeds) {
  const std::uint64_t seeds = number_from("NEAP_SIM_SEEDS", 500);
  const std::uint64_t first = number_from("NEAP_SIM_FIRST_SEED", 1);
  const std::uint64_t most_shown = number_from("NEAP_SIM_SHOWN", 5);
  Outcome all;
  std::uint64_t broken = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Outcome one = run_and_name(seed);
    all.events += one.events;
    all.crashes += one.crashes;
    all.finished += one.finished;
    all.preempted += one.preempted;
    all.failed += one.failed;
    all.refused += one.refused;
    all.waiting += one.waiting;
    all.reserved += one.reserved;
    all.moved += one.moved;
    all.lent += one.lent;
    if (one.violations.empty()) continue;
    if (++broken > most_shown) continue;
    std::string text = "seed " + std::to_string(seed) + ":\n";
    for (const std::string& line : one.violations) text += "  " + line + "\n";
    ADD_FAILURE() << text << "again: " << command_for(seed);
  }
  EXPECT_EQ(broken, 0U) << "seeds of " << seeds;
  std::printf(
      "%llu seeds: %llu events, %llu daemon crashes; tasks: %llu finished, %llu failed, "
      "%llu refused, %llu wait; %llu preemptions; %llu times room was kept, %llu loans of it, "
      "%llu moves\n",
      static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(all.events),
      static_cast<unsigned long long>(all.crashes), static_cast<unsigned long long>(all.finished),
      static_cast<unsigned long long>(all.failed), static_cast<unsigned long long>(all.refused),
      static_cast<unsigned long long>(all.waiting), static_cast<unsigned long long>(all.preempted),
      static_cast<unsigned long long>(all.reserved), static_cast<unsigned long long>(all.lent),
      static_cast<unsigned long long>(all.moved));
  // A run in which nothing ever goes wrong proves nothing.
  if (seeds < 100) return;
  EXPECT_GT(all.crashes, seeds / 2);
  EXPECT_GT(all.finished, seeds);
  EXPECT_GT(all.preempted, seeds / 5);
  EXPECT_GT(all.refused, seeds / 5);
  EXPECT_GT(all.reserved, seeds / 5);
  EXPECT_GT(all.moved, seeds / 50);
  EXPECT_GT(all.lent, seeds / 50);
}

TEST(Simulation, TheSameSeedIsTheSameRun) {
  const std::uint64_t first = number_from("NEAP_SIM_FIRST_SEED", 1);
  for (std::uint64_t seed = first; seed < first + 3; ++seed) {
    const Outcome once = run_and_name(seed);
    const Outcome twice = run_and_name(seed);
    EXPECT_EQ(once.events, twice.events);
    EXPECT_EQ(once.violations, twice.violations);
    EXPECT_EQ(once.preempted, twice.preempted);
  }
}

// Each planted bug is noticed within the seeds of the normal run.
class PlantedBug : public ::testing::TestWithParam<NamedBug> {};

TEST_P(PlantedBug, IsCaught) {
  const std::uint64_t seeds = number_from("NEAP_SIM_SEEDS", 500);
  for (std::uint64_t seed = 1; seed <= std::min<std::uint64_t>(seeds, 500); ++seed) {
    const Outcome outcome = run_and_name(seed, GetParam().planted);
    for (const std::string& violation : outcome.violations) {
      if (violation.find(GetParam().noticed) == std::string::npos) continue;
      std::printf("noticed at seed %llu: %s\n", static_cast<unsigned long long>(seed),
                  violation.c_str());
      return;
    }
    // A bug may show itself otherwise first; what was written to notice it has to, at some seed.
    // (Without a bug no seed has a violation: Seeds sees to that.)
  }
  FAIL() << "no seed noticed it";
}

INSTANTIATE_TEST_SUITE_P(Simulation, PlantedBug, ::testing::ValuesIn(planted_bugs()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace neap::sim
