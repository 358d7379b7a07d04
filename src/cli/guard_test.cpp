// D4: neap guard, as it is called.
#include "cli/guard.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/command_line.h"
#include "cli/value.h"

namespace neap::cli {
namespace {

struct Called {
  int code = -1;
  std::string out;
  std::string err;
};

Called neap(std::vector<std::string> words) {
  char *out = nullptr, *err = nullptr;
  std::size_t out_size = 0, err_size = 0;
  std::FILE* out_file = ::open_memstream(&out, &out_size);
  std::FILE* err_file = ::open_memstream(&err, &err_size);
  std::vector<const char*> argv = {"neap", "guard"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  Called called;
  {
    Terminal terminal(out_file, err_file);
    called.code = run_command_line(static_cast<int>(argv.size()), argv.data(), {}, terminal);
  }
  std::fclose(out_file);
  std::fclose(err_file);
  called.out.assign(out, out_size);
  called.err.assign(err, err_size);
  std::free(out);
  std::free(err);
  return called;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

class GuardVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "neap-guard-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Three days of an hourly rate that swings between 100 and 300 a second.
  std::string trace(const std::string& name, std::int64_t factor = 1) {
    std::ofstream file(folder_ + "/" + name);
    file << "{\"neap_workload\":1}\n";
    for (std::int64_t h = 0; h <= 72; ++h) {
      const std::int64_t rate = h % 24 >= 8 && h % 24 < 22 ? 300 : 100 + h % 7;
      file << "{\"at_us\":" << h * 3'600'000'000
           << ",\"kind\":\"rate\",\"service\":\"chat\",\"micro_per_second\":"
           << rate * factor * 1'000'000 << "}\n";
    }
    return folder_ + "/" + name;
  }

  std::string folder_;
};

TEST_F(GuardVerb, D4_backtest_prints_one_object) {
  const Called called =
      neap({"backtest", "--trace", trace("a"), "--pool", "40", "--peak-devices", "30", "--json"});
  ASSERT_EQ(called.code, 0) << called.err;
  const auto json = Value::parse(called.out);
  ASSERT_TRUE(json) << called.out;
  EXPECT_EQ(json->number_at("slots"), 72 * 12) << "slots of five minutes";
  EXPECT_EQ(json->number_at("first_lend_slot"), 27 * 12);
  EXPECT_EQ(json->number_at("scored_hours"), 45);
  EXPECT_EQ(json->number_at("samples"), 45 * 12);
  EXPECT_FALSE(json->true_at("certified"));
  EXPECT_TRUE(has(json->text_at("note"), "45 hours cannot certify a rate of 1.0 %"));
  for (const char* name : {"violated_hours", "idle_ratio", "sum_c", "sum_d", "changes_per_day"}) {
    EXPECT_FALSE(json->at(name).is_null()) << name;
  }
}

TEST_F(GuardVerb, D4_the_recorded_fortnight_gives_the_table) {
  const char* traces = std::getenv("NEAP_TRACES");
  if (traces == nullptr) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const Called called =
      neap({"backtest", "--trace", std::string(traces) + "/servegen/language_m-small.traces.tgz",
            "--pool", "100", "--lead-seconds", "600", "--slot-seconds", "600", "--x-per-mille",
            "50", "--score", "1008:2015", "--json"});
  ASSERT_EQ(called.code, 0) << called.err;
  const auto json = Value::parse(called.out);
  EXPECT_EQ(json->number_at("violated_hours"), 11);
  EXPECT_EQ(json->number_at("scored_hours"), 167);
  EXPECT_EQ(json->number_at("sum_c"), 53'287);
  EXPECT_EQ(json->number_at("sum_d"), 62'012);
  EXPECT_EQ(json->number_at("first_lend_slot"), 162);
  EXPECT_TRUE(has(called.out, "\"idle_ratio\":0.5206")) << called.out;
}

TEST_F(GuardVerb, D4_fit_has_a_row_for_each_rate_with_what_it_cannot_show) {
  const Called called =
      neap({"fit", "--trace", trace("a"), "--pool", "40", "--peak-devices", "30"});
  ASSERT_EQ(called.code, 0) << called.err;
  for (const char* rate : {"1.0 %", "2.0 %", "5.0 %", "10.0 %"}) {
    EXPECT_TRUE(has(called.out, std::string("\n") + rate)) << called.out;
    EXPECT_TRUE(has(called.out, std::string("a rate of ") + rate)) << called.out;
  }
  const Called json =
      neap({"fit", "--trace", trace("a"), "--pool", "40", "--peak-devices", "30", "--json"});
  EXPECT_EQ(Value::parse(json.out)->list_at("choices").size(), 4U);
}

TEST_F(GuardVerb, D4_services_are_summed_slot_by_slot) {
  const Called one = neap({"backtest", "--trace", trace("a"), "--pool", "80", "--replica-rate",
                           "10", "--replica-gpus", "2", "--json"});
  const Called two = neap({"backtest", "--trace", trace("a"), "--trace", trace("b", 2), "--pool",
                           "200", "--replica-rate", "10", "--replica-rate", "20", "--replica-gpus",
                           "2", "--replica-gpus", "1", "--json"});
  ASSERT_EQ(two.code, 0) << two.err;
  const auto sum = [](const Called& called) {
    return Value::parse(called.out)->number_at("sum_d");
  };
  // b asks for as many replicas, of one device each.
  EXPECT_EQ(sum(two) * 2, sum(one) * 3);
}

TEST_F(GuardVerb, D4_show_draws_in_the_terminal_and_into_a_page) {
  const std::string page = folder_ + "/page.html";
  const Called called = neap({"show", "--trace", trace("a"), "--pool", "40", "--peak-devices", "30",
                              "--x-per-mille", "100", "--picture", page});
  ASSERT_EQ(called.code, 0) << called.err;
  for (const char* part : {"#", "-", "slots 324 to 863", "cannot certify"}) {
    EXPECT_TRUE(has(called.out, part)) << called.out;
  }
  std::stringstream text;
  text << std::ifstream(page).rdbuf();
  for (const char* part : {"<svg", "guard and buffer", "cannot certify", "</html>"}) {
    EXPECT_TRUE(has(text.str(), part)) << part;
  }
  EXPECT_EQ(neap({"show", "--trace", trace("a"), "--pool", "40", "--picture", "/nowhere/x"}).code,
            8);
}

TEST_F(GuardVerb, D4_what_is_wrong_is_named) {
  const std::string a = trace("a");
  const struct {
    std::vector<std::string> more;
    const char* error;
  } cases[] = {
      {{"--lead-seconds", "3601"}, "--lead-seconds: expected 1 to 3600"},
      {{"--slot-seconds", "70"}, "--slot-seconds: expected a divisor of 3600"},
      {{"--slot-seconds", "90"}, "--slot-seconds: expected whole minutes"},
      {{"--x-per-mille", "1000"}, "--x-per-mille: expected 1 to 999, not 1000"},
      {{"--shortage-cost", "0"}, "--shortage-cost: expected 1 to"},
      {{"--peak-devices", "0"}, "--peak-devices"},
      {{"--score", "9"}, "--score: expected slots FIRST:LAST"},
      {{"--score", "9:8"}, "--score: expected slots FIRST:LAST"},
      {{"--score", "0:864"},
       "--score: expected FIRST:LAST within the slots of the traffic, 0 to 863"},
      {{"--promotion", "1:2"}, "--promotion: expected slots and devices"},
      {{"--promotion", "1:2:0"}, "--promotion: devices: expected 1 to 1000000, not 0"},
      {{"--replica-rate", "x"}, "--replica-rate: expected requests a second"},
      {{"--replica-rate", "1", "--peak-devices", "3"}, "--peak-devices: expected this or"},
      {{"--trace", a}, "--peak-devices: is needed for each of several traces"},
      {{"--peak-devices", "3", "--peak-devices", "4"}, "--peak-devices: expected one for each"},
  };
  for (const auto& [more, error] : cases) {
    std::vector<std::string> words = {"backtest", "--trace", a, "--pool", "40"};
    words.insert(words.end(), more.begin(), more.end());
    const Called called = neap(words);
    EXPECT_EQ(called.code, 2) << error;
    EXPECT_TRUE(has(called.err, error)) << called.err;
  }
  EXPECT_EQ(neap({"fit", "--trace", a, "--pool", "40", "--x-per-mille", "10"}).code, 2)
      << "it tests four of them";
  EXPECT_EQ(neap({"backtest", "--trace", "/nowhere", "--pool", "4"}).code, 3);
  EXPECT_EQ(neap({}).code, 2);
}

TEST_F(GuardVerb, D4_a_promotion_is_a_floor) {
  const std::string a = trace("a");
  const auto sum_c = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"backtest",       "--trace", a,         "--pool",  "40",
                                      "--peak-devices", "10",      "--score", "700:709", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return Value::parse(neap(words).out)->number_at("sum_c");
  };
  EXPECT_LT(sum_c({}), 10 * 38);
  EXPECT_EQ(sum_c({"--promotion", "700:709:38"}), 10 * 38);
}

}  // namespace
}  // namespace neap::cli
