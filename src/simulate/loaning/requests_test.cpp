// Requests of the lending experiment replayed on workloads small enough to reckon by hand (F3).
#include "simulate/loaning/requests.h"

#include <gtest/gtest.h>

#include <string>

namespace neap::loaning::requests_test {
namespace {

constexpr std::size_t minutes = span_days * 1'440;

Workload asks_for(std::int32_t demand_milli) {
  return {{}, std::vector<std::int32_t>(minutes, demand_milli), 4, 2};
}

trace::Request tokens(std::int64_t input, std::int64_t output) {
  trace::Request request;
  request.input_tokens = input;
  request.output_tokens = output;
  return request;
}

// One window of a minute; a full device serves one request a second and slot.
ReplayOptions one_window() {
  ReplayOptions options;
  options.slots = 10;
  options.per_device = 10;
  options.slowest = 1;
  options.every_s = scored_to_s;
  options.window_s = 60;
  return options;
}

TEST(Requests, with_room_nobody_queues_and_the_first_byte_comes_after_the_input_F3) {
  const std::vector<ReadyChange> ready = {{double{scored_from_s}, 8}};
  const std::vector<trace::Request> lengths = {tokens(100, 30)};  // 100 + 900 tokens in a second
  const Replayed found = replay_requests(asks_for(1'000), ready, lengths, one_window());
  EXPECT_NEAR(static_cast<double>(found.all.requests), 600, 5 * 25);
  EXPECT_EQ(found.all.expired, 0U);
  EXPECT_EQ(found.all.first_byte.max(), milliseconds(100));
  EXPECT_EQ(found.all.total.min(), seconds(1));
  EXPECT_EQ(found.all.total.max(), seconds(1));
}

TEST(Requests, a_token_is_slower_on_a_full_replica_F3) {
  ReplayOptions options = one_window();
  options.slowest = 2;
  const std::vector<trace::Request> lengths = {tokens(100, 30)};
  const auto total_with = [&](std::int32_t replicas) {
    const std::vector<ReadyChange> ready = {{double{scored_from_s}, replicas}};
    return replay_requests(asks_for(1'000), ready, lengths, options).all.total.mean();
  };
  // Idle: half a second. On two replicas 7 of 20 slots and the request's own: 1.4 halves.
  EXPECT_NEAR(static_cast<double>(total_with(400).value), 500'000, 5'000);
  EXPECT_NEAR(static_cast<double>(total_with(2).value), 700'000, 30'000);
}

TEST(Requests, too_few_replicas_make_a_queue_that_ends_when_they_come_back_F3) {
  // Two devices are asked for, one is there for 30 of the 60 seconds, then four.
  const double from_s = scored_from_s;
  const std::vector<ReadyChange> ready = {{from_s, 4}, {from_s + 60, 1}, {from_s + 90, 4}};
  const std::vector<trace::Request> lengths = {tokens(1, 33)};
  const Replayed found = replay_requests(asks_for(2'000), ready, lengths, one_window());
  EXPECT_EQ(found.all.expired, 0U);
  // For 30 s 20 come and 10 go a second, then 40 go: the queue is gone after 15 s more, and who
  // came in the last quarter of the minute never waited.
  EXPECT_GT(found.all.first_byte.max(), seconds(6));
  EXPECT_LT(found.all.first_byte.max(), seconds(17));
  EXPECT_LT(found.all.first_byte.quantile(Ppm(200'000)), milliseconds(100));
  EXPECT_EQ(found.worst.requests, found.all.requests);
}

TEST(Requests, who_waits_too_long_fails_and_counts_F3) {
  const double from_s = scored_from_s;
  const std::vector<ReadyChange> ready = {{from_s, 1}, {from_s + 60, 0}, {from_s + 300, 1}};
  ReplayOptions options = one_window();
  options.patience_s = 20;
  const std::vector<trace::Request> lengths = {tokens(1, 33)};
  const Replayed found = replay_requests(asks_for(500), ready, lengths, options);
  EXPECT_GT(found.all.requests, 200U);
  EXPECT_EQ(found.all.expired, found.all.requests);
  EXPECT_EQ(found.all.first_byte.quantile(Ppm(500'000)), seconds(20));
}

TEST(Requests, all_policies_meet_the_same_requests_F3) {
  const std::vector<trace::Request> lengths = {tokens(10, 10), tokens(500, 3), tokens(40, 200)};
  const std::vector<ReadyChange> few = {{double{scored_from_s}, 2}},
                                 many = {{double{scored_from_s}, 20}};
  const Workload workload = asks_for(1'900);
  const Replayed first = replay_requests(workload, few, lengths, one_window());
  const Replayed second = replay_requests(workload, many, lengths, one_window());
  EXPECT_EQ(first.all.requests, second.all.requests);
  EXPECT_GE(first.all.total.sum(), second.all.total.sum());
  const Replayed again = replay_requests(workload, few, lengths, one_window());
  EXPECT_EQ(first.all.total, again.all.total);
}

TEST(Requests, a_run_tells_how_many_replicas_were_ready) {
  const Workload workload = asks_for(0);
  Score score(workload, 32);
  const double from_s = scored_from_s;
  score.replicas(0, {3, 2});
  score.replicas(from_s - 5, {3, 3});
  score.replicas(from_s + 10, {4, 3});  // no change of what is ready
  score.replicas(from_s + 20, {4, 4});
  score.replicas(double{scored_to_s} + 1, {9, 9});
  const Outcome outcome = score.outcome();
  ASSERT_EQ(outcome.ready.size(), 2U);
  EXPECT_EQ(outcome.ready[0].at_s, from_s);
  EXPECT_EQ(outcome.ready[0].ready, 3);
  EXPECT_EQ(outcome.ready[1].at_s, from_s + 20);
  EXPECT_EQ(outcome.ready[1].ready, 4);
}

}  // namespace
}  // namespace neap::loaning::requests_test
