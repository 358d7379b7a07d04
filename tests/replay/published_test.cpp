// D8: every published run of the five traces, and neap's own policy against the best known. Takes
// minutes: NEAP_LONG=1.
#include <cstdlib>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

#include "simulate/testing/published.h"
#include "simulate/testing/published_runs.h"

namespace neap::simulate::published_test {
namespace {

struct Target {
  std::string trace;
  double known;  // unallocated percent, mean of the seeds 42 to 46
};

void PrintTo(const Target& target, std::ostream* out) { *out << target.trace; }

const Target targets[] = {{"default", 3.81},
                          {"cpu200", 3.85},
                          {"gpushare60", 7.66},
                          {"multigpu30", 2.96},
                          {"gpuspec20", 3.91}};
constexpr double learning_noise = 0.05;
constexpr double online_tolerance = 0.15;

class Traces : public testing::TestWithParam<Target> {};

TEST_P(Traces, D8_all_published_runs_are_reproduced) {
  if (std::getenv("NEAP_LONG") == nullptr) GTEST_SKIP() << "skipped: NEAP_LONG not set";
  expect_published(GetParam().trace, 42, 46);
}

TEST_P(Traces, D8_the_best_known_is_matched_with_fixed_and_random_ties) {
  const auto published = Published::here();
  if (!published) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  if (std::getenv("NEAP_LONG") == nullptr) GTEST_SKIP() << "skipped: NEAP_LONG not set";
  for (const Ties ties : {Ties::fixed, Ties::random}) {
    const Unallocated mean =
        mean_unallocated(*published, {GetParam().trace, ties, 46, Knowledge::given});
    EXPECT_LE(mean.at_100, GetParam().known + learning_noise);
    std::cout << GetParam().trace << (ties == Ties::fixed ? " fixed" : " random")
              << " ties: " << mean.at_100 << ", at 130: " << mean.at_130 << "\n";
  }
}

TEST_P(Traces, D8_learning_online_comes_near_the_best_known) {
  const auto published = Published::here();
  if (!published) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  if (std::getenv("NEAP_LONG") == nullptr) GTEST_SKIP() << "skipped: NEAP_LONG not set";
  for (const Ties ties : {Ties::fixed, Ties::random}) {
    const Unallocated mean =
        mean_unallocated(*published, {GetParam().trace, ties, 46, Knowledge::online});
    EXPECT_LE(mean.at_100, GetParam().known + online_tolerance);
    std::cout << GetParam().trace << " online" << (ties == Ties::fixed ? " fixed" : " random")
              << " ties: " << mean.at_100 << ", at 130: " << mean.at_130 << "\n";
  }
}

INSTANTIATE_TEST_SUITE_P(Published, Traces, testing::ValuesIn(targets),
                         [](const auto& target) { return target.param.trace; });

}  // namespace
}  // namespace neap::simulate::published_test
