// Layout files, devices and demands in words: what is understood, and what is said of mistakes
// (B1, D8).
#include "config/mig_layout.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace neap::config {
namespace {

std::string faults(std::string_view text) {
  Problems problems("mig.yaml");
  const auto layout = parse_mig_layout(text, problems);
  EXPECT_EQ(layout.has_value(), problems.empty());
  return problems.text();
}

TEST(MigLayoutFile, IsUnderstood) {
  Problems problems("mig.yaml");
  const auto layout = parse_mig_layout(
      "devices:\n"
      "  - {name: a, model: A100-80G, idle: [1g.10gb@6, 2g.20gb@4], busy: 3g.40gb@0}\n"
      "  - {name: b, model: h200-141g, count: 2}\n",
      problems);
  ASSERT_TRUE(layout) << problems.text();
  EXPECT_EQ(layout->names, (std::vector<std::string>{"a", "b-0", "b-1"}));
  ASSERT_EQ(layout->devices.size(), 3U);
  const mig::Device& a = layout->devices[0];
  ASSERT_EQ(a.instances.size(), 3U);
  EXPECT_EQ(a.instances[1].place, (mig::Place{3, 4}));
  EXPECT_EQ(a.instances[2].use, mig::Use::busy);
  EXPECT_EQ(layout->devices[2].model->name, "H200-141G");
}

TEST(MigLayoutFile, SaysWhatIsWrongAndWhatWasExpected) {
  EXPECT_EQ(faults("pool: 1\n"),
            "mig.yaml:1: devices: is missing; expected a list of devices\n"
            "mig.yaml:1: pool: is not a known field; expected one of devices");
  EXPECT_EQ(
      faults("devices: [{name: a}]"),
      "mig.yaml:1: devices[0].model: is missing; expected one of A100-40G, A100-80G, A30-24G, "
      "B200-180G, H100-80G, H100-94G, H100-96G, H200-141G");
  EXPECT_EQ(faults("devices: [{name: a, model: A30-24G, idle: [3g.40gb@0]}]"),
            "mig.yaml:1: devices[0].idle: \"3g.40gb\" is no profile of A30-24G; expected one of "
            "1g.6gb, 1g.6gb+me, 2g.12gb, 2g.12gb+me, 4g.24gb");
  EXPECT_EQ(faults("devices: [{name: a, model: A30-24G, idle: [2g.12gb@1]}]"),
            "mig.yaml:1: devices[0].idle: \"1\" is no start of 2g.12gb; expected one of 0, 2");
  EXPECT_EQ(faults("devices: [{name: a, model: A30-24G, idle: [2g.12gb]}]"),
            "mig.yaml:1: devices[0].idle: \"2g.12gb\" has no start; expected a profile and its "
            "start, as 3g.40gb@4");
  EXPECT_EQ(faults("devices: [{name: a, model: A30-24G, idle: [2g.12gb@0], busy: [1g.6gb@1]}]"),
            "mig.yaml:1: devices[0].busy: \"1g.6gb@1\" does not fit beside the instances before "
            "it");
  EXPECT_EQ(faults("devices:\n- {name: a, model: A30-24G}\n- {name: a, model: A30-24G}\n"),
            "mig.yaml:3: devices[1].name: \"a\" is the name of two devices");
  EXPECT_EQ(faults("devices:\n- {name: a, model: A30-24G, count: 10000}\n"
                   "- {name: b, model: A30-24G}\n"),
            "mig.yaml:3: devices[1].count: makes more than 10000 devices in all");
}

TEST(MigWords, Devices) {
  const auto layout = parse_mig_devices("2xA100-80G,h100-80g");
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->names, (std::vector<std::string>{"gpu-0", "gpu-1", "gpu-2"}));
  EXPECT_EQ(layout->devices[2].model->name, "H100-80G");
  for (const std::string_view wrong :
       {"", "0xA100-80G", "10001xA100-80G", "9999xA100-80G,2xA100-80G", "A100", "4x", "xA100-80G",
        "4xA100-80G,", "99999999999999999999xA100-80G", "2.5xA100-80G"}) {
    const auto parsed = parse_mig_devices(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_NE(parsed.error().find('"'), std::string::npos) << parsed.error();
  }
}

TEST(MigWords, Demand) {
  const auto wants = parse_mig_demand("3g.40gb=2,1g.10gb+me=1*50,24GiB/2g=3,512MiB=4*2");
  ASSERT_TRUE(wants) << wants.error();
  ASSERT_EQ(wants->size(), 4U);
  EXPECT_EQ((*wants)[1].profile, "1g.10gb+me");
  EXPECT_EQ((*wants)[1].weight, 50);
  EXPECT_EQ((*wants)[2].need.memory, MiB(24 * 1024));
  EXPECT_EQ((*wants)[2].need.compute_slices, 2);
  EXPECT_EQ((*wants)[3].need.compute_slices, 1);
  EXPECT_EQ(to_text((*wants)[2]), "24GiB/2g");
  EXPECT_EQ(to_text((*wants)[0]), "3g.40gb");
  for (const std::string_view wrong :
       {"", "3g.40gb", "3g.40gb=", "3g.40gb=0", "3g.40gb=-1", "3g.40gb=1000001", "5g.40gb=1",
        "3g.40gb=1*0", "3g.40gb=1*", "3g.40gb=1*1000001", "24GiB/2=1", "24GiB/0g=1", "24GiB/9g=1",
        "24GB=1", "=1", "3g.40gb=1,,1g.10gb=1", "3g.40gb=01", "24GiB/=1"}) {
    const auto parsed = parse_mig_demand(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_FALSE(parsed.error().empty());
  }
  std::string long_one = "3g.40gb=1";
  for (int i = 0; i < 32; ++i) long_one += ",3g.40gb=1";
  EXPECT_EQ(parse_mig_demand(long_one).error(), "holds more than 32 entries");
}

// The page describes every key of the file.
TEST(MigLayoutFile, EveryKeyIsDescribed) {
  std::string path = NEAP_SOURCE_DIR;
  path += "/docs/operators/mig.md";
  std::ifstream page(path);
  std::ostringstream text;
  text << page.rdbuf();
  for (const std::string& key : mig_layout_keys()) {
    EXPECT_NE(text.str().find("| `" + key + "` |"), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace neap::config
