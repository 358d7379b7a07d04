#include "config/values.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace neap::config {
namespace {

// The value as text, or "! what is wrong".
template <class T>
std::string shown(const Parsed<T>& parsed) {
  if (!parsed) return "! " + parsed.error();
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return std::to_string(*parsed);
  } else if constexpr (std::is_same_v<T, Time>) {
    return std::to_string(parsed->us);
  } else {
    return std::to_string(parsed->value);
  }
}

struct Row {
  const char* text;
  const char* expected;  // a beginning, when it starts with "!"
};

template <class T>
void check(Parsed<T> (*parse)(std::string_view), const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const std::string found = shown(parse(row.text));
    if (row.expected[0] == '!') {
      EXPECT_TRUE(found.find(row.expected + 2) != std::string::npos && found[0] == '!')
          << row.text << " gave " << found;
    } else {
      EXPECT_EQ(found, row.expected) << row.text;
    }
  }
}

TEST(Values, Whole) {
  check(parse_whole, {{"0", "0"},
                      {"64", "64"},
                      {"3.0", "3"},
                      {"010", "! has a leading zero"},
                      {"0x10", "! is not a whole number"},
                      {"-1", "! is negative"},
                      {"+1", "! is not a value"},
                      {"1.5", "! is not a whole number"},
                      {"1e3", "! is not a whole number"},
                      {"nan", "! is not a value"},
                      {".nan", "! is not a value"},
                      {"inf", "! is not a value"},
                      {"", "! is not a value"},
                      {"9999999999999", "! is too large"},
                      {"1_000", "! is not a whole number"}});
}

TEST(Values, Duration) {
  check(parse_duration, {{"90s", "90000000"},
                         {"10min", "600000000"},
                         {"20h", "72000000000"},
                         {"1.5h", "5400000000"},
                         {"250ms", "250000"},
                         {"2d", "172800000000"},
                         {"10 min", "600000000"},
                         {"0s", "0"},
                         {"10", "! has no unit"},
                         {"10m", "! has the unit \"m\""},
                         {"10GiB", "! has the unit \"GiB\""},
                         {"-5min", "! is negative"},
                         {"010s", "! has a leading zero"},
                         {"0.0000001s", "! more than six decimals"},
                         {"0.5us", "! too fine"},
                         {"999999999999d", "! too large"}});
}

TEST(Values, Memory) {
  check(parse_memory, {{"16GiB", "16384"},
                       {"16384MiB", "16384"},
                       {"1.5GiB", "1536"},
                       {"1TiB", "1048576"},
                       {"16GB", "! has the unit \"GB\""},
                       {"16", "! has no unit"},
                       {"-1GiB", "! is negative"},
                       {"0.0001MiB", "! too fine"},
                       {"16gib", "! has the unit \"gib\""}});
}

TEST(Values, Share) {
  check(parse_share, {{"60%", "600"},
                      {"0.6", "600"},
                      {"1", "1000"},
                      {"600milli", "600"},
                      {"100%", "1000"},
                      {"12.5%", "125"},
                      {"150%", "! is more than one whole device"},
                      {"2", "! is more than one whole device"},
                      {"0%", "! is nothing"},
                      {"-10%", "! is negative"},
                      {"0.0001", "! finer than a thousandth"},
                      {"16GiB", "! has the unit \"GiB\""}});
}

TEST(Values, Part) {
  check(parse_part, {{"70%", "700000"},
                     {"0.7", "700000"},
                     {"0", "0"},
                     {"1", "1000000"},
                     {"101%", "! over 100%"},
                     {"70", "! over 100%"},
                     {"7min", "! is not understood"}});
}

TEST(Values, TimesOfDayAndMoments) {
  check(parse_time_of_day, {{"22:30", "81000000000"},
                            {"00:00", "0"},
                            {"24:00", "86400000000"},
                            {"24:01", "! is not a time of day"},
                            {"9:00", "! is not a time of day"},
                            {"12-00", "! is not a time of day"}});
  check(parse_moment, {{"1970-01-02T00:00:01Z", "86401000000"},
                       {"2031-05-01 06:00", "1935381600000000"},
                       {"2031-02-30T00:00:00Z", "! is not a day"},
                       {"2031-05-01", "! is not a moment"},
                       {"tomorrow", "! is not a moment"},
                       {"2031-05-01T06:00:00+02:00", "! is not a moment"}});
}

TEST(Values, TextReadsBack) {
  for (const std::int64_t us : {0L, 1L, 1500L, 90'000'000L, 600'000'000L, 72'000'000'000L}) {
    EXPECT_EQ(parse_duration(to_text(Micros(us))), Micros(us)) << to_text(Micros(us));
  }
  EXPECT_EQ(to_text(minutes(10)), "10min");
  EXPECT_EQ(to_text(MiB(16384)), "16GiB");
  EXPECT_EQ(to_text(MiB(1500)), "1500MiB");
}

}  // namespace
}  // namespace neap::config
