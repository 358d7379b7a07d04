#include "device/device_source.h"

#include <gtest/gtest.h>

namespace neap::device {
namespace {

TEST(SimulatedSource, NamesEachDeviceOnce) {
  auto source = simulated_source(
      {{"n0",
        "d0",
        {{"", "A100-80G", MiB(81920), false}, {"mine", "A100-80G", MiB(81920), false}}}});
  const auto nodes = source->discover();
  ASSERT_TRUE(nodes.has_value());
  EXPECT_EQ(nodes->at(0).devices.at(0).uuid, "SIM-n0-0");
  EXPECT_EQ(nodes->at(0).devices.at(1).uuid, "mine");
}

TEST(SimulatedSource, NoNodesIsAnError) {
  const auto nodes = simulated_source({})->discover();
  ASSERT_FALSE(nodes.has_value());
  EXPECT_EQ(nodes.error().context, "devices.nodes");
}

// A1, G5: what is not there is said, never pretended.
TEST(NvmlSource, A1_SaysThatThereIsNoDriver) {
  const auto nodes = nvml_source("libneap-no-such-driver.so.1")->discover();
  ASSERT_FALSE(nodes.has_value());
  EXPECT_EQ(nodes.error().code, ErrorCode::unavailable);
  EXPECT_NE(nodes.error().message.find("no NVIDIA driver"), std::string::npos);
}

TEST(NvmlSource, A1_AnotherLibraryIsNotADriver) {
  const auto nodes = nvml_source("libc.so.6")->discover();
  ASSERT_FALSE(nodes.has_value());
  EXPECT_NE(nodes.error().message.find("is not the management library"), std::string::npos);
}

}  // namespace
}  // namespace neap::device
