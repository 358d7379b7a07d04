#include "config/task_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "config/pipeline_file.h"
#include "config/pool_file.h"
#include "core/rules/profile.h"

namespace neap::config::task_file_test {
namespace {

const Submitter submitter{{1000, 1000, "ada"}, "/jobs/ada"};

TaskFile accepted(std::string_view text) {
  Problems problems("t.yaml");
  auto file = parse_task_file(text, submitter, problems);
  EXPECT_TRUE(file) << problems.text();
  return file.value_or(TaskFile{});
}

std::string refused(std::string_view text) {
  Problems problems("t.yaml");
  EXPECT_FALSE(parse_task_file(text, submitter, problems)) << text;
  return problems.text();
}

PoolSpec field_pool() {
  PoolSpec pool;
  pool.total_gpus = 64;
  pool.tiers = {{"infer_core", 100, Purpose::inference},
                {"notebooks", 90, Purpose::interactive},
                {"train_deadline_near", 80, Purpose::batch},
                {"train_normal", 40, Purpose::batch}};
  return pool;
}

std::string misfit(std::string_view text) {
  TaskFile file = accepted(text);
  const auto fitted = fit_to_pool(field_pool(), file);
  if (fitted) return "";
  const std::string& field = fitted.error().context;
  return std::to_string(file.line_of(field)) + ": " + file.path_of(field) + ": " +
         fitted.error().message;
}

// S3: a long job under the contract.
TEST(TaskFile, ReadsATask) {
  const TaskFile file = accepted(R"(task:
  name: llm-7b
  team: research
  tier: train_normal
  kind: training
  command: [python3, train.py, "--lr=3e-4"]
  workdir: job
  env: {EPOCHS: 3, EMPTY: }
  gpus: 8
  device_models: [H100-80G, A100-80G, A100-80G]
  baseline: torch-2
  trust_domain: research
  delay_tolerance: 2h
  work: 20h
  deadline: 2031-05-01T06:00:00Z
  checkpoint:
    contract: [sdk, watch]
    watch: out/checkpoint-*
    interval: 10min
    restore_time: 90s
    save_time: 20s
    on_demand: true
  cpu: 16
  host_memory: 64GiB
  protected_windows:
    - {from: "22:00", to: "06:00"}
)");
  EXPECT_FALSE(file.is_service());
  const auto& task = std::get<TaskSpec>(file.spec);
  EXPECT_EQ(task.name, "llm-7b");
  EXPECT_EQ(task.team, "research");
  EXPECT_EQ(task.request.count, 8);
  EXPECT_EQ(task.request.share, whole_device);
  EXPECT_EQ(task.request.memory, MiB(0));
  EXPECT_EQ(task.request.models, (std::vector<std::string>{"A100-80G", "H100-80G"}));
  EXPECT_TRUE(task.predictable);
  EXPECT_EQ(task.work, hours(20));
  EXPECT_EQ(task.deadline, Time(1935381600000000));
  EXPECT_TRUE(task.contract.sdk);
  EXPECT_TRUE(task.contract.watch);
  EXPECT_FALSE(task.contract.signals);
  EXPECT_TRUE(task.contract.on_demand);
  EXPECT_EQ(task.contract.interval, minutes(10));
  EXPECT_EQ(task.contract.restore, seconds(90));
  ASSERT_EQ(task.windows.size(), 1u);
  EXPECT_EQ(task.windows[0].from, hours(22));
  EXPECT_EQ(task.owner.user, "ada");
  EXPECT_EQ(task.launch,
            R"({"command":["python3","train.py","--lr=3e-4"],"workdir":"/jobs/ada/job",)"
            R"("env":{"EPOCHS":"3","EMPTY":""},"cpu_milli":16000,"host_memory_mib":65536,)"
            R"("watch":"out/checkpoint-*"})");
  EXPECT_EQ(file.line_of("gpus"), 9);
  EXPECT_EQ(file.line_of("checkpoint.interval"), 19);
  EXPECT_EQ(file.line_of("checkpoint.nothing"), 16);
}

// S2: 16 GiB and 60 % of a device.
TEST(TaskFile, S2_ReadsAPartOfADevice) {
  const auto task = std::get<TaskSpec>(
      accepted("task: {name: a, command: [x], gpu: {memory: 16GiB, compute: 60%}}\n").spec);
  EXPECT_EQ(task.request.count, 1);
  EXPECT_EQ(task.request.share, MilliGpu(600));
  EXPECT_EQ(task.request.memory, MiB(16384));
  EXPECT_TRUE(task.predictable);
  // A4: a part without a declared memory is not predictable; admission names the condition.
  EXPECT_FALSE(
      std::get<TaskSpec>(accepted("task: {name: a, command: [x], gpu: {compute: 0.5}}\n").spec)
          .predictable);
}

TEST(TaskFile, ReadsAService) {
  const TaskFile file = accepted(R"(service:
  name: chat
  command: [python3, serve.py, "--port={port}"]
  gpu: {memory: 8GiB, compute: 30%}
  replicas: {min: 1, max: 4}
  port: 8100
  health: {path: /ready, interval: 500ms, timeout: 2s, start_timeout: 3min}
  concurrency: 8
  slo: {ttft: 500ms}
  scale: {up_above: 60%, up_for: 30s}
  drain_timeout: 20s
  model_dir: models/m
  engine: llama_cpp
)");
  ASSERT_TRUE(file.is_service());
  const auto& service = std::get<ServiceSpec>(file.spec);
  EXPECT_EQ(service.min_replicas, 1);
  EXPECT_EQ(service.max_replicas, 4);
  EXPECT_EQ(service.concurrency, 8);
  EXPECT_EQ(service.slo_first_byte, milliseconds(500));
  ASSERT_TRUE(service.scale);
  EXPECT_EQ(service.scale->up_above, Ppm(600'000));
  EXPECT_EQ(service.scale->down_for, minutes(5));
  EXPECT_EQ(service.start_timeout, minutes(3));
  EXPECT_EQ(file.purpose, Purpose::inference);
  EXPECT_NE(service.launch.find(R"("model_dir":"/jobs/ada/models/m")"), std::string::npos);
  EXPECT_NE(service.launch.find(R"("engine":"llama_cpp")"), std::string::npos);
  EXPECT_NE(service.launch.find(R"("health":{"path":"/ready","interval_us":500000)"),
            std::string::npos);
}

TEST(TaskFile, G5_RefusesEachBadValueWithItsPlace) {
  struct Row {
    const char* text;  // behind "task: {name: a, command: [x], "
    const char* expected;
  };
  const Row rows[] = {
      {"gpus: 1, gpuss: 2}", "t.yaml:1: task.gpuss: is not a known field; did you mean \"gpus\"?"},
      {"gpus: 0.5}", "task.gpus: \"0.5\" is not a whole number"},
      {"gpus: 0}", "task.gpus: 0 is out of range"},
      {"gpu: {memory: 16GB}}", "task.gpu.memory: \"16GB\" has the unit \"GB\"; expected memory"},
      {"gpu: {memory: 16}}", "has no unit"},
      {"gpu: {compute: -10%}}", "task.gpu.compute: \"-10%\" is negative"},
      {"gpu: {compute: 160%}}", "task.gpu.compute: \"160%\" is more than one whole device"},
      {"gpus: 1, gpu: {count: 2}}", "task.gpu: stands beside `gpus`"},
      {"cpu: 1}", "task.gpus: is missing"},
      {"gpus: 1, checkpoint: {interval: 10}}", "task.checkpoint.interval: \"10\" has no unit"},
      {"gpus: 1, checkpoint: {interval: 10min}}", "task.checkpoint.contract: is missing"},
      {"gpus: 1, checkpoint: {contract: magic}}", "expected sdk, signals or watch"},
      {"gpus: 1, checkpoint: {contract: watch}}", "task.checkpoint.watch: is missing"},
      {"gpus: 1, checkpoint: {contract: sdk, watch: x}}", "add it to checkpoint.contract"},
      {"gpus: 1, checkpoint: {contract: watch, watch: /a/*}}",
       "task.checkpoint.watch: \"/a/*\" is absolute"},
      {"gpus: 1, checkpoint: {contract: watch, watch: a/../../*}}", "leads out of"},
      {"gpus: 1, checkpoint: {contract: watch, watch: ./}}", "names no files"},
      {"gpus: 1, checkpoint: {contract: watch, watch: a/b/c/d/e/f/g/h/i}}", "more than 8 levels"},
      {"gpus: 1, env: {NEAP_TASK: x}}", "is set by the pool"},
      {"gpus: 1, env: {1A: x}}", "is no name of a variable"},
      {"gpus: 1, env: [a]}", "expected lines of `NAME: value`"},
      {"gpus: 1, protected_windows: [{from: '25:00', to: '01:00'}]}", "is not a time of day"},
      {"gpus: 1, protected_windows: [{from: '01:00'}]}", "to: is missing"},
      {"gpus: 1, interruptible: maybe}", "is neither true nor false"},
      {"gpus: 1, kind: batch}", "expected training or interactive"},
      {"gpus: 1, name: b}", "t.yaml:1: task.name: given twice"},
      {"gpus: 1", "t.yaml"},
  };
  for (const Row& row : rows) {
    const std::string text = std::string("task: {name: a, command: [x], ") + row.text + "\n";
    EXPECT_NE(refused(text).find(row.expected), std::string::npos)
        << text << "gave: " << refused(text);
  }
}

TEST(TaskFile, G5_RefusesWrongDocuments) {
  EXPECT_NE(refused("{}\n").find("task: is missing"), std::string::npos);
  EXPECT_NE(refused("task: {name: a, command: [x], gpus: 1}\nservice: {}\n")
                .find("service: stands beside `task:`"),
            std::string::npos);
  // Two tasks of one name in one file: YAML would keep one of them.
  EXPECT_NE(refused("task: {name: a}\ntask: {name: a}\n").find("t.yaml:2: task: given twice"),
            std::string::npos);
  EXPECT_NE(refused("task: {name: Big Job, command: [x], gpus: 1}\n").find("is not a name"),
            std::string::npos);
  EXPECT_NE(refused("task: {name: a, gpus: 1, command: python3 train.py}\n")
                .find("is one text with spaces"),
            std::string::npos);
  EXPECT_NE(refused("task: {name: '15', command: [x], gpus: 1}\n").find("is a number, and so are"),
            std::string::npos);
  EXPECT_NE(refused("service: {name: a, command: [x], gpus: 1, health: {path: '/a b'}}\n")
                .find("service.health.path: holds blanks"),
            std::string::npos);
  EXPECT_NE(refused("service: {name: a, command: [x], gpus: 1, replicas: {min: 3, max: 2}}\n")
                .find("service.replicas.max: is below replicas.min (3)"),
            std::string::npos);
}

TEST(TaskFile, D6_ReadsARangeOfDevices) {
  const std::string task = "task:\n  name: a\n  command: [x]\n";
  EXPECT_EQ(accepted(task + "  gpus: 8\n  least_gpus: 2\n").request().least, 2);
  EXPECT_EQ(accepted(task + "  gpus: 8\n").request().least, 0);
  EXPECT_EQ(refused(task + "  gpus: 2\n  least_gpus: 3\n"),
            "t.yaml:5: task.least_gpus: 3 is more than the 2 devices of `gpus`; expected at most "
            "that");
  EXPECT_EQ(refused(task + "  gpu: {memory: 8GiB, compute: 50%}\n  least_gpus: 1\n"),
            "t.yaml:5: task.least_gpus: stands beside a part of a device; a range is of whole "
            "devices");
}

TEST(TaskFile, G5_MustFitThePool) {
  EXPECT_EQ(misfit("task: {name: a, command: [x], gpus: 64, tier: train_normal}\n"), "");
  EXPECT_EQ(misfit("task:\n  name: a\n  command: [x]\n  gpus: 65\n"),
            "4: task.gpus: asks for 65 devices; the pool has 64");
  EXPECT_EQ(misfit("task: {name: a, command: [x], gpu: {count: 65}}\n"),
            "1: task.gpu.count: asks for 65 devices; the pool has 64");
  EXPECT_EQ(misfit("task: {name: a, command: [x], gpus: 1, tier: normal}\n"),
            "1: task.tier: \"normal\" is no tier of this pool; expected one of "
            "infer_core, notebooks, train_deadline_near, train_normal");
  EXPECT_EQ(misfit("task: {name: a, command: [x], gpus: 1, tier: infer_core}\n"),
            "1: task.tier: \"infer_core\" is a tier for inference; a task belongs to an "
            "interactive or batch one");
  EXPECT_EQ(misfit("task: {name: a, kind: interactive, command: [x], gpus: 1, tier: "
                   "train_normal}\n"),
            "1: task.tier: \"train_normal\" is a tier for batch work; expected one for "
            "interactive");
}

TEST(TaskFile, TakesTheLightestTierOfItsKind) {
  const auto tier_of = [](std::string_view text) {
    TaskFile file = accepted(text);
    EXPECT_TRUE(fit_to_pool(field_pool(), file));
    return std::visit([](const auto& one) { return one.tier; }, file.spec);
  };
  EXPECT_EQ(tier_of("task: {name: a, command: [x], gpus: 1}\n"), "train_normal");
  EXPECT_EQ(tier_of("task: {name: a, command: [x], gpus: 1, kind: interactive}\n"), "notebooks");
  EXPECT_EQ(tier_of("service: {name: a, command: [x], gpus: 1}\n"), "infer_core");
}

TEST(TaskFile, TakesThePoolsCheckpointInterval) {
  const auto interval_with = [](std::string_view checkpoint) {
    TaskFile file = accepted("task: {name: a, command: [x], gpus: 1, checkpoint: {" +
                             std::string(checkpoint) + "}}\n");
    PoolSpec pool = field_pool();
    pool.preempt.checkpoint_interval = minutes(7);
    EXPECT_TRUE(fit_to_pool(pool, file));
    return std::get<TaskSpec>(file.spec).contract.interval;
  };
  EXPECT_EQ(interval_with("contract: sdk"), minutes(7));
  EXPECT_EQ(interval_with("contract: sdk, interval: 3min"), minutes(3));
  EXPECT_EQ(interval_with("contract: signals"), Micros(0));
}

// A3: the type, what its memory is for, and what is left for the profile to give.
TEST(TaskFile, A3_ProfileMemoryAndAuto) {
  const TaskFile named = accepted(
      "task: {name: train-7, command: [x], gpus: 2, memory: {weights: 60GiB, framework: 2GiB}}\n");
  const auto& task = std::get<TaskSpec>(named.spec);
  EXPECT_EQ(task.profile, "train");
  EXPECT_EQ(task.split.sum(), MiB(62 * 1024));
  EXPECT_EQ(task.request.memory, MiB(31 * 1024)) << "of each device";
  EXPECT_EQ(named.open_fields(), learned_bit(Learned::work) | learned_bit(Learned::save) |
                                     learned_bit(Learned::stall) | learned_bit(Learned::restore));
  const TaskFile stated = accepted(
      "task: {name: a, profile: bert, command: [x], gpus: 1, work: 2h,\n"
      "       checkpoint: {contract: sdk, save_time: 5s, stall_time: 1s, restore_time: 9s}}\n");
  EXPECT_EQ(std::get<TaskSpec>(stated.spec).profile, "bert");
  EXPECT_EQ(stated.open_fields(), learned_bit(Learned::memory));
  const TaskFile sized =
      accepted("service: {name: a, command: [x], gpus: auto, memory: {weights: 140GiB}}\n");
  EXPECT_TRUE(sized.auto_gpus);
  EXPECT_EQ(sized.open_fields() & learned_bit(Learned::count), learned_bit(Learned::count));
  EXPECT_NE(refused("task: {name: a, command: [x], gpus: some}\n").find("task.gpus"),
            std::string::npos);
  EXPECT_NE(refused("task: {name: a, command: [x], gpus: 1, memory: {model: 1GiB}}\n")
                .find("task.memory.model"),
            std::string::npos);
}

// The reference page lists every accepted key, and no other.
TEST(ConfigurationPage, ListsEveryKey) {
  std::ifstream page(std::string(NEAP_SOURCE_DIR) + "/docs/operators/configuration.md");
  std::set<std::string> listed;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    listed.insert(line.substr(3, line.find('`', 3) - 3));
  }
  std::set<std::string> accepted = pool_file_keys();
  accepted.merge(task_file_keys());
  accepted.merge(pipeline_file_keys());
  for (const std::string& key : accepted) EXPECT_TRUE(listed.contains(key)) << key;
  for (const std::string& key : listed) EXPECT_TRUE(accepted.contains(key)) << key;
  EXPECT_GT(accepted.size(), 80u);
}

}  // namespace
}  // namespace neap::config::task_file_test
