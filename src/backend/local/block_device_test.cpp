#include "backend/local/block_device.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backend/local/testing/fake_cgroups.h"

namespace neap::local {
namespace {

TEST(DiskOf, MemoryHasNone) {
  const auto disk = disk_of("/proc/self/status");
  ASSERT_FALSE(disk);
  EXPECT_EQ(disk.error().message, "lies on proc, no disk whose reads and writes can be limited");
  EXPECT_EQ(disk.error().context, "/proc/self/status");
}

TEST(DiskOf, APathThatIsNotThereYetIsOnTheDiskOfItsFolder) {
  const auto above = disk_of("/");
  if (!above) GTEST_SKIP() << "the root is on no disk here: " << above.error().message;
  EXPECT_EQ(disk_of("/no-such/folder/file").value_or(""), *above);
  EXPECT_TRUE(std::filesystem::exists("/sys/dev/block/" + *above));
  EXPECT_FALSE(std::filesystem::exists("/sys/dev/block/" + *above + "/partition"));
}

TEST(ProcessorsNear, AreThoseOfTheDevicesNodes) {  // B5
  const testing::FakeCgroups tree;
  const HostTrees trees{tree.root() + "/gpus", tree.root() + "/pci"};
  tree.file("gpus/0000:3B:00.0/information", "Model: X\nGPU UUID: \t GPU-aa\n");
  tree.file("gpus/0000:AF:00.0/information", "Model: X\nGPU UUID: \t GPU-bb\n");
  tree.file("pci/0000:3b:00.0/local_cpulist", "0-15\n");
  tree.file("pci/0000:af:00.0/local_cpulist", "16-31\n");
  EXPECT_EQ(processors_near({"GPU-aa"}, trees).value(), "0-15");
  EXPECT_EQ(processors_near({"GPU-bb", "GPU-aa"}, trees).value(), "0-15,16-31");
  EXPECT_EQ(processors_near({"SIM-n-0"}, trees).value(), "");
  const auto unknown = processors_near({"GPU-cc"}, trees);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().context, "GPU-cc");
}

}  // namespace
}  // namespace neap::local
