// F9: an input far larger than memory allows is read in a few megabytes.
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "trace/jobs.h"
#include "trace/openb.h"
#include "trace/rates.h"
#include "trace/requests.h"
#include "trace/testing/gzip.h"
#include "trace/workload.h"

namespace neap::trace {
namespace {

std::int64_t peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

struct Large {
  std::string name;
  std::string header;
  std::function<std::string(std::int64_t row)> row;
  // Reads all, and says of how many rows; -1 for an error. Told when the first row is read.
  std::function<std::int64_t(Bytes, const std::function<void()>&)> read;
};

void PrintTo(const Large& large, std::ostream* out) { *out << large.name; }

template <class Row, class Reader>
std::int64_t count_rows(Bytes bytes, const std::function<void()>& first) {
  Reader reader(std::move(bytes));
  Row row;
  for (std::int64_t count = 0;; ++count) {
    const auto more = reader.next(row);
    EXPECT_TRUE(more) << to_string(more.error());
    if (!more) return -1;
    if (!*more) return count;
    if (count == 0) first();
  }
}

std::vector<Large> formats() {
  const auto same = [](const char* text) { return [text](std::int64_t) { return text; }; };
  return {{"pods", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n",
           [](std::int64_t r) {
             return "openb-pod-" + std::to_string(r) + ",12000,16384,1,1000,T4|P100\n";
           },
           count_rows<OpenbPod, OpenbPodReader>},
          {"nodes", "sn,cpu_milli,memory_mib,gpu,model\n",
           [](std::int64_t r) { return "n" + std::to_string(r) + ",64000,262144,2,P100\n"; },
           count_rows<OpenbNode, OpenbNodeReader>},
          {"philly", "timestamp,duration,num_gpus,gpu_time,cluster\n",
           same("2017-10-09 07:01:55,66.5,1,66.0,11cb48\n"), count_rows<Job, PhillyReader>},
          {"chronus",
           "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,"
           "expect_time_list,expect_value_list,best_effort,job_type\n",
           same("0,a,1,8555,5049,vgg16,747,14,1105,10,0,strict\n"), count_rows<Job, ChronusReader>},
          {"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n",
           same("2023-11-16 18:15:46.6805900,374,44\n"), count_rows<Request, AzureReader>},
          {"mooncake", "",
           same("{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500, "
                "\"hash_ids\": [0, 1]}\n"),
           count_rows<Request, MooncakeReader>},
          {"helios",
           "time,total_gpu_num,running_gpu_num,pending_gpu_num,running_gpujob_num,"
           "pending_gpujob_num\n",
           same("2020-05-01 00:00:00,64,14,0,5,0\n"), count_rows<Occupancy, HeliosReader>},
          {"servegen", "", same("0,1.5,2,Weibull,0.5,3\n"), count_rows<Rate, ServeGenReader>},
          {"workload", "{\"neap_workload\":1}\n",
           same("{\"at_us\":0,\"kind\":\"job\",\"name\":\"a\",\"duration_us\":1}\n"),
           count_rows<Arrival, WorkloadReader>}};
}

class LargeInput : public testing::TestWithParam<Large> {};

TEST_P(LargeInput, F9_memory_does_not_grow_with_the_input) {
  constexpr std::int64_t rows_a_block = 20'000;
  std::string rows;
  for (std::int64_t r = 0; r < rows_a_block; ++r) rows += GetParam().row(r);
  // 16 MB, and 2 GB in a long run.
  const std::int64_t bytes = std::getenv("NEAP_LONG") == nullptr ? 16'000'000 : 2'000'000'000;
  const std::int64_t blocks = bytes / static_cast<std::int64_t>(rows.size()) + 1;
  std::string compressed = GetParam().header.empty() ? "" : gzipped(GetParam().header);
  const std::string block = gzipped(rows);
  for (std::int64_t b = 0; b < blocks; ++b) compressed += block;
  std::int64_t before = 0;
  const std::int64_t count =
      GetParam().read(bytes_of("large", std::move(compressed)), [&before] { before = peak_kib(); });
  EXPECT_EQ(count, blocks * rows_a_block);
  // Sanitizers keep what is freed for a while.
  EXPECT_LT(peak_kib() - before, 16 * 1024);
}

INSTANTIATE_TEST_SUITE_P(Readers, LargeInput, testing::ValuesIn(formats()),
                         [](const auto& large) { return large.param.name; });

}  // namespace
}  // namespace neap::trace
