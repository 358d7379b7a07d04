// F9: public traces are read as they are published, and a wrong file is told exactly.
#include "trace/openb.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "trace/read_all.h"
#include "trace/testing/gzip.h"

namespace neap::trace {
namespace {

Result<std::vector<OpenbPod>> pods_of(const std::string& text) {
  return read_all<OpenbPod>(OpenbPodReader(bytes_of("pods.csv", text)));
}

const std::string header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";

TEST(Openb, F9_reads_pods_of_every_kind) {
  const auto pods =
      pods_of(header + "a,6000,12288,1,460,T4|P100\nb,100,200,0,77,G2\nc,1,2,8,1000,\n");
  ASSERT_TRUE(pods) << to_string(pods.error());
  ASSERT_EQ(pods->size(), 3U);
  EXPECT_EQ((*pods)[0].name, "a");
  EXPECT_EQ((*pods)[0].cpu_milli, 6000);
  EXPECT_EQ((*pods)[0].memory, MiB(12288));
  EXPECT_EQ((*pods)[0].each, MilliGpu(460));
  EXPECT_EQ((*pods)[0].models, "T4|P100");
  EXPECT_FALSE((*pods)[0].created_s);
  // Without a device the other two columns say nothing.
  EXPECT_EQ((*pods)[1].each, MilliGpu(0));
  EXPECT_EQ((*pods)[1].models, "");
  EXPECT_EQ((*pods)[2].gpus, 8);
}

TEST(Openb, F9_takes_dos_line_ends_and_a_byte_order_mark) {
  const auto pods = pods_of(
      "\xEF\xBB\xBFname,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\r\n"
      "a,1,2,1,300,T4\r\n\r\nb,1,2,1,300,T4");
  ASSERT_TRUE(pods) << to_string(pods.error());
  ASSERT_EQ(pods->size(), 2U);
  EXPECT_EQ((*pods)[1].models, "T4");
}

TEST(Openb, F9_reads_gzip_also_in_several_members) {
  const auto pods = pods_of(gzipped(header + "a,1,2,1,300,\n") + gzipped("b,1,2,1,300,\n"));
  ASSERT_TRUE(pods) << to_string(pods.error());
  EXPECT_EQ(pods->size(), 2U);
}

TEST(Openb, F9_names_what_is_wrong) {
  const std::string whole = gzipped(header + "a,1,2,1,300,\n");
  struct Case {
    std::string text, error;
  };
  const Case cases[] = {
      {"", "pods.csv: expected a header line"},
      {"name,cpu_milli,memory_mib,gpu_milli\n",
       "pods.csv:1: num_gpu: expected this column in the header"},
      {header + "a,1,2,1,300,\nb,x,2,1,300,\n",
       "pods.csv:3: cpu_milli: expected a whole number from 0 to 100000000, not \"x\""},
      {header + "a,-1,2,1,300,\n",
       "pods.csv:2: cpu_milli: expected a whole number from 0 to 100000000, not \"-1\""},
      {header + "a,1.5,2,1,300,\n",
       "pods.csv:2: cpu_milli: expected a whole number from 0 to 100000000, not \"1.5\""},
      {header + "a,1,2,1,0,\n",
       "pods.csv:2: gpu_milli: expected a whole number from 1 to 1000000, not \"0\""},
      {header + "a,1,2,2,500,\n",
       "pods.csv:2: gpu_milli: expected 1000 where there are several devices, not \"500\""},
      {header + "a,1,2,1\n", "pods.csv:2: expected 6 fields, not 4"},
      {header + "a,1,2,1,300,\"T4\n", "pods.csv:2: a quote is not closed"},
      {header + ",1,2,1,300,T4\n", "pods.csv:2: name: expected a name, not \"\""},
      {header + std::string((1U << 20U) + 1, 'a') + "\n",
       "pods.csv:2: the line is longer than 1048576 bytes"},
      {whole.substr(0, whole.size() - 3), "pods.csv: the gzip data is cut off"},
      {whole + "plain", "pods.csv: bytes follow the gzip data"},
      {whole.substr(0, 12) + "\xff\xff\xff\xff" + whole.substr(16),
       "pods.csv: the gzip data is damaged: "},
  };
  for (const Case& c : cases) {
    const auto pods = pods_of(c.text);
    ASSERT_FALSE(pods) << c.error;
    EXPECT_EQ(to_string(pods.error()).substr(0, c.error.size()), c.error);
  }
}

TEST(Openb, F9_reads_the_order_of_one_seed) {
  const std::string text = "41 pods 0 0\n41 nodes 1 0\n42 pods 2 0 1 1\n42 nodes 1 0\n";
  const auto order = read_openb_order(bytes_of("o", text), 42, {3, 2});
  ASSERT_TRUE(order) << to_string(order.error());
  EXPECT_EQ(order->pods, (std::vector<std::uint32_t>{2, 0, 1, 1}));
  EXPECT_EQ(order->nodes, (std::vector<std::uint32_t>{1, 0}));
}

TEST(Openb, F9_refuses_an_order_that_does_not_fit) {
  const auto error_of = [](const std::string& text) {
    const auto order = read_openb_order(bytes_of("o", text), 42, {3, 2});
    return order ? std::string("read") : to_string(order.error());
  };
  EXPECT_EQ(error_of("41 pods 1\n"), "o: has no order for seed 42");
  EXPECT_EQ(error_of("42 pods 1 3\n"), "o:1: word 4: expected a row number below 3");
  EXPECT_EQ(error_of("42 pods 1\n42 nodes 1 1\n"), "o:2: names node 1 twice");
  EXPECT_EQ(error_of("42 pods 1\n42 nodes 1\n"), "o:2: expected all 2 nodes, not 1");
  EXPECT_EQ(error_of("42 cats 1\n"), "o:1: word 2: expected pods or nodes");
}

TEST(Openb, F9_reads_the_published_files) {
  const char* traces = std::getenv("NEAP_TRACES");
  if (traces == nullptr) GTEST_SKIP() << "skipped: NEAP_TRACES not set";
  const std::string folder = std::string(traces) + "/openb/";
  const auto nodes = read_file<OpenbNode, OpenbNodeReader>(folder + "openb_node_list_gpu_node.csv");
  ASSERT_TRUE(nodes) << to_string(nodes.error());
  EXPECT_EQ(nodes->size(), 1213U);
  std::int64_t gpus = 0, cpu = 0;
  for (const OpenbNode& node : *nodes) gpus += node.gpus, cpu += node.cpu_milli;
  EXPECT_EQ(gpus, 6212);
  EXPECT_EQ(cpu, 107'018'000);
  const auto pods = read_file<OpenbPod, OpenbPodReader>(folder + "openb_pod_list_gpuspec20.csv");
  ASSERT_TRUE(pods) << to_string(pods.error());
  EXPECT_EQ(pods->size(), 8152U);
  const auto classes = read_file<OpenbClass, OpenbClassReader>(folder + "classes_default.csv");
  ASSERT_TRUE(classes) << to_string(classes.error());
  EXPECT_EQ(classes->size(), 35U);
  auto bytes = open_bytes(folder + "orders/default.txt.gz");
  ASSERT_TRUE(bytes);
  const auto order = read_openb_order(std::move(*bytes), 46, {8152, 1213});
  ASSERT_TRUE(order) << to_string(order.error());
  EXPECT_GT(order->pods.size(), 8152U);
}

}  // namespace
}  // namespace neap::trace
