#include "backend/local/host_limits.h"

#include <gtest/gtest.h>

namespace neap::local::host_limits_test {
namespace {

HostLimits limits_of(const std::string& text) {
  const auto json = parse_json(text);
  EXPECT_TRUE(json) << text;
  const auto read = read_host_limits(*json, "host.");
  EXPECT_TRUE(read) << read.error().message;
  return read.value_or(HostLimits());
}

HostPolicy policy_of(const std::string& text) {
  const auto read = parse_host_policy(text);
  EXPECT_TRUE(read) << read.error().message;
  return read.value_or(HostPolicy());
}

HostFacts facts() {
  return {[](const std::string& path) -> Result<std::string> {
            if (path.starts_with("/mem"))
              return fail(ErrorCode::unavailable, "lies on tmpfs", path);
            return std::string(path.starts_with("/nvme") ? "259:0" : "8:0");
          },
          []() -> Result<std::string> { return std::string("8-15"); }};
}

TEST(HostLimits, EveryKeyIsUnderstood) {  // B5
  const HostLimits all = limits_of(
      R"({"cpu_weight":200,"cpu_quota_milli":1500,"cpus":"0-3,8","memory_max_mib":64,
          "memory_high_mib":48,"processes":50,"io_weight":300,"network_bytes":1000,
          "io":[{"path":"/data","read_bytes":1,"write_bytes":2,"read_operations":3,
                 "write_operations":4}],"paths":["/data/set"]})");
  EXPECT_EQ(all.limits.cpu_weight, 200);
  EXPECT_EQ(all.limits.memory_max_bytes, 64 << 20);
  EXPECT_EQ(all.limits.memory_high_bytes, 48 << 20);
  EXPECT_EQ(all.limits.cpus, "0-3,8");
  ASSERT_EQ(all.io.size(), 1U);
  EXPECT_EQ(all.io[0].limit, (IoLimit{"", 1, 2, 3, 4}));
  EXPECT_EQ(all.paths, std::vector<std::string>{"/data/set"});
  EXPECT_TRUE(limits_of(R"({"cpus":"near"})").near);
}

TEST(HostLimits, FaultsNameTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"inference":{"cpu_weight":0}})",
       "host.inference.cpu_weight: expected an integer from 1 to 10000"},
      {R"({"training":{"cpus":"0-"}})",
       "host.training.cpus: expected a list such as 0-3,8, or near"},
      {R"({"training":{"io":[{"path":"data"}]}})",
       "host.training.io[0].path: expected an absolute path"},
      {R"({"storage":[{"path":"/d","class":"fast"}]})",
       "host.storage[0].class: expected throughput or low_latency"},
      {R"({"storage":[{"path":"/d","class":"throughput","for":"me"}]})",
       "host.storage[0].for: expected all, inference or training"},
      {R"({"interfaces":["eth0/../x"]})", "host.interfaces: expected names such as eth0"},
      {R"({"verify":1})", "host.verify: no such field"},
      {R"([])", "host: expected an object"},
  };
  for (const auto& [text, message] : cases) {
    const auto read = parse_host_policy(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().message, message);
  }
}

TEST(HostLimits, TheTaskGoesBeforeThePoolAndThePoolByKind) {  // B5
  const HostPolicy policy =
      policy_of(R"({"inference":{"cpu_weight":900,"processes":100},"training":{"cpu_weight":50}})");
  const auto inference = choose_limits({}, KindOfWork::inference, policy, facts());
  const auto training = choose_limits({}, KindOfWork::training, policy, facts());
  ASSERT_TRUE(inference && training);
  EXPECT_EQ(inference->limits.cpu_weight, 900);
  EXPECT_EQ(inference->limits.processes_max, 100);
  EXPECT_EQ(training->limits.cpu_weight, 50);
  EXPECT_FALSE(training->limits.processes_max);
  EXPECT_EQ(training->asked, CgroupLimits());
  const auto own =
      choose_limits(limits_of(R"({"cpu_weight":7})"), KindOfWork::inference, policy, facts());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->limits.cpu_weight, 7);
  EXPECT_EQ(own->limits.processes_max, 100);
  EXPECT_EQ(own->asked.cpu_weight, 7);
  EXPECT_FALSE(own->asked.processes_max);
}

TEST(HostLimits, PathsGetTheLimitsOfTheirClass) {  // B5: prefetch cannot starve model loading
  const HostPolicy policy = policy_of(
      R"({"storage":[
          {"path":"/data","class":"throughput","for":"training","read_bytes":100},
          {"path":"/data/hot","class":"low_latency","read_operations":50},
          {"path":"/nvme","class":"low_latency","for":"inference","read_operations":9}]})");
  const auto chosen = [&](const char* paths, KindOfWork kind) {
    const auto out = choose_limits(limits_of(paths), kind, policy, facts());
    EXPECT_TRUE(out);
    return out->limits.io;
  };
  using Io = std::vector<IoLimit>;
  EXPECT_EQ(chosen(R"({"paths":["/data/set"]})", KindOfWork::training),
            (Io{{"8:0", 100, {}, {}, {}}}));
  EXPECT_EQ(chosen(R"({"paths":["/data/set"]})", KindOfWork::inference), Io());
  EXPECT_EQ(chosen(R"({"paths":["/database"]})", KindOfWork::training), Io());
  EXPECT_EQ(chosen(R"({"paths":["/data/hot/m"]})", KindOfWork::training),
            (Io{{"8:0", {}, {}, 50, {}}}));
  // Two classes on one disk: both hold.
  EXPECT_EQ(chosen(R"({"paths":["/data/set","/data/hot"]})", KindOfWork::training),
            (Io{{"8:0", 100, {}, 50, {}}}));
  EXPECT_EQ(chosen(R"({"paths":["/data/set","/nvme/m"]})", KindOfWork::inference),
            (Io{{"259:0", {}, {}, 9, {}}}));
}

TEST(HostLimits, OnOneDiskTheLowerLimitHolds) {
  const HostPolicy policy =
      policy_of(R"({"training":{"io":[{"path":"/data","read_bytes":100,"write_bytes":10}]}})");
  const auto out = choose_limits(
      limits_of(R"({"io":[{"path":"/data/a","read_bytes":200,"write_operations":5}]})"),
      KindOfWork::training, policy, facts());
  ASSERT_TRUE(out);
  EXPECT_EQ(out->limits.io, (std::vector<IoLimit>{{"8:0", 100, 10, {}, 5}}));
  EXPECT_EQ(out->asked.io, (std::vector<IoLimit>{{"8:0", 200, {}, {}, 5}}));
}

TEST(HostLimits, WhatCannotBeHadIsRefusedNotLeftOut) {  // B1
  const auto memory = choose_limits(limits_of(R"({"io":[{"path":"/mem/x","read_bytes":1}]})"),
                                    KindOfWork::training, {}, facts());
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().message, "lies on tmpfs");
  HostFacts blind = facts();
  blind.processors_near = []() -> Result<std::string> {
    return fail(ErrorCode::unavailable, "not visible");
  };
  const HostLimits near = limits_of(R"({"cpus":"near"})");
  EXPECT_FALSE(choose_limits(near, KindOfWork::training, {}, blind));
  EXPECT_EQ(choose_limits(near, KindOfWork::training, {}, facts())->limits.cpus, "8-15");
  // What the pool gives all is given where it can be.
  HostPolicy policy;
  policy.training.near = true;
  EXPECT_EQ(choose_limits({}, KindOfWork::training, policy, blind)->limits.cpus, "");
  EXPECT_EQ(choose_limits({}, KindOfWork::training, policy, facts())->limits.cpus, "8-15");
}

TEST(HostLimits, EveryPrefixOfAPolicyIsRefused) {
  const std::string text =
      R"({"inference":{"cpu_weight":900},"storage":[{"path":"/d","class":"throughput"}]})";
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(parse_host_policy(text.substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace neap::local::host_limits_test
