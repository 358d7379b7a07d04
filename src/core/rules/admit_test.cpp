// What no device of the pool could ever carry is refused at submission.
#include "core/rules/admit.h"

#include <gtest/gtest.h>

#include "core/testing/script.h"

namespace neap {
namespace {

using testing::Script;

// n0 and n1 have two devices each, n2 has four of another model; n0 has 8 cores, the others 32.
Script mixed_pool() {
  Script s;
  s.configure();
  s.node("n0", "d0", 2);
  s.node("n1", "d0", 2);
  s.node("n2", "d1", 4, MiB(40960), "A100-40G");
  for (NodeState& node : s.state.nodes) node.cpu_milli = node.name == "n0" ? 8'000 : 32'000;
  return s;
}

Request request_for(std::int32_t count) {
  Request request;
  request.count = count;
  return request;
}

TEST(Request, G5_CountsWhatCouldServe) {
  const Script s = mixed_pool();
  EXPECT_TRUE(check_request(s.state, request_for(8)));
  EXPECT_EQ(check_request(s.state, request_for(9)).error().context, "gpus");
  Request large = request_for(4);
  large.memory = MiB(50'000);
  EXPECT_TRUE(check_request(s.state, large));
  large.count = 5;
  EXPECT_FALSE(check_request(s.state, large)) << "four devices have so much memory";
  Request named = request_for(5);
  named.models = {"A100-40G"};
  EXPECT_FALSE(check_request(s.state, named));
}

TEST(Request, C5_ExcludedNodesDoNotCount) {
  const Script s = mixed_pool();
  Request request = request_for(6);
  request.near.exclude = {"n0"};
  EXPECT_TRUE(check_request(s.state, request));
  request.count = 7;
  const auto refused = check_request(s.state, request);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the pool has 6"), std::string::npos)
      << to_string(refused.error());
  request.count = 2;
  request.near.exclude = {"n0", "n1", "nowhere"};
  request.models = {"A100-80G"};
  EXPECT_FALSE(check_request(s.state, request)) << "none of them is left";
}

TEST(Request, D7_TheLargestCellDecides) {
  const Script s = mixed_pool();
  Request request = request_for(4);
  request.near.within = Cell::node;
  EXPECT_TRUE(check_request(s.state, request));
  request.near.exclude = {"n2"};
  EXPECT_EQ(check_request(s.state, request).error().context, "placement.within");
  request.near.within = Cell::domain;
  EXPECT_TRUE(check_request(s.state, request)) << "n0 and n1 are of one domain";
}

TEST(Request, C1_TheLargestHostDecides) {
  const Script s = mixed_pool();
  Request request = request_for(2);
  request.cpu_milli = 32'000;
  EXPECT_TRUE(check_request(s.state, request));
  request.near.exclude = {"n1", "n2"};
  EXPECT_EQ(check_request(s.state, request).error().context, "cpu");
}

}  // namespace
}  // namespace neap
