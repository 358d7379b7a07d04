// F3: where the three numbers are read from, and what is refused.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "cli/assess.h"

namespace neap::cli {
namespace {

Result<assess::ThreeNumbers> read(const char* json) {
  const auto value = Value::parse(json);
  EXPECT_TRUE(value.has_value()) << json;
  return three_numbers(*value);
}

TEST(Compare, F3_ReadsUsageRunsAndWhatIsWrittenByHand) {
  const auto usage = read(
      R"({"effective_utilisation_ppm": 410000, "mean_wait_us": 7,
          "categories": {"useful_inference": "900000000", "slo_missed": "100000000"}})");
  ASSERT_TRUE(usage.has_value()) << to_string(usage.error());
  EXPECT_EQ(usage->effective_ppm, 410'000);
  EXPECT_EQ(usage->late_parts, 100'000'000'000);
  const auto run = read(
      R"({"runs": [{"use": {"effective_ppm": 5}, "jobs": {"mean_waiting_us": 6},
                    "services": [{"name": "a", "served_ppm": 999000},
                                 {"name": "b", "served_ppm": 900000}]}]})");
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->effective_ppm, 5);
  EXPECT_EQ(run->mean_wait_us, 6);
  EXPECT_EQ(run->late_parts, 100'000'000'000) << "of the service that was short the most";
  const auto by_hand = read(
      R"({"effective_utilisation_ppm": 1, "mean_wait_us": 2,
          "services": [{"name": "chat", "p95_us": 3, "p99_us": 4}]})");
  ASSERT_TRUE(by_hand.has_value());
  EXPECT_EQ(by_hand->services.at(0).p99_us, 4);
}

// What usage says of latencies is what compare reads.
TEST(Compare, S9_UsageTellsTheLatenciesOfServices) {
  const auto latency = Value::parse(
      R"({"series": [
        {"dimension": "team", "name": "a", "windows": [
          {"length_us": 60000000, "total": {"count": 1, "p95_us": 1, "p99_us": 1}}]},
        {"dimension": "service", "name": "chat", "windows": [
          {"length_us": 60000000, "total": {"count": 0, "p95_us": null, "p99_us": null}},
          {"length_us": 3600000000,
           "total": {"count": 9, "p95_us": 90000, "p99_us": 210000}}]}]})");
  const auto idle = Value::parse(
      R"({"series": [{"dimension": "service", "name": "idle", "windows": [
             {"length_us": 3600000000,
              "total": {"count": 0, "p95_us": null, "p99_us": null}}]}]})");
  ASSERT_TRUE(latency.has_value() && idle.has_value());
  const std::string usage = with_latencies(
      R"({"effective_utilisation_ppm": 410000, "mean_wait_us": 7, "categories": {}})",
      {{"chat", *latency}, {"idle", *idle}});
  const auto numbers = read(usage.c_str());
  ASSERT_TRUE(numbers.has_value()) << to_string(numbers.error());
  ASSERT_EQ(numbers->services.size(), 1u) << usage;
  EXPECT_EQ(numbers->services[0].name, "chat");
  EXPECT_EQ(numbers->services[0].p95_us, 90'000);
  EXPECT_EQ(numbers->services[0].p99_us, 210'000);
}

TEST(Compare, F3_WhatIsMissingIsNamed) {
  const auto field = [](const char* json) {
    const auto numbers = read(json);
    return numbers ? std::string() : numbers.error().context;
  };
  EXPECT_EQ(field("{}"), "effective_utilisation_ppm");
  EXPECT_EQ(field(R"({"effective_utilisation_ppm": 1})"), "mean_wait_us");
  EXPECT_EQ(field(R"({"effective_utilisation_ppm": 1000001, "mean_wait_us": 2})"),
            "effective_utilisation_ppm");
  EXPECT_EQ(field(R"({"runs": [{}, {}]})"), "runs");
  EXPECT_EQ(field(R"({"effective_utilisation_ppm": 1, "mean_wait_us": 2,
                      "services": [{"name": "chat", "p99_us": 4}]})"),
            "services[0].p95_us");
  EXPECT_EQ(field(R"({"effective_utilisation_ppm": 1, "mean_wait_us": 2,
                      "services": [{"p95_us": 4, "p99_us": 4}]})"),
            "services[0].name");
  EXPECT_EQ(field(R"({"runs": [{"use": {"effective_ppm": 5}}]})"), "runs[0].jobs.mean_waiting_us");
}

TEST(Compare, F3_NothingIsRoundedBeforeItIsJudged) {
  // 3 and 4 thousandths of a device for a µs, of a hundred million: no ppm of it.
  const auto late = [](const char* amount) {
    return read((std::string(R"({"effective_utilisation_ppm": 1, "mean_wait_us": 2, "categories":
        {"useful_inference": "100000000000", "slo_missed": ")") +
                 amount + "\"}}")
                    .c_str());
  };
  const auto before = late("3"), after = late("4");
  ASSERT_TRUE(before && after);
  const auto found = assess::compare({}, *before, *after);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->lines.at(1).change, assess::Change::worse);
  const auto part = read(R"({"effective_utilisation_ppm": 410000.9, "mean_wait_us": 2})");
  ASSERT_FALSE(part) << "a fraction would be cut";
  EXPECT_EQ(part.error().context, "effective_utilisation_ppm");
}

class CompareFiles : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    const std::string path = ::testing::TempDir() + "compare-" + name;
    std::ofstream(path) << text;
    return path;
  }
  static std::string said(const std::string& before, const std::string& after) {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* stream = open_memstream(&text, &size);
    {
      Terminal terminal(stream, stream);
      const Context context(terminal, {});
      (void)compare(context, {.before = before, .after = after});
      terminal.flush();
    }
    std::fclose(stream);
    std::string out(text, size);
    std::free(text);
    return out;
  }
};

TEST_F(CompareFiles, F3_TheVerdictIsVisibleInTheFiguresAndFaultsHaveAPlace) {
  const char* usage = R"({"effective_utilisation_ppm": 500000, "mean_wait_us": 60000000,
                          "services": [{"name": "chat", "p95_us": 90000, "p99_us": 210000}]})";
  const std::string before = file("before", usage);
  std::string slower = usage;
  slower.replace(slower.find("90000"), 5, "91801");
  const std::string text = said(before, file("after", slower));
  EXPECT_NE(text.find("91.801ms"), std::string::npos) << text;
  EXPECT_NE(text.find("+2.0011 %"), std::string::npos) << "above the 2 % that are no change";
  const std::string broken = file("broken", "{\n  \"mean_wait_us\": ,\n}");
  EXPECT_NE(said(before, broken).find(broken + ":2:19: is not valid JSON"), std::string::npos)
      << said(before, broken);
  const std::string part = file("part", R"({"effective_utilisation_ppm": 1, "mean_wait_us": -2})");
  EXPECT_NE(said(before, part).find(part + ": mean_wait_us: expected a whole number"),
            std::string::npos)
      << said(before, part);
  std::string other = usage;
  other.replace(other.find("chat"), 4, "talk");
  const std::string renamed = file("renamed", other);
  EXPECT_NE(said(before, renamed).find(renamed + ": services: service chat"), std::string::npos)
      << said(before, renamed);
  EXPECT_NE(said("/nowhere", renamed).find("/nowhere: cannot be read: No such file"),
            std::string::npos);
}

}  // namespace
}  // namespace neap::cli
