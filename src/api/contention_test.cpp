#include "api/contention.h"

#include <gtest/gtest.h>

#include <string>

namespace neap::api {
namespace {

TEST(BaselineOrder, F2_IsReadStrictly) {
  const auto alone = decode_baseline(R"({"phase": "alone", "for_us": 5000000})");
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->for_us, 5'000'000);
  const auto store = decode_baseline(
      R"({"phase": "store", "client_alone": {"inter_token_p50_us": 2000, "step_us": null}})");
  ASSERT_TRUE(store);
  EXPECT_EQ(store->client_alone.inter_token_p50_us, 2'000);
  EXPECT_EQ(store->client_alone.step_us, unknown);
  const std::pair<const char*, const char*> bad[] = {
      {"[]", "body"},
      {"{}", "phase"},
      {R"({"phase": "later"})", "phase"},
      {R"({"phase": "alone"})", "for_us"},
      {R"({"phase": "alone", "for_us": 120000001})", "for_us"},
      {R"({"phase": "mixed", "of": 1})", "of"},
      {R"({"phase": "store", "client_mixed": {"step_us": -1}})", "client_mixed.step_us"},
      {R"({"phase": "store", "client_mixed": 7})", "client_mixed"}};
  for (const auto& [body, field] : bad) {
    const auto order = decode_baseline(body);
    ASSERT_FALSE(order) << body;
    EXPECT_EQ(order.error().context, field) << body;
  }
  EXPECT_EQ(decode_baseline(std::string(70'000, ' ')).error().code, ErrorCode::too_large);
}

TEST(BaselineReport, F2_ComesBackAsItWasKept) {
  BaselineReport report;
  report.subject.name = "chat";
  report.at_us = 7;
  report.alone.first_byte_p99_us = 20'000;
  report.mixed.inter_token_p50_us = 30'000;
  report.use_alone.cpu_milli = 400;
  report.frozen = {"train"};
  const auto again = decode_baseline_report(encode(report));
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->alone.first_byte_p99_us, 20'000);
  EXPECT_EQ(again->alone.step_us, unknown);
  EXPECT_EQ(again->use_alone.cpu_milli, 400);
  EXPECT_EQ(again->frozen, report.frozen);
  EXPECT_FALSE(decode_baseline_report("{\"at_us\": 7}"));
}

}  // namespace
}  // namespace neap::api
