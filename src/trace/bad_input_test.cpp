// F9: what every reader makes of bad input: an error with the line, never a shorter trace.
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "trace/jobs.h"
#include "trace/openb.h"
#include "trace/rates.h"
#include "trace/read_all.h"
#include "trace/requests.h"
#include "trace/testing/gzip.h"
#include "trace/workload.h"

namespace neap::trace {
namespace {

using Replacement = std::pair<std::string, std::string>;

struct Format {
  std::string name;
  std::function<std::string(std::string)> read;  // "read N", or the error
  std::string good;
  int rows = 2;
  Replacement without_column;  // in the first line that has columns
  int column_line = 1;
  Replacement wrong_number;
  int wrong_line = 3;
  bool reads_to_end = true;  // an order is whole as soon as its two lines are
};

void PrintTo(const Format& format, std::ostream* out) { *out << format.name; }

template <class Row, class Reader>
std::string read_rows(std::string text) {
  const auto rows = read_all<Row>(Reader(bytes_of("f", std::move(text))));
  return rows ? "read " + std::to_string(rows->size()) : to_string(rows.error());
}

std::string read_order(std::string text) {
  const auto order = read_openb_order(bytes_of("f", std::move(text)), 42, {5, 2});
  return order ? "read " + std::to_string(order->pods.size()) : to_string(order.error());
}

std::vector<Format> formats() {
  return {{"nodes",
           read_rows<OpenbNode, OpenbNodeReader>,
           "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,P100\nn2,96000,524288,8,G2\n",
           2,
           {"memory_mib,", ""},
           1,
           {"96000", "96e3"},
           3},
          {"pods",
           read_rows<OpenbPod, OpenbPodReader>,
           "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\na,6000,12288,1,460,T4\n"
           "b,1,2,0,0,\n",
           2,
           {"num_gpu,", ""},
           1,
           {"b,1,2", "b,-1,2"},
           3},
          {"classes",
           read_rows<OpenbClass, OpenbClassReader>,
           "rank,cpu_milli,num_gpu,gpu_milli_per_gpu,gpu_spec,count,weight\n"
           "0,3152,1,810,,1047,0.1\n1,4000,0,0,,7,0.2\n",
           2,
           {",count", ""},
           1,
           {"0.2", "2.0"},
           3},
          {"order",
           read_order,
           "42 pods 0 4 1\n42 nodes 1 0\n",
           3,
           {"42 pods", "42"},
           1,
           {"nodes 1", "nodes x"},
           2,
           false},
          {"philly",
           read_rows<Job, PhillyReader>,
           "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.5,1,66.0,11cb48\n"
           "2017-10-09 07:01:56,5,2,10,11cb48\n",
           2,
           {"duration,", ""},
           1,
           {",2,10", ",two,10"},
           3},
          {"chronus",
           read_rows<Job, ChronusReader>,
           "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,"
           "expect_time_list,expect_value_list,best_effort,job_type\n"
           "0,a,1,8555,5049,vgg16,747,14,1105,10,0,strict\n2,c,1,843,6718,y,59,5,843,10,1,best\n",
           2,
           {"submit_time,", ""},
           1,
           {",59,", ",5 9,"},
           3},
          {"azure",
           read_rows<Request, AzureReader>,
           "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
           "2023-11-16 18:15:47,1,2\n",
           2,
           {"ContextTokens,", ""},
           1,
           {"47,1,2", "47,1.5,2"},
           3},
          {"mooncake",
           read_rows<Request, MooncakeReader>,
           "{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500, \"hash_ids\": [0]}\n"
           "{\"timestamp\": 9, \"input_length\": 7, \"output_length\": 5, \"hash_ids\": []}\n",
           2,
           {"\"input_length\": 6758, ", ""},
           1,
           {": 7,", ": \"7\","},
           2},
          {"helios",
           read_rows<Occupancy, HeliosReader>,
           "time,total_gpu_num,running_gpu_num,pending_gpu_num,running_gpujob_num,"
           "pending_gpujob_num\n2020-05-01 00:00:00,64,14,0,5,0\n2020-05-01 00:01:00,64,15,0,6,0\n",
           2,
           {"running_gpu_num,", ""},
           1,
           {",15,", ",-15,"},
           3},
          {"servegen",
           read_rows<Rate, ServeGenReader>,
           "0,1.5,2,Weibull,0.5,3\n600,2,0,,0,0\n",
           2,
           {"0,1.5,", "0,"},
           1,
           {"600,2", "600,2x"},
           2},
          {"workload",
           read_rows<Arrival, WorkloadReader>,
           "{\"neap_workload\":1}\n"
           "{\"at_us\":0,\"kind\":\"job\",\"name\":\"a\",\"gpu_milli\":500,\"duration_us\":1}\n"
           "{\"at_us\":1,\"kind\":\"request\",\"service\":\"s\",\"input_tokens\":1,"
           "\"output_tokens\":2}\n",
           2,
           {"\"name\":\"a\",", ""},
           2,
           {"\"input_tokens\":1", "\"input_tokens\":1.5"},
           3}};
}

std::string with(std::string text, const Replacement& replacement) {
  const std::size_t at = text.find(replacement.first);
  EXPECT_NE(at, std::string::npos) << replacement.first;
  return text.replace(at, replacement.first.size(), replacement.second);
}

class BadInput : public testing::TestWithParam<Format> {
 protected:
  static std::string read(const std::string& text) { return GetParam().read(text); }
  static std::string all_rows() { return "read " + std::to_string(GetParam().rows); }
};

TEST_P(BadInput, F9_gzip_that_is_cut_off_is_no_shorter_trace) {
  const std::string whole = gzipped(GetParam().good);
  EXPECT_EQ(read(whole), all_rows());
  for (std::size_t length = 3; length < whole.size(); ++length) {
    const std::string message = read(whole.substr(0, length));
    if (!GetParam().reads_to_end && message == all_rows()) continue;
    ASSERT_TRUE(message.starts_with("f")) << length << ": " << message;
  }
  if (!GetParam().reads_to_end) return;
  std::string damaged = whole;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x10);
  EXPECT_TRUE(read(damaged).starts_with("f")) << read(damaged);
}

TEST_P(BadInput, F9_a_missing_column_is_named_with_its_line) {
  const std::string message = read(with(GetParam().good, GetParam().without_column));
  const std::string line = "f:" + std::to_string(GetParam().column_line) + ":";
  EXPECT_TRUE(message.starts_with(line)) << message;
}

TEST_P(BadInput, F9_a_wrong_number_is_named_with_its_line) {
  const std::string message = read(with(GetParam().good, GetParam().wrong_number));
  const std::string line = "f:" + std::to_string(GetParam().wrong_line) + ":";
  EXPECT_TRUE(message.starts_with(line)) << message;
}

TEST_P(BadInput, F9_dos_line_ends_and_a_byte_order_mark_change_nothing) {
  std::string dos;
  for (const char c : GetParam().good) {
    if (c == '\n') dos += '\r';
    dos += c;
  }
  EXPECT_EQ(read(dos), all_rows());
  EXPECT_EQ(read("\xef\xbb\xbf" + GetParam().good), all_rows());
  EXPECT_EQ(read("\xef\xbb\xbf" + dos), all_rows());
}

INSTANTIATE_TEST_SUITE_P(Readers, BadInput, testing::ValuesIn(formats()),
                         [](const auto& format) { return format.param.name; });

}  // namespace
}  // namespace neap::trace
