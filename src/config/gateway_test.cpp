// E1: the section `gateway` of a service and of a pool.
#include "config/gateway.h"

#include <gtest/gtest.h>

#include "config/pool_file.h"
#include "config/task_file.h"

namespace neap::config {
namespace {

std::string service(const std::string& more) {
  return "service:\n  name: chat\n  command: [serve]\n  gpus: 1\n  concurrency: 8\n" + more;
}

std::optional<ServiceGateway> read(const std::string& more, Problems& problems) {
  const auto file = parse_task_file(service(more), {}, problems);
  if (!file) return std::nullopt;
  return gateway_of_launch(std::get<ServiceSpec>(file->spec).launch);
}

TEST(ServiceGatewaySection, E1_WhatIsNotSaid) {
  Problems problems("job.yaml");
  const auto plain = read("", problems);
  ASSERT_TRUE(plain) << problems.text();
  EXPECT_FALSE(plain->adaptive);
  EXPECT_EQ(plain->queue_high, 256);
  EXPECT_EQ(plain->hold, 64);
  const auto promised = read("  slo: {ttft: 500ms}\n", problems);
  ASSERT_TRUE(promised) << problems.text();
  EXPECT_TRUE(promised->adaptive);  // there is something to go by
  EXPECT_FALSE(promised->wait_within_slo);
}

TEST(ServiceGatewaySection, E1_WhatIsSaidReachesTheLaunchText) {
  Problems problems("job.yaml");
  const auto read_back = read(
      "  slo: {ttft: 2s}\n  gateway:\n    class: low\n    queue: {high: 9, low: 3}\n    wait: slo\n"
      "    concurrency: fixed\n    hold: {requests: 5, within: 30s}\n"
      "    cost: {input: 1, output: 4, output_tokens: 100}\n    models: [gpt-x, org/gpt]\n",
      problems);
  ASSERT_TRUE(read_back) << problems.text();
  EXPECT_EQ(read_back->usual_class, "low");
  EXPECT_EQ(read_back->queue_high, 9);
  EXPECT_EQ(read_back->queue_normal, 9);
  EXPECT_EQ(read_back->queue_low, 3);
  EXPECT_TRUE(read_back->wait_within_slo);
  EXPECT_FALSE(read_back->adaptive);
  EXPECT_EQ(read_back->hold, 5);
  EXPECT_EQ(read_back->hold_for, seconds(30));
  EXPECT_EQ(read_back->output_cost, 4);
  EXPECT_EQ(read_back->output_tokens, 100);
  EXPECT_EQ(read_back->models, (std::vector<std::string>{"gpt-x", "org/gpt"}));
}

TEST(ServiceGatewaySection, E1_FaultsNameTheirField) {
  const auto fault = [](const std::string& more) {
    Problems problems("job.yaml");
    EXPECT_FALSE(read(more, problems));
    return problems.text();
  };
  EXPECT_NE(fault("  gateway: {queue: {high: 3, normal: 4}}\n").find("gateway.queue.normal"),
            std::string::npos);
  EXPECT_NE(fault("  gateway: {wait: slo}\n").find("gateway.wait"), std::string::npos);
  EXPECT_NE(fault("  gateway: {concurrency: adaptive}\n").find("gateway.concurrency"),
            std::string::npos);
  EXPECT_NE(fault("  gateway: {least_concurrency: 9}\n").find("least_concurrency"),
            std::string::npos);
  EXPECT_NE(fault("  gateway: {models: [\"a b\"]}\n").find("gateway.models"), std::string::npos);
  EXPECT_NE(fault("  gateway: {class: urgent}\n").find("gateway.class"), std::string::npos);
  const std::string broken = fault("  gateway: {models: [\"a\\nb\"]}\n");
  EXPECT_NE(broken.find("names \"a?b\"; expected 1 to 128"), std::string::npos) << broken;
  EXPECT_NE(fault("  gateway: {models: [a, b, a]}\n").find("names \"a\" twice; expected"),
            std::string::npos);
  for (const char* wrong : {"queue: {high: 3, normal: 4}", "queue: {normal: 3, low: 4}",
                            "wait: slo", "concurrency: adaptive", "least_concurrency: 9"}) {
    const std::string found = fault(("  gateway: {" + std::string(wrong) + "}\n").c_str());
    EXPECT_NE(found.find("expected"), std::string::npos) << found;
  }
}

TEST(ServiceGatewaySection, ALaunchTextOfBeforeHasNone) {
  EXPECT_FALSE(gateway_of_launch("{\"command\": [\"x\"]}"));
  EXPECT_FALSE(gateway_of_launch("no JSON"));
  EXPECT_FALSE(gateway_of_launch("{\"gateway\": {\"class\": 3}}"));
}

TEST(PoolGatewaySection, G5_EndpointKeysAndCertificate) {
  Problems problems("pool.yaml");
  const auto file = parse_pool_file(
      "pool: {total_gpus: 4}\ngateway:\n  listen: \"[::1]:8000\"\n  certificate: "
      "/etc/neap/tls.pem\n"
      "  keys: required\n",
      problems);
  ASSERT_TRUE(file) << problems.text();
  EXPECT_EQ(file->gateway.address, "::1");
  EXPECT_EQ(file->gateway.port, 8000);
  EXPECT_EQ(file->gateway.certificate_place, "pool.yaml:4: gateway.certificate");
  EXPECT_EQ(file->gateway.keys, GatewaySettings::Keys::required);
  for (const char* wrong : {"listen: nowhere", "listen: \"127.0.0.1:0\"", "certificate: tls.pem",
                            "certificate: \"/a b\"", "keys: some", "keys_file: keys"}) {
    Problems found("pool.yaml");
    EXPECT_FALSE(
        parse_pool_file(std::string("pool: {total_gpus: 4}\ngateway:\n  ") + wrong + "\n", found))
        << wrong;
    EXPECT_NE(found.text().find("gateway."), std::string::npos) << found.text();
  }
}

}  // namespace
}  // namespace neap::config
