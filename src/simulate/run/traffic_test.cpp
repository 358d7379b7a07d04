// D4: traffic by the slot, from each kind of recording, and what is refused.
#include "simulate/run/traffic.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "simulate/run/testing/scratch.h"

namespace neap::whatif {
namespace {

using testing::job_line;
using testing::rate_line;
using testing::Scratch;
using Offered = std::vector<std::optional<std::int64_t>>;

constexpr std::int64_t unit = 1'000'000;

std::string request_line(std::int64_t at_s, const std::string& service) {
  return "{\"at_us\":" + std::to_string(at_s * unit) + ",\"kind\":\"request\",\"service\":\"" +
         service + "\",\"input_tokens\":1,\"output_tokens\":1}\n";
}

TEST(Traffic, D4_rates_of_all_services_are_summed_and_the_highest_of_a_slot_counts) {
  const Scratch scratch;
  const auto read =
      read_traffic(scratch.workload(rate_line(1'000, "a", 2) + rate_line(1'000, "b", 3) +
                                    rate_line(1'100, "a", 9) + rate_line(1'130, "a", 1) +
                                    job_line(1'200, "j", 8, 60) + rate_line(2'250, "b", 0)),
                   Format::automatic, minutes(10));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->of, Traffic::Of::requests) << "jobs are not traffic";
  EXPECT_EQ(read->from, Time(0) + seconds(1'000));
  EXPECT_EQ(read->offered, (Offered{12 * unit, 4 * unit})) << "the last 50 s are no whole slot";
}

TEST(Traffic, D4_requests_count_by_their_busiest_minute) {
  const Scratch scratch;
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += request_line(i, "a");
  for (int i = 0; i < 120; ++i) lines += request_line(60 + i / 2, "b");
  lines += request_line(300, "a") + request_line(600, "a");
  const auto read = read_traffic(scratch.workload(lines), Format::automatic, minutes(5));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->offered, (Offered{2 * unit, unit / 60 + 1}));
}

TEST(Traffic, D4_a_file_of_jobs_alone_tells_the_devices_they_hold) {
  const Scratch scratch;
  const auto read =
      read_traffic(scratch.workload(job_line(0, "a", 2, 3'000) + job_line(60, "b", 4, 120) +
                                    job_line(3'600, "c", 1, 60)),
                   Format::automatic, minutes(10));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->of, Traffic::Of::devices);
  EXPECT_EQ(read->offered, (Offered{6 * unit, 2 * unit, 2 * unit, 2 * unit, 2 * unit, 0}));
}

TEST(Traffic, D4_time_before_1970_is_time) {
  const Scratch scratch;
  const auto read = read_traffic(scratch.write("p.csv",
                                               "timestamp,duration,num_gpus,cluster\n"
                                               "1969-12-31 22:00:00,1800,2,x\n"
                                               "1969-12-31 23:00:00,60,1,x\n"),
                                 Format::automatic, minutes(30));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->offered, (Offered{2 * unit, 0}));
}

const std::string helios_head =
    "time,total_gpu_num,running_gpu_num,pending_gpu_num,running_gpujob_num,pending_gpujob_num\n";

TEST(Traffic, D4_occupancy_is_what_runs_and_what_waits) {
  const Scratch scratch;
  const auto read =
      read_traffic(scratch.write("h.csv", helios_head + "2020-05-01 00:00:00,64,3,1,1,1\n"
                                                        "2020-05-01 00:01:00,64,5,2,1,1\n"
                                                        "2020-05-01 00:02:00,64,1,0,1,0\n"
                                                        "2020-05-01 00:03:00,64,2,0,1,0\n"),
                   Format::automatic, minutes(2));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->of, Traffic::Of::devices);
  EXPECT_EQ(read->offered, (Offered{7 * unit, 2 * unit}));
}

TEST(Traffic, D4_what_is_no_traffic_is_refused_with_its_place) {
  const Scratch scratch;
  const auto error = [&](const std::string& path, Format format, Micros slot = minutes(10)) {
    const auto read = read_traffic(path, format, slot);
    return read ? std::string("read") : to_string(read.error()).substr(path.size());
  };
  EXPECT_EQ(error(scratch.workload(rate_line(0, "a", 2)), Format::neap),
            ": expected traffic of one slot or more");
  EXPECT_EQ(error(scratch.workload(""), Format::neap), ": expected traffic of one slot or more");
  EXPECT_EQ(error(scratch.workload(rate_line(9, "a", 2) + rate_line(0, "a", 2)), Format::neap)
                .substr(0, 10),
            ":3: at_us:");
  EXPECT_EQ(error(scratch.path(""), Format::automatic),
            ": expected recorded traffic, not a journal");
  EXPECT_EQ(error(scratch.write("a.csv",
                                "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                                "2023-11-16 18:15:46.6805900,374,44\n"
                                "2023-11-16 18:15:40.6805900,374,44\n"),
                  Format::automatic),
            ": row 2 is earlier than the one before it; expected the order of time");
  EXPECT_EQ(
      error(scratch.workload(rate_line(0, "a", 2) + rate_line(400'000'000, "a", 2)), Format::neap),
      ": expected at most 6000000 minutes of traffic");
}

TEST(Traffic, D4_the_recorded_archive_is_read_in_its_windows_or_multiples_of_them) {
  const char* traces = std::getenv("NEAP_TRACES");
  if (traces == nullptr) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const std::string path = std::string(traces) + "/servegen/language_m-small.traces.tgz";
  const auto windows = read_traffic(path, Format::automatic, minutes(10));
  ASSERT_TRUE(windows) << to_string(windows.error());
  ASSERT_EQ(windows->offered.size(), 2'016U);
  const auto halves = read_traffic(path, Format::automatic, minutes(30));
  ASSERT_EQ(halves->offered.size(), 672U);
  EXPECT_EQ(halves->offered[1],
            std::max({windows->offered[3], windows->offered[4], windows->offered[5]}));
  const auto fine = read_traffic(path, Format::automatic, minutes(5));
  EXPECT_EQ(to_string(fine.error()),
            path + ": has windows of 600 s; expected slots of 600, 1200, 1800 or 3600 s");
}

}  // namespace
}  // namespace neap::whatif
