// F9: an input far larger than memory allows is read in a few megabytes.
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
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

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NEAP_SANITIZER_HEAP  // g++
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define NEAP_SANITIZER_HEAP  // clang
#endif
#endif

#ifdef NEAP_SANITIZER_HEAP
// Of <sanitizer/allocator_interface.h>, which g++ does not ship though its runtime has it.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();  // NOLINT(bugprone-reserved-*)
#endif

namespace neap::trace {
namespace {

// Sanitizers keep what is freed for a while, so that the peak says nothing: there, what is live.
std::int64_t memory_kib() {
#ifdef NEAP_SANITIZER_HEAP
  return static_cast<std::int64_t>(__sanitizer_get_current_allocated_bytes() / 1024);
#else
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
#endif
}

constexpr std::int64_t limit_kib = 16 * 1024;

// How far memory rose above what it was at the first row.
class Growth {
 public:
  void row_was_read(std::int64_t row) {
    if (row == 0) first_ = most_ = memory_kib();
    if (row % rows_a_sample == 0) sample();
  }
  void sample() { most_ = std::max(most_, memory_kib()); }
  [[nodiscard]] std::int64_t kib() const { return most_ - first_; }

 private:
  static constexpr std::int64_t rows_a_sample = 4'096;
  std::int64_t first_ = 0;
  std::int64_t most_ = 0;
};

struct Large {
  std::string name;
  std::string header;
  std::function<std::string(std::int64_t row)> row;
  // Reads all, and says of how many rows; -1 for an error.
  std::function<std::int64_t(Bytes, Growth&)> read;
};

void PrintTo(const Large& large, std::ostream* out) { *out << large.name; }

template <class Row, class Reader>
std::int64_t count_rows(Bytes bytes, Growth& growth) {
  Reader reader(std::move(bytes));
  Row row;
  for (std::int64_t count = 0;; ++count) {
    const auto more = reader.next(row);
    EXPECT_TRUE(more) << to_string(more.error());
    if (!more) return -1;
    if (!*more) {
      growth.sample();
      return count;
    }
    growth.row_was_read(count);
  }
}

// Planted: it keeps what it has read.
template <class Row, class Reader>
class Hoarder {
 public:
  explicit Hoarder(Bytes bytes) : reader_(std::move(bytes)) {}
  Result<bool> next(Row& row) {
    auto more = reader_.next(row);
    if (more && *more) rows_.push_back(row);
    return more;
  }

 private:
  Reader reader_;
  std::vector<Row> rows_;
};

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

// Compressed: 16 MB, and 2 GB in a long run.
struct Input {
  std::string compressed;
  std::int64_t rows = 0;
};

Input input_of(const Large& large) {
  constexpr std::int64_t rows_a_block = 20'000;
  std::string rows;
  for (std::int64_t r = 0; r < rows_a_block; ++r) rows += large.row(r);
  const std::int64_t bytes = std::getenv("NEAP_LONG") == nullptr ? 16'000'000 : 2'000'000'000;
  const std::int64_t blocks = bytes / static_cast<std::int64_t>(rows.size()) + 1;
  Input input{large.header.empty() ? "" : gzipped(large.header), blocks * rows_a_block};
  const std::string block = gzipped(rows);
  for (std::int64_t b = 0; b < blocks; ++b) input.compressed += block;
  return input;
}

class LargeInput : public testing::TestWithParam<Large> {};

TEST_P(LargeInput, F9_memory_does_not_grow_with_the_input) {
  Input input = input_of(GetParam());
  Growth growth;
  const std::int64_t count =
      GetParam().read(bytes_of("large", std::move(input.compressed)), growth);
  EXPECT_EQ(count, input.rows);
  EXPECT_LT(growth.kib(), limit_kib);
}

INSTANTIATE_TEST_SUITE_P(Readers, LargeInput, testing::ValuesIn(formats()),
                         [](const auto& large) { return large.param.name; });

// In a process of its own: a peak that other tests have reached would hide the rise.
TEST(LargeInputDeathTest, F9_a_reader_that_keeps_its_rows_is_seen) {
  const auto grown = [](const Large& large, auto read) {
    Input input = input_of(large);
    Growth growth;
    const std::int64_t count = read(bytes_of("large", std::move(input.compressed)), growth);
    return count == input.rows && growth.kib() >= limit_kib;
  };
  const std::vector<Large> all = formats();
  const auto exits_well = testing::ExitedWithCode(EXIT_SUCCESS);
  ASSERT_EQ(all.front().name, "pods");
  EXPECT_EXIT(std::_Exit(grown(all.front(), count_rows<OpenbPod, Hoarder<OpenbPod, OpenbPodReader>>)
                             ? EXIT_SUCCESS
                             : EXIT_FAILURE),
              exits_well, "");
  ASSERT_EQ(all.back().name, "workload");
  EXPECT_EXIT(std::_Exit(grown(all.back(), count_rows<Arrival, Hoarder<Arrival, WorkloadReader>>)
                             ? EXIT_SUCCESS
                             : EXIT_FAILURE),
              exits_well, "");
}

}  // namespace
}  // namespace neap::trace
