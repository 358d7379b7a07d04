// E2: tokens and the gaps between them, from the engine's own counters.
#include "measure/engine_metrics.h"

#include <gtest/gtest.h>

#include <string>

namespace neap::measure {
namespace {

constexpr std::string_view vllm = R"(# HELP vllm:num_requests_running Number of requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="a"} 2.0
vllm:num_requests_running{model_name="b"} 1.0
vllm:num_requests_waiting{model_name="a"} 0.0
vllm:kv_cache_usage_perc{model_name="a"} 0.25
vllm:kv_cache_usage_perc{model_name="b"} 0.5
vllm:prompt_tokens_total{model_name="a"} 1.5e+03
vllm:generation_tokens_total{model_name="a"} 4000 1700000000000
vllm:time_per_output_token_seconds_bucket{le="0.01",model_name="a}\"b"} 10.0
vllm:time_per_output_token_seconds_bucket{model_name="a",le="0.02"} 30.0
vllm:time_per_output_token_seconds_bucket{le="+Inf",model_name="a"} 40.0
vllm:time_per_output_token_seconds_sum{model_name="a"} 0.7
process_open_fds 12
)";

TEST(EngineMetrics, E2_AsVllmHasThem) {
  const auto read = read_engine_metrics(vllm);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->running, 3);
  EXPECT_EQ(read->waiting, 0);
  EXPECT_EQ(read->kv_use, Ppm(500'000));
  EXPECT_EQ(read->prompt_tokens, 1500U);
  EXPECT_EQ(read->generated_tokens, 4000U);
  EXPECT_EQ(read->inter_token,
            (std::map<Micros, std::uint64_t>{
                {milliseconds(10), 10}, {milliseconds(20), 30}, {Micros::max(), 40}}));
}

TEST(EngineMetrics, E2_AsLlamaCppHasThem) {
  const auto read = read_engine_metrics(
      "llamacpp:prompt_tokens_total 7\nllamacpp:tokens_predicted_total 32\r\n"
      "llamacpp:requests_processing 1\nllamacpp:requests_deferred 4\n"
      "llamacpp:kv_cache_usage_ratio 0.02");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->running, 1);
  EXPECT_EQ(read->waiting, 4);
  EXPECT_EQ(read->generated_tokens, 32U);
  EXPECT_EQ(read->kv_use, Ppm(20'000));
  EXPECT_TRUE(read->inter_token.empty());
}

// Missing, or no number: unknown.
TEST(EngineMetrics, S13_UnknownIsNotZero) {
  for (const char* text :
       {"", "<html>not found</html>\n", "vllm:num_requests_running\n",
        "vllm:num_requests_running NaN\n", "vllm:num_requests_running -1\n",
        "vllm:num_requests_running +Inf\n", "vllm:num_requests_running{model=\"a 3\n",
        "vllm:num_requests_running 3x\n", "other:num_requests_running 3\n",
        "# vllm:num_requests_running 3\n", "vllm:inter_token_latency_seconds_bucket 3\n",
        "vllm:inter_token_latency_seconds_bucket{le=\"soon\"} 3\n"}) {
    const auto read = read_engine_metrics(text);
    ASSERT_TRUE(read) << text;
    EXPECT_FALSE(read->says_anything()) << text;
  }
  EXPECT_FALSE(read_engine_metrics(std::string(metrics_text_max + 1, ' ')));
  EXPECT_FALSE(read_engine_metrics(std::string_view("a\0b 1", 5)));
}

TEST(EngineMetrics, OneHistogramWhereThereAreTwo) {
  const auto read = read_engine_metrics(
      "vllm:inter_token_latency_seconds_bucket{le=\"+Inf\"} 5\n"
      "vllm:time_per_output_token_seconds_bucket{le=\"+Inf\"} 5\n");
  EXPECT_EQ(read->inter_token.at(Micros::max()), 5U);
}

TEST(EngineMetrics, E2_QuantilesOfWhatWasAdded) {
  const std::map<Micros, std::uint64_t> before{
      {milliseconds(10), 100}, {milliseconds(20), 100}, {Micros::max(), 100}};
  const std::map<Micros, std::uint64_t> after{
      {milliseconds(10), 150}, {milliseconds(20), 200}, {Micros::max(), 204}};
  EXPECT_EQ(bucket_count(before, after), 104U);
  EXPECT_EQ(bucket_quantile(before, after, Ppm(250'000)), Micros(5200));
  EXPECT_EQ(bucket_quantile(before, after, Ppm(500'000)), Micros(10'400));
  EXPECT_EQ(bucket_quantile(before, after, all_ppm), milliseconds(20));  // no upper bound there
  EXPECT_EQ(bucket_quantile({}, before, Ppm(500'000)), milliseconds(5));
  EXPECT_FALSE(bucket_quantile(before, before, Ppm(500'000)));
  EXPECT_FALSE(bucket_quantile(after, before, Ppm(500'000)));  // it began anew
  EXPECT_FALSE(bucket_count({{Micros(1), 1}}, after));         // other buckets
  // Counts that fall within one reading are no histogram.
  EXPECT_FALSE(bucket_quantile({}, {{Micros(1), 9}, {Micros(2), 3}}, Ppm(1)));
}

}  // namespace
}  // namespace neap::measure
