// F9: jobs, requests, rates and occupancy as they are published, and neap's own format.
#include <array>
#include <cmath>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "trace/generate.h"
#include "trace/jobs.h"
#include "trace/rates.h"
#include "trace/read_all.h"
#include "trace/requests.h"
#include "trace/tar.h"
#include "trace/workload.h"

namespace neap::trace {
namespace {

template <class Row, class Reader>
std::string error_in(const std::string& text) {
  const auto rows = read_all<Row>(Reader(bytes_of("f", text)));
  return rows ? "read " + std::to_string(rows->size()) : to_string(rows.error());
}

TEST(Jobs, F9_reads_philly) {
  const auto jobs =
      read_all<Job>(PhillyReader(bytes_of("f",
                                          "timestamp,duration,num_gpus,gpu_time,cluster\r\n"
                                          "2017-10-09 07:01:55,66.5,4,264.0,11cb48\r\n")));
  ASSERT_TRUE(jobs) << to_string(jobs.error());
  ASSERT_EQ(jobs->size(), 1U);
  const Job& job = jobs->front();
  EXPECT_EQ(job.submitted.us, 1'507'532'515'000'000);
  EXPECT_EQ(job.duration, milliseconds(66'500));
  EXPECT_EQ(job.gpus, 4);
  EXPECT_EQ(job.group, "11cb48");
}

TEST(Jobs, F9_names_what_is_wrong) {
  const std::string header = "timestamp,duration,num_gpus,gpu_time,cluster\n";
  const auto error = [&](const std::string& row) {
    return error_in<Job, PhillyReader>(header + row);
  };
  EXPECT_EQ(error("2017-13-09 07:01:55,1,1,1,c"),
            "f:2: timestamp: expected a time such as 2017-10-09 07:01:55, not "
            "\"2017-13-09 07:01:55\"");
  EXPECT_EQ(error("2017-10-09 07:01:55,-1,1,1,c"),
            "f:2: duration: expected a number from 0 to 3153600000, not \"-1\"");
  EXPECT_EQ(error("2017-10-09 07:01:55,1,0,1,c"),
            "f:2: num_gpus: expected a whole number from 1 to 100000, not \"0\"");
}

TEST(Jobs, F9_passes_over_chronus_rows_without_devices) {
  ChronusReader reader(
      bytes_of("f",
               "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,"
               "expect_time_list,expect_value_list,best_effort,job_type\n"
               "0,a,1,8555,5049,vgg16,747,14,1105,10,0,strict\n"
               "1,b,0,832,296,x,98,8,128,10,0,strict\n"
               "2,c,2,843,6718,y,59,5,843,10,1,best\n"));
  Job job;
  ASSERT_TRUE(reader.next(job).value());
  EXPECT_EQ(job.submitted, Time(minutes(8555).value));
  EXPECT_EQ(job.deadline, minutes(1105));
  ASSERT_TRUE(reader.next(job).value());
  EXPECT_EQ(job.name, "2");
  EXPECT_FALSE(job.deadline);
  EXPECT_FALSE(reader.next(job).value());
  EXPECT_EQ(reader.passed_over(), 1);
}

TEST(Requests, F9_reads_azure_and_mooncake) {
  const auto azure = read_all<Request>(AzureReader(bytes_of(
      "f", "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n")));
  ASSERT_TRUE(azure) << to_string(azure.error());
  EXPECT_EQ(azure->front().at.us % 60'000'000, 46'680'590);
  EXPECT_EQ(azure->front().input_tokens, 374);
  const auto mooncake = read_all<Request>(MooncakeReader(bytes_of(
      "f", R"({"timestamp": 3000, "input_length": 9, "output_length": 5, "hash_ids": [0, 14]})")));
  ASSERT_TRUE(mooncake) << to_string(mooncake.error());
  EXPECT_EQ(mooncake->front().at.us, 3'000'000);
  EXPECT_EQ(mooncake->front().prefix, (std::vector<std::int64_t>{0, 14}));
}

TEST(Requests, F9_names_what_is_wrong_in_a_json_line) {
  const auto error = [](const std::string& line) {
    return error_in<Request, MooncakeReader>("\n" + line);
  };
  EXPECT_EQ(error("[1]"), "f:2: expected a JSON object without repeated members");
  EXPECT_EQ(error("{"), "f:2: expected a JSON object without repeated members");
  EXPECT_EQ(error(R"({"timestamp":1,"timestamp":2})"),
            "f:2: expected a JSON object without repeated members");
  EXPECT_EQ(error(R"({"timestamp":0,"input_length":1.5,"output_length":5})"),
            "f:2: input_length: expected a whole number from 0 to 1000000000");
  EXPECT_EQ(error(R"({"timestamp":0,"input_length":1,"output_length":5,"hash_ids":[-1]})"),
            "f:2: hash_ids: expected a list of whole numbers from 0 to 9223372036854775807");
  EXPECT_EQ(error(R"({"timestamp":0,"input_length":18446744073709551615,"output_length":5})"),
            "f:2: input_length: expected a whole number from 0 to 1000000000");
  const std::string deep(500'000, '[');
  EXPECT_EQ(error("{\"timestamp\":" + deep),
            "f:2: expected a JSON object without repeated members");
}

// A ustar archive of one file a name.
std::string tar_of(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string archive;
  for (const auto& [name, text] : files) {
    std::string header(512, '\0');
    const auto put = [&](std::size_t at, const std::string& value) {
      header.replace(at, value.size(), value);
    };
    char size[12];
    std::snprintf(size, sizeof size, "%011zo", text.size());
    put(0, name);
    put(124, std::string(size, 11));
    put(148, "        ");
    put(156, name.ends_with('/') ? "5" : "0");
    put(257, "ustar");
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    put(148, std::string(digits, 6) + '\0' + ' ');
    archive += header + text + std::string((512 - text.size() % 512) % 512, '\0');
  }
  return archive + std::string(1024, '\0');
}

TEST(Rates, F9_sums_the_clients_of_an_archive) {
  const std::string archive = tar_of({{"m/", ""},
                                      {"m/a-trace.csv", "0,1.5,2,Gamma,0.5,3\n600,2,0,,0,0\n"},
                                      {"m/readme", "not a rate\n"},
                                      {"m/b-trace.csv", "600,0.25,1,Weibull,1,1\n"}});
  const auto windows = read_servegen(bytes_of("t", archive));
  ASSERT_TRUE(windows) << to_string(windows.error());
  ASSERT_EQ(windows->size(), 2U);
  EXPECT_EQ((*windows)[1].from, Time(seconds(600).value));
  EXPECT_DOUBLE_EQ((*windows)[0].per_second, 1.5);
  EXPECT_DOUBLE_EQ((*windows)[1].per_second, 2.25);
  const auto error = [](std::string text) {
    const auto read = read_servegen(bytes_of("t", std::move(text)));
    return read ? std::string("read") : to_string(read.error());
  };
  EXPECT_EQ(error(archive.substr(0, 1'030)), "t: the archive is cut off");
  EXPECT_EQ(error(std::string(600, 'x')), "t: expected a tar header");
  EXPECT_EQ(error(tar_of({{"a-trace.csv", "0,x,2,Gamma,0.5,3\n"}})),
            "t:a-trace.csv:1: rate: expected a number from 0.000000 to 1000000000.000000, not "
            "\"x\"");
  EXPECT_EQ(error(tar_of({{"a-trace.csv", "0,1,2,Beta,0.5,3\n"}})),
            "t:a-trace.csv:1: pattern: expected Gamma, Weibull or nothing, not \"Beta\"");
}

TEST(Workload, F9_reads_what_it_writes) {
  JobArrival job;
  job.name = "a \"quoted\" name\n";
  job.each = MilliGpu(500);
  job.cpu_milli = 4000;
  job.memory = MiB(8192);
  job.duration = seconds(60);
  job.group = "vision";
  job.models = "T4|P100";
  job.deadline = seconds(90);
  JobArrival cpu_only;
  cpu_only.name = "c";
  cpu_only.gpus = 0;
  cpu_only.each = MilliGpu(0);
  const std::vector<Arrival> arrivals = {{Time(0), job},
                                         {Time(0), cpu_only},
                                         {Time(5), RequestArrival{"chat", 374, 44}},
                                         {Time(9), RateChange{"chat", 5'500'000}}};
  std::string text = workload_header() + "\n";
  for (const Arrival& arrival : arrivals) text += line_of(arrival) + "\n";
  const auto read = read_all<Arrival>(WorkloadReader(bytes_of("w", text)));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(*read, arrivals);
}

TEST(Workload, F9_names_what_is_wrong) {
  const auto error = [](const std::string& line) {
    return error_in<Arrival, WorkloadReader>("{\"neap_workload\":1}\n" + line);
  };
  const auto plain = [](const std::string& text) {
    return error_in<Arrival, WorkloadReader>(text);
  };
  EXPECT_EQ(plain(""), "f: expected {\"neap_workload\":1} as the first line");
  EXPECT_EQ(plain("{\"neap_workload\":2}"),
            "f:1: neap_workload: expected a whole number from 1 to 1");
  EXPECT_EQ(error(R"({"at_us":0,"kind":"job","duration_us":1})"), "f:2: name: expected a name");
  EXPECT_EQ(error(R"({"at_us":0,"kind":"job","name":"a","duration_us":1,"gpus":2,"gpu_milli":5})"),
            "f:2: gpu_milli: expected a whole number from 1000 to 1000");
  EXPECT_EQ(error(R"({"at_us":0,"kind":"job","name":"a","duration_us":1,"size":2})"),
            "f:2: size: expected no such member");
  EXPECT_EQ(error(R"({"at_us":0,"kind":"jab"})"), "f:2: kind: expected job, request or rate");
  const std::string rate = R"({"at_us":7,"kind":"rate","service":"s","micro_per_second":1})";
  EXPECT_EQ(error(rate + "\n" + R"({"at_us":6,"kind":"rate","service":"s","micro_per_second":1})"),
            "f:3: at_us: expected a time no earlier than the line before");
}

TEST(Generators, F9_keep_to_the_published_statistics) {
  JobGenerator jobs(seconds(10), 1);
  std::vector<std::int64_t> lengths;
  int single = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto job = std::get<JobArrival>(jobs.next().what);
    lengths.push_back(job.duration.value / 1'000'000);
    single += job.gpus == 1 ? 1 : 0;
  }
  std::sort(lengths.begin(), lengths.end());
  EXPECT_NEAR(lengths[10'000], 1'144, 80);
  EXPECT_NEAR(lengths[19'000], 43'600, 4'000);
  EXPECT_NEAR(single / 20'000.0, 0.932, 0.01);

  RequestGenerator requests("chat", 5.5, 1);
  std::array<int, 24> by_hour{};
  double gaps = 0, squares = 0;
  std::int64_t last = 0, all = 0;
  while (last < hours(24).value) {
    const std::int64_t now = requests.next().at.us;
    if (now < hours(24).value) ++by_hour[static_cast<std::size_t>(now / hours(1).value)];
    const double gap = static_cast<double>(now - last) * RequestGenerator::day_curve(Time(last));
    gaps += gap;
    squares += gap * gap;
    last = now;
    ++all;
  }
  const double mean = gaps / static_cast<double>(all);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(all) / mean / mean - 1), 1.1, 0.02);
  EXPECT_NEAR(static_cast<double>(all), 5.5 * 86'400, 10'000);
  EXPECT_NEAR(by_hour[19] / static_cast<double>(by_hour[4]), 2.2, 0.15);

  PodGenerator pods(seconds(1), hours(1), 1);
  int cpu_only = 0, shared = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto pod = std::get<JobArrival>(pods.next().what);
    cpu_only += pod.gpus == 0 ? 1 : 0;
    shared += pod.gpus == 1 && pod.each < whole_device ? 1 : 0;
  }
  EXPECT_NEAR(cpu_only / 20'000.0, 0.133, 0.01);
  EXPECT_NEAR(shared / 20'000.0, 0.378, 0.01);
}

TEST(Published, F9_all_recorded_traces_are_read) {
  const char* traces = std::getenv("NEAP_TRACES");
  if (traces == nullptr) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const std::string folder = std::string(traces) + "/";
  const auto rows = [&](auto read) {
    EXPECT_TRUE(read) << to_string(read.error());
    return read ? read->size() : 0U;
  };
  EXPECT_EQ(rows(read_file<Job, PhillyReader>(folder + "philly/philly_sia_pollux.csv.gz")),
            82'247U);
  EXPECT_EQ(
      rows(read_file<Request, AzureReader>(folder + "azure/AzureLLMInferenceTrace_conv.csv.gz")),
      19'366U);
  EXPECT_EQ(
      rows(read_file<Request, MooncakeReader>(folder + "mooncake/conversation_trace.jsonl.gz")),
      12'031U);
  EXPECT_EQ(rows(read_file<Occupancy, HeliosReader>(folder +
                                                    "helios/Earth_vchbv.cluster_sequence.csv.gz")),
            44'640U);
  auto bytes = open_bytes(folder + "philly/chronus_MIX1.csv.gz");
  ASSERT_TRUE(bytes);
  ChronusReader chronus(std::move(*bytes));
  Job job;
  std::int64_t jobs = 0;
  for (auto more = chronus.next(job); more.value(); more = chronus.next(job)) ++jobs;
  EXPECT_EQ(jobs + chronus.passed_over(), 30'940);

  bytes = open_bytes(folder + "servegen/language_m-small.traces.tgz");
  ASSERT_TRUE(bytes);
  const auto windows = read_servegen(std::move(*bytes));
  ASSERT_TRUE(windows) << to_string(windows.error());
  // Mean by hour of the day: lowest at 5 h with 775 a second, highest at 20 h with 1,709.
  std::array<double, 24> sums{}, counts{};
  for (const RateWindow& window : *windows) {
    const auto hour = static_cast<std::size_t>(window.from.us / hours(1).value % 24);
    sums[hour] += window.per_second;
    ++counts[hour];
  }
  EXPECT_NEAR(sums[5] / counts[5], 775, 1);
  EXPECT_NEAR(sums[20] / counts[20], 1'709, 1);
}

}  // namespace
}  // namespace neap::trace
