#include "config/host.h"

#include <gtest/gtest.h>

#include "config/pool_file.h"
#include "config/task_file.h"

namespace neap::config {
namespace {

std::string task_text(const std::string& host) {
  return "task:\n  name: a\n  tier: batch\n  command: [x]\n  gpus: 1\n  host:\n" + host;
}

std::string problem_of_task(const std::string& host) {
  Problems problems("t.yaml");
  Submitter submitter;
  submitter.workdir = "/jobs";
  const auto file = parse_task_file(task_text(host), submitter, problems);
  EXPECT_EQ(file.has_value(), problems.empty());
  return problems.text();
}

std::string problem_of_pool(const std::string& host) {
  Problems problems("p.yaml");
  const auto file = parse_pool_file("pool: {total_gpus: 4}\nhost:\n" + host, problems);
  EXPECT_EQ(file.has_value(), problems.empty());
  return problems.text();
}

TEST(Host, ATaskSaysItsLimits) {  // B5
  Problems problems("t.yaml");
  Submitter submitter;
  submitter.workdir = "/jobs";
  const auto file = parse_task_file(task_text(R"(
    cpu_weight: 200
    cpu_quota: 1.5
    cpus: near
    memory_max: 8GiB
    memory_high: 6GiB
    processes: 64
    io_weight: 50
    network: 100MiB
    io:
      - {path: out, read: 20MiB, write_iops: 100}
    paths: [/data/set, models]
)"),
                                    submitter, problems);
  ASSERT_TRUE(file) << problems.text();
  EXPECT_NE(std::get<TaskSpec>(file->spec)
                .launch.find(
                    R"("host":{"cpu_weight":200,"cpu_quota_milli":1500,"cpus":"near",)"
                    R"("memory_max_mib":8192,"memory_high_mib":6144,"processes":64,)"
                    R"("io_weight":50,"network_bytes":104857600,)"
                    R"("io":[{"path":"/jobs/out","read_bytes":20971520,"write_operations":100}],)"
                    R"("paths":["/data/set","/jobs/models"]})"),
            std::string::npos)
      << std::get<TaskSpec>(file->spec).launch;
}

TEST(Host, APoolSaysWhatEachKindOfWorkGets) {  // B5
  Problems problems("p.yaml");
  const auto file = parse_pool_file(R"(
pool: {total_gpus: 4}
host:
  verify: false
  inference: {cpu_weight: 900}
  training: {processes: 100}
  storage:
    - {path: /data, class: throughput, for: training, read: 200MiB}
    - {path: /models, class: low_latency, read_iops: 5000}
  interfaces: [eth0]
)",
                                    problems);
  ASSERT_TRUE(file) << problems.text();
  EXPECT_FALSE(file->host.verify);
  EXPECT_EQ(file->host.policy,
            R"({"inference":{"cpu_weight":900},"training":{"processes":100},"storage":)"
            R"([{"path":"/data","class":"throughput","for":"training","read_bytes":209715200},)"
            R"({"path":"/models","class":"low_latency","read_operations":5000}],)"
            R"("interfaces":["eth0"]})");
}

TEST(Host, FaultsNameFileLineAndField) {
  const std::pair<const char*, const char*> tasks[] = {
      {"    cpu_weight: 0\n", "t.yaml:7: task.host.cpu_weight:"},
      {"    cpu_quota: 1milli\n", "t.yaml:7: task.host.cpu_quota: is less than"},
      {"    cpus: 0-\n", "t.yaml:7: task.host.cpus: is no list of processors"},
      {"    cpus: 3-1\n", "t.yaml:7: task.host.cpus: is no list of processors"},
      {"    cpus: 0-99999\n", "t.yaml:7: task.host.cpus: is no list of processors"},
      {"    cpus: 0,,1\n", "t.yaml:7: task.host.cpus: is no list of processors"},
      {"    memory_max: 1GiB\n    memory_high: 2GiB\n",
       "t.yaml:8: task.host.memory_high: is above memory_max"},
      {"    network: 1TiB\n", "t.yaml:7: task.host.network: is more a second"},
      {"    network: 100MB\n", "t.yaml:7: task.host.network:"},
      {"    io:\n      - {path: /d}\n", "t.yaml:8: task.host.io[0].read: is missing"},
      {"    io:\n      - {read: 1MiB}\n", "t.yaml:8: task.host.io[0].path:"},
      {"    verify: true\n", "t.yaml:7: task.host.verify:"},
      {"    cpu_quota: 1milli\n", "; expected 10milli or more"},
      {"    memory_max: 1GiB\n    memory_high: 2GiB\n", "; expected at most"},
      {"    paths: [\"/a\\nb\"]\n", "task.host.paths: holds \"/a?b\"; expected absolute"},
  };
  for (const auto& [text, problem] : tasks) {
    const std::string found = problem_of_task(text);
    EXPECT_NE(found.find(problem), std::string::npos) << text << found;
  }
  // A limit that is wrong is there: nothing more is said.
  const std::string wrong = problem_of_task("    io:\n      - {path: /d, write: fast}\n");
  EXPECT_NE(wrong.find("t.yaml:8: task.host.io[0].write:"), std::string::npos) << wrong;
  EXPECT_EQ(wrong.find("missing"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("expected"), std::string::npos) << wrong;
  const std::string storage =
      problem_of_pool("  storage:\n    - {path: /d, class: low_latency, write_iops: 0}\n");
  EXPECT_NE(storage.find("p.yaml:4: host.storage[0].write_iops:"), std::string::npos) << storage;
  EXPECT_EQ(storage.find("missing"), std::string::npos) << storage;
  const std::pair<const char*, const char*> pools[] = {
      {"  storage:\n    - {path: /d, class: fast}\n", "p.yaml:4: host.storage[0].class:"},
      {"  storage:\n    - {path: d, class: throughput, read: 1MiB}\n",
       "p.yaml:4: host.storage[0].path: is a relative path"},
      {"  storage:\n    - {path: /d, class: throughput, read_iops: 5}\n",
       "p.yaml:4: host.storage[0].read:"},
      {"  storage:\n    - {path: /d, class: low_latency, read: 1MiB}\n",
       "p.yaml:4: host.storage[0].read_iops:"},
      {"  interfaces: [\"a/b\"]\n", "p.yaml:3: host.interfaces:"},
      {"  inference: {paths: [/d]}\n", "p.yaml:3: host.inference.paths:"},
  };
  for (const auto& [text, problem] : pools) {
    const std::string found = problem_of_pool(text);
    EXPECT_NE(found.find(problem), std::string::npos) << text << found;
  }
}

}  // namespace
}  // namespace neap::config
