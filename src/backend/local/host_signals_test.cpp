#include "backend/local/host_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "backend/local/rung_limits.h"

namespace neap::local::host_signals_test {
namespace {

// A machine and one task in files.
struct Tree {
  std::filesystem::path root;
  Tree() {
    std::string name = ::testing::TempDir() + "/host-signals-XXXXXX";
    root = ::mkdtemp(name.data());
    put("sys/block/sda/size", "1");
    put("sys/fs/cgroup/cgroup.controllers", "cpu memory io\n");
    put("sys/fs/cgroup/neap/p/7/cgroup.procs", "42\n");
  }
  ~Tree() { std::filesystem::remove_all(root); }

  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  [[nodiscard]] HostReading read(Time now) const {
    const Cgroup group =
        Cgroup::existing(detect_cgroups((root / "sys/fs/cgroup").string()), "neap/p/7");
    return read_host(now, {{AllocationId(7), group}}, (root / "proc").string(),
                     (root / "sys").string());
  }

  void before() const {
    put("proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1\ncpu1 1\n");
    put("proc/diskstats", "   8 0 sda 10 0 80 100 10 0 80 100 0 500 200\n");
    put("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable:  400 kB\n");
    put("proc/vmstat", "pswpin 5\npswpout 5\n");
    put("proc/42/stat", "42 (a b) c) S 1 1 1 0 -1 0 0 0 10 0 0 0\n");
    put("proc/42/statm", "100 50 1 1 0 1 0\n");
    put("proc/42/io", "rchar: 1\nread_bytes: 1000\nwrite_bytes: 1000\n");
    put("proc/42/task/42/schedstat", "1000000000 1000000000 5\n");
    put("sys/fs/cgroup/neap/p/7/cpu.stat", "usage_usec 1\nnr_periods 10\nnr_throttled 1\n");
    put("sys/fs/cgroup/neap/p/7/memory.events", "low 0\nmax 3\n");
  }
  void after() const {
    put("proc/stat", "cpu  900 0 100 1000 0 0 0 0 0 0\ncpu0 1\ncpu1 1\n");
    put("proc/diskstats", "   8 0 sda 110 0 80 5100 10 0 80 100 0 9500 200\n");
    put("proc/vmstat", "pswpin 5\npswpout 105\n");
    put("proc/42/stat", "42 (a b) c) S 1 1 1 0 -1 0 0 0 510 0 0 0\n");
    put("proc/42/io", "rchar: 1\nread_bytes: 20001000\nwrite_bytes: 1000\n");
    put("proc/42/task/42/schedstat", "2000000000 4000000000 5\n");
    put("sys/fs/cgroup/neap/p/7/cpu.stat", "usage_usec 1\nnr_periods 110\nnr_throttled 51\n");
    put("sys/fs/cgroup/neap/p/7/memory.events", "low 0\nmax 5\n");
  }
};

TEST(HostSignals, F2_CountersBecomeSignals) {
  const Tree tree;
  tree.before();
  const HostReading before = tree.read(Time(0));
  tree.after();
  const HostReading after = tree.read(Time(seconds(10).value));
  const measure::Machine machine = machine_between(before, after);
  EXPECT_EQ(machine.processors_milli, 2'000);
  EXPECT_EQ(machine.cpu_busy, Ppm(800'000));
  EXPECT_EQ(machine.disk_busy, Ppm(900'000));
  EXPECT_EQ(machine.disk_await, milliseconds(50));
  EXPECT_EQ(machine.memory_available, Ppm(400'000));
  EXPECT_EQ(machine.swapped_pages_per_s, 10);
  const measure::Use use = use_between(before, after, AllocationId(7));
  EXPECT_EQ(use.cpu_milli, 100);
  EXPECT_EQ(use.cpu_wait, Ppm(750'000));
  EXPECT_EQ(use.major_faults_milli_per_s, 50'000);
  EXPECT_EQ(use.io_bytes_per_s, 2'000'000);
  EXPECT_EQ(use.cpu_throttled, Ppm(500'000));
  EXPECT_EQ(use.memory_limit_hits, 2);
}

TEST(HostSignals, F2_WhatCannotBeReadIsUnknown) {
  const Tree tree;
  tree.before();
  const HostReading before = tree.read(Time(0));
  tree.after();
  std::filesystem::remove(tree.root / "proc/42/io");
  const HostReading after = tree.read(Time(seconds(10).value));
  const measure::Machine machine = machine_between(before, after);
  EXPECT_FALSE(machine.cpu_pressure);
  EXPECT_FALSE(machine.io_pressure);
  EXPECT_FALSE(machine.network_use);
  EXPECT_FALSE(machine.device_compute);
  const measure::Use use = use_between(before, after, AllocationId(7));
  EXPECT_FALSE(use.io_bytes_per_s);
  EXPECT_FALSE(use.io_wait) << "delay accounting is off";
  EXPECT_FALSE(use_between(before, after, AllocationId(8)).cpu_milli);
}

TEST(HostSignals, F2_ThisMachine) {
  const HostReading before = read_host(Time(0), {});
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  std::uint64_t work = 0;
  while (std::chrono::steady_clock::now() < end) ++work;
  const HostReading after = read_host(Time(milliseconds(300).value), {});
  const measure::Machine machine = machine_between(before, after);
  ASSERT_TRUE(machine.cpu_busy);
  EXPECT_GT(machine.cpu_busy->value, 0);
  ASSERT_TRUE(machine.processors_milli);
  EXPECT_GE(*machine.processors_milli, 1'000);
  EXPECT_GT(work, 0u);
}

RungFacts facts(measure::Resource resource, measure::Rung rung) {
  return {resource, rung, 4, 700, 2, "8:0", 100'000'000, 125'000'000, 1'000'000'000};
}

TEST(RungLimits, B7_Processors) {
  using measure::Resource;
  using measure::Rung;
  CgroupLimits usual;
  usual.cpu_weight = 100;
  EXPECT_EQ(neighbour_limits(facts(Resource::cpu, Rung::flow), usual)->cpu_weight, 10);
  const auto quota = neighbour_limits(facts(Resource::cpu, Rung::quota), usual);
  EXPECT_EQ(quota->cpu_quota_milli, (4'000 - 875) / 2);
  const auto apart = neighbour_limits(facts(Resource::cpu, Rung::partition), usual);
  EXPECT_EQ(apart->cpus, "0-2");
  EXPECT_FALSE(apart->cpu_quota_milli);
  EXPECT_EQ(service_limits(facts(Resource::cpu, Rung::partition), usual)->cpus, "3");
  EXPECT_EQ(service_limits(facts(Resource::cpu, Rung::none), usual), usual);
  EXPECT_EQ(neighbour_limits(facts(Resource::cpu, Rung::none), usual), usual);
  RungFacts one = facts(Resource::cpu, Rung::partition);
  one.processors = 1;
  EXPECT_EQ(neighbour_limits(one, usual).error().code, ErrorCode::unavailable);
}

TEST(RungLimits, B7_MemoryStorageNetworkDevices) {
  using measure::Resource;
  using measure::Rung;
  const auto memory = neighbour_limits(facts(Resource::memory, Rung::quota), {});
  EXPECT_GT(*memory->memory_max_bytes, 1'000'000'000);
  EXPECT_FALSE(neighbour_limits(facts(Resource::memory, Rung::dedicate), {}));
  const auto storage = neighbour_limits(facts(Resource::storage, Rung::flow), {});
  ASSERT_EQ(storage->io.size(), 1u);
  EXPECT_EQ(storage->io[0].device, "8:0");
  EXPECT_EQ(storage->io[0].write_bytes, 50'000'000);
  EXPECT_EQ(neighbour_limits(facts(Resource::storage, Rung::quota), {})->io[0].read_bytes,
            10'000'000);
  CgroupLimits tight;  // what it had is never loosened
  tight.io = {{"8:0", 1'000, 1'000, {}, {}}};
  EXPECT_EQ(neighbour_limits(facts(Resource::storage, Rung::flow), tight)->io[0].read_bytes, 1'000);
  EXPECT_EQ(neighbour_limits(facts(Resource::network, Rung::quota), {})->network_bytes, 12'500'000);
  EXPECT_FALSE(neighbour_limits(facts(Resource::device_compute, Rung::partition), {}));
}

}  // namespace
}  // namespace neap::local::host_signals_test
