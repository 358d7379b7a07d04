#include "config/pool_file.h"

#include <gtest/gtest.h>

#include <string>

namespace neap::config::pool_file_test {
namespace {

constexpr std::string_view field_example = R"(pool:
  total_gpus: 64
  inference_guard_min: 16
  elastic_buffer: 4
preempt:
  enabled: true
  only_at_checkpoint: true
  checkpoint_interval_min: 10
priority_tiers:
  - {name: infer_core, weight: 100}
  - {name: train_deadline_near, weight: 80}
  - {name: train_normal, weight: 40}
)";

PoolFile accepted(std::string_view text) {
  Problems problems("pool.yaml");
  auto file = parse_pool_file(text, problems);
  EXPECT_TRUE(file) << problems.text();
  return file.value_or(PoolFile{});
}

std::string refused(std::string_view text) {
  Problems problems("pool.yaml");
  EXPECT_FALSE(parse_pool_file(text, problems));
  return problems.text();
}

// D1, S1: the file that people have is valid as it stands.
TEST(PoolFile, S1_FieldExampleIsValidAsItStands) {
  const PoolFile file = accepted(field_example);
  EXPECT_EQ(file.spec.total_gpus, 64);
  EXPECT_EQ(file.spec.inference_guard_min, 16);
  EXPECT_EQ(file.spec.elastic_buffer, 4);
  EXPECT_TRUE(file.spec.preempt.enabled);
  EXPECT_TRUE(file.spec.preempt.only_at_checkpoint);
  EXPECT_FALSE(file.spec.preempt.break_glass);
  EXPECT_EQ(file.spec.preempt.checkpoint_interval, minutes(10));
  ASSERT_EQ(file.spec.tiers.size(), 3u);
  EXPECT_EQ(file.spec.tiers[0].name, "infer_core");
  EXPECT_EQ(file.spec.tiers[0].weight, 100);
  EXPECT_EQ(file.spec.tiers[0].purpose, Purpose::inference);
  EXPECT_EQ(file.spec.tiers[1].name, "train_deadline_near");
  EXPECT_EQ(file.spec.tiers[1].purpose, Purpose::batch);
  EXPECT_EQ(file.spec.tiers[2].purpose, Purpose::batch);
  EXPECT_EQ(file.source, DeviceSource::automatic);
}

// S1: a guard is refused only against the file's own total_gpus.
TEST(PoolFile, S1_GuardIsComparedWithTheFilesOwnTotal) {
  EXPECT_EQ(refused("pool: {total_gpus: 8, inference_guard_min: 9}\n"),
            "pool.yaml:1: pool.inference_guard_min: 9 is more than total_gpus (8); expected at "
            "most that");
  EXPECT_EQ(refused("pool:\n  total_gpus: 8\n  inference_guard_min: 6\n  elastic_buffer: 3\n"),
            "pool.yaml:4: pool.elastic_buffer: guard and buffer together are 9, more than "
            "total_gpus (8)");
  EXPECT_EQ(accepted("pool: {inference_guard_min: 900}\n").spec.inference_guard_min, 900);
  EXPECT_EQ(accepted("pool: {total_gpus: 8, inference_guard_min: 8}\n").spec.total_gpus, 8);
}

TEST(PoolFile, ReadsEverySection) {
  const PoolFile file = accepted(R"(
pool: {name: lab, total_gpus: 6, share_min_memory: 24GiB, device_reserve: 512MiB, max_restarts: 1}
preempt: {break_glass: true, grace: 20s, term_grace: 5s, guard_reclaim: 15s, fixed_cost: 30min,
          protected_for: 10min, budget_per_day: 2, rounds: 3, missed_checkpoints: 5}
priority_tiers:
  - {name: slow, weight: 1}
  - {name: notebooks, weight: 50, kind: interactive}
  - {name: fast, weight: 50, kind: inference}
baseline: torch-2
scale: {up_above: 80%, up_for: 1min, down_below: 10%, down_for: 2min, stale_after: 5s}
prefilter: {out_above: 50%, back_below: 0.4, back_after: 1min}
placement: {reserve_after: 20min, reservations: 2}
defragment: {enabled: false, every: 10min, horizon: 2h, quiet_below: 5%, cooldown: 20}
devices:
  source: simulated
  nodes:
    - {name: n1, fault_domain: rack-a, count: 4}
    - {name: n1, model: L4-24G, partition: dedicated}
    - {name: n2, model: odd, memory: 10GiB}
api: {socket: /run/neap.sock, group: gpu, tcp: {listen: "127.0.0.1:9000", token_file: /t}}
journal: {retention: 30d}
state_dir: /var/lib/neap
)");
  EXPECT_EQ(file.spec.name, "lab");
  EXPECT_EQ(file.spec.share_min_memory, MiB(24 * 1024));
  EXPECT_EQ(file.spec.preempt.fixed_cost, minutes(30).value * 1000);
  EXPECT_EQ(file.spec.preempt.budget_per_day, 2);
  EXPECT_EQ(file.spec.tiers[0].name, "fast");  // equal weights go by name
  EXPECT_EQ(file.spec.tiers[1].purpose, Purpose::interactive);
  EXPECT_EQ(file.spec.scale.up_above, Ppm(800'000));
  EXPECT_EQ(file.spec.prefilter.back_below, Ppm(400'000));
  EXPECT_EQ(file.spec.reserve.after, minutes(20));
  EXPECT_EQ(file.spec.reserve.most, 2);
  EXPECT_FALSE(file.spec.defragment.enabled);
  EXPECT_EQ(file.spec.defragment.every, minutes(10));
  EXPECT_EQ(file.spec.defragment.horizon, hours(2));
  EXPECT_EQ(file.spec.defragment.quiet_below, Ppm(50'000));
  EXPECT_EQ(file.spec.defragment.cooldown, 20);
  ASSERT_EQ(file.nodes.size(), 2u);
  EXPECT_EQ(file.nodes[0].fault_domain, "rack-a");
  ASSERT_EQ(file.nodes[0].devices.size(), 5u);
  EXPECT_EQ(file.nodes[0].devices[3].memory, MiB(80 * 1024));
  EXPECT_EQ(file.nodes[0].devices[4].memory, MiB(24 * 1024));
  EXPECT_TRUE(file.nodes[0].devices[4].dedicated);
  EXPECT_EQ(file.nodes[0].devices[4].uuid, "SIM-n1-4");
  EXPECT_EQ(file.nodes[1].fault_domain, "n2");
  EXPECT_EQ(file.socket, "/run/neap.sock");
  ASSERT_TRUE(file.tcp);
  EXPECT_EQ(file.tcp->listen, "127.0.0.1:9000");
  EXPECT_EQ(file.journal_retention, hours(24 * 30));
  EXPECT_EQ(file.spec.baseline, "torch-2");
}

// G5: all faults of a file, each with its line and what was expected.
TEST(PoolFile, G5_ReportsEveryFault) {
  EXPECT_EQ(refused(R"(pool:
  total_gpu: 64
  elastic_buffer: -4
preempt:
  enabled: yes
  checkpoint_interval_min: 010
  grace: 10
priority_tiers:
  - {name: a, weight: 1}
  - {name: a, weight: 2}
  - {weight: 3}
)"),
            R"(pool.yaml:3: pool.elastic_buffer: "-4" is negative; expected a whole number
pool.yaml:2: pool.total_gpu: is not a known field; did you mean "total_gpus"?
pool.yaml:5: preempt.enabled: "yes" is neither true nor false
pool.yaml:6: preempt.checkpoint_interval_min: "010" has a leading zero; write it without
pool.yaml:7: preempt.grace: "10" has no unit; expected a length of time such as )"
            R"(90s, 10min or 20h (units ms, s, min, h, d)
pool.yaml:10: priority_tiers[1].name: "a" is the name of another tier, on line 9
pool.yaml:11: priority_tiers[2].name: is missing)");
}

TEST(PoolFile, G5_RefusesEachBadValueWithItsPlace) {
  struct Row {
    const char* text;
    const char* expected;
  };
  const Row rows[] = {
      {"- a\n", "pool.yaml:1: a list is not accepted here"},
      {"just text\n", "pool.yaml:1: a single value is not accepted here"},
      {"preempt: {}\n", "pool.yaml:1: pool: is missing"},
      {"pool:\n", "pool.yaml:1: pool: has no value"},
      {"pool: {total_gpus: 0}\n", "total_gpus: 0 is out of range; expected 1 to 200000"},
      {"pool: {total_gpus: .nan}\n", "total_gpus: \".nan\" is not a value"},
      {"pool: {total_gpus: [1]}\n", "a list is not accepted here; expected a single value"},
      {"pool: {}\npriority_tiers: []\n", "priority_tiers: names no tier"},
      {"pool: {}\npriority_tiers: {a: 1}\n", "a mapping is not accepted here; expected a list"},
      {"pool: {}\npriority_tiers: [{name: a b, weight: 1}]\n", "is not a word"},
      {"pool: {}\npriority_tiers: [{name: a, weight: 1, kind: x}]\n",
       "\"x\" is not known; expected inference, interactive or batch"},
      {"pool: {}\ndevices: {source: gpu}\n", "expected auto, simulated or nvml"},
      {"pool: {}\ndevices: {source: nvml, nodes: [{name: a}]}\n", "devices.source is nvml"},
      {"pool: {}\ndevices: {nodes: [{name: A}]}\n", "devices.nodes[0].name: \"A\" is not a name"},
      {"pool: {}\ndevices: {nodes: [{name: a, count: 65}]}\n", "expected 1 to 64"},
      {"pool: {}\ndevices: {nodes: [{name: a, model: odd}]}\n", "memory: is missing"},
      {"pool: {}\nscale: {down_below: 80%}\n", "is not below scale.up_above"},
      {"pool: {}\nscale: {dwell: soon}\n", "or `measured`"},
      {"pool: {}\nscale: {dwell: 25h}\n", "expected 0s to 24h, or `measured`"},
      {"pool: {}\nscale: {switch_budget: 101%}\n", "is over 100%"},
      {"pool: {}\nscale: {switch_load: 30}\n", "scale.switch_load"},
      {"pool: {}\nscale: {plan_days: monday}\n", "expected recent, kind or weekday"},
      {"pool: {}\nprefilter: {out_above: 120%}\n", "is over 100%"},
      {"pool: {}\nprefilter: {back_below: 90%}\n", "is above prefilter.out_above"},
      {"pool: {}\napi: {tcp: {listen: here}}\n", "is no address and port"},
      {"pool: {}\napi: {tcp: {}}\n", "api.tcp.token_file: is missing"},
      {"pool: {}\napi: {socket: x}\n", "is a relative path"},
      {"pool: {}\nstate_dir: x\n", "is a relative path"},
      {"pool: {}\njournal: {retention: 1h}\n", "1h is out of range"},
      {"pool: {zzzzzzzz: 1}\n", "is not a known field; expected one of name, total_gpus"},
  };
  for (const Row& row : rows) {
    EXPECT_NE(refused(row.text).find(row.expected), std::string::npos)
        << row.text << "gave: " << refused(row.text);
  }
}

// A file cut anywhere is an error or a shorter valid file, never a crash.
TEST(PoolFile, D5_TheDwellIsALengthOrMeasured) {
  const ScaleSpec usual = accepted("pool: {}\n").spec.scale;
  EXPECT_FALSE(usual.dwell_measured);
  EXPECT_EQ(usual.dwell, minutes(30));
  EXPECT_EQ(usual.switch_budget, Ppm(0));
  EXPECT_EQ(usual.plan_days, PlanDays::recent);
  EXPECT_EQ(accepted("pool: {}\nscale: {dwell: 4min}\n").spec.scale.dwell, minutes(4));
  const ScaleSpec measured = accepted(R"(pool: {}
scale: {mode: tidal, dwell: measured, switch_leave: 20s, switch_load: 3min, switch_budget: 0.3%,
        plan_days: kind}
)")
                                 .spec.scale;
  EXPECT_TRUE(measured.dwell_measured);
  EXPECT_EQ(measured.switch_leave, seconds(20));
  EXPECT_EQ(measured.switch_load, minutes(3));
  EXPECT_EQ(measured.switch_budget, Ppm(3'000));
  EXPECT_EQ(measured.plan_days, PlanDays::kind);
}

TEST(PoolFile, G5_TruncatedAnywhere) {
  for (std::size_t cut = 0; cut < field_example.size(); ++cut) {
    Problems problems("pool.yaml");
    const auto file = parse_pool_file(field_example.substr(0, cut), problems);
    EXPECT_EQ(file.has_value(), problems.empty()) << cut;
  }
  EXPECT_NE(refused(field_example.substr(0, 12)).find("pool.yaml:2"), std::string::npos);
}

TEST(PoolFile, SimulatedDevicesWhenNoneAreNamed) {
  EXPECT_EQ(default_simulated_nodes(accepted("pool: {total_gpus: 2}\n").spec)[0].devices.size(),
            2u);
  EXPECT_EQ(default_simulated_nodes(accepted("pool: {}\n").spec)[0].devices.size(), 4u);
}

// D6
TEST(PoolFile, D6_TeamsAreReadAndSortedByName) {
  const PoolSpec spec = accepted(
                            "pool: {total_gpus: 16, inference_guard_min: 4}\n"
                            "teams:\n"
                            "  - {name: vision, parent: lab, guarantee: 2, weight: 3}\n"
                            "  - {name: lab, guarantee: 8, limit: 12}\n")
                            .spec;
  ASSERT_EQ(spec.teams.size(), 2u);
  EXPECT_EQ(spec.teams[0], (TeamSpec{"lab", "", 8, 12, 1}));
  EXPECT_EQ(spec.teams[1], (TeamSpec{"vision", "lab", 2, std::nullopt, 3}));
}

TEST(PoolFile, D2_AwayFromABoundaryThereIsOnlyKilling) {
  EXPECT_NE(
      refused("pool: {total_gpus: 4}\npreempt: {only_at_checkpoint: false}\n")
          .find("pool.yaml:2: preempt.only_at_checkpoint: false lets tasks be stopped away from "
                "a boundary, which is killing them: that needs break_glass: true too"),
      std::string::npos);
  EXPECT_TRUE(accepted("pool: {total_gpus: 4}\n"
                       "preempt: {only_at_checkpoint: false, break_glass: true}\n")
                  .spec.preempt.break_glass);
}

TEST(PoolFile, D6_FaultsOfTeamsNameLineAndField) {
  const std::string pool = "pool: {total_gpus: 16, inference_guard_min: 4}\nteams:\n";
  EXPECT_EQ(refused(pool + "  - {name: a, parent: b}\n"),
            "pool.yaml:3: teams[0].parent: no team \"b\" is listed; expected one of this list");
  EXPECT_EQ(refused(pool + "  - {name: a, parent: b}\n  - {name: b, parent: a}\n"),
            "pool.yaml:3: teams[0].parent: \"a\" is above itself: a < b < ...\n"
            "pool.yaml:4: teams[1].parent: \"b\" is above itself: b < a < ...");
  EXPECT_EQ(refused(pool + "  - name: a\n    limit: 2\n    guarantee: 3\n"),
            "pool.yaml:5: teams[0].guarantee: 3 devices, more than its limit of 2 devices");
  EXPECT_EQ(refused(pool + "  - {name: a, guarantee: 8}\n  - {name: b, guarantee: 5}\n"),
            "pool.yaml:4: teams[1].guarantee: makes 13 devices guaranteed in all; total_gpus less "
            "inference_guard_min leaves 12");
  EXPECT_EQ(refused(pool + "  - {name: a, guarantee: 1}\n  - {name: b, parent: a, guarantee: 2}\n"),
            "pool.yaml:4: teams[1].guarantee: makes 2 devices guaranteed below \"a\", which is "
            "guaranteed 1");
  EXPECT_EQ(refused(pool + "  - {name: a}\n  - {name: a}\n"),
            "pool.yaml:4: teams[1].name: \"a\" is the name of another team");
}

TEST(PoolFile, D10_APresetGivesWhatTheFileDoesNotState) {
  const PoolFile led = accepted("pool: {total_gpus: 64, preset: inference-led}\n");
  EXPECT_EQ(led.spec.inference_guard_min + led.spec.elastic_buffer, 48) << "three quarters";
  EXPECT_EQ(led.spec.inference_guard_min, 24);
  EXPECT_EQ(led.spec.isolation, Isolation::dedicated_windows);
  EXPECT_EQ(led.spec.scale.up_above, Ppm(600'000));
  const PoolFile balanced = accepted("pool: {total_gpus: 64, preset: balanced}\n");
  EXPECT_EQ(balanced.spec.inference_guard_min + balanced.spec.elastic_buffer, 32);
  EXPECT_EQ(balanced.spec.isolation, Isolation::shares);
  const PoolFile training = accepted("pool: {total_gpus: 64, preset: training-led}\n");
  EXPECT_EQ(training.spec.inference_guard_min + training.spec.elastic_buffer, 16);
  EXPECT_EQ(training.spec.isolation, Isolation::time_slices);
  EXPECT_EQ(training.spec.derived.size(), 9u);
  EXPECT_EQ(training.spec.derived.front().key, "pool.inference_guard_min");
  EXPECT_EQ(training.spec.derived.front().value, "8");
}

TEST(PoolFile, D10_StatedKeysWinOverThePreset) {
  const PoolFile file = accepted(
      "pool: {total_gpus: 64, preset: balanced, inference_guard_min: 20}\n"
      "scale: {up_above: 75%}\n"
      "preempt: {budget_per_day: 9}\n");
  EXPECT_EQ(file.spec.inference_guard_min, 20);
  EXPECT_EQ(file.spec.elastic_buffer, 12) << "the rest of inference's half";
  EXPECT_EQ(file.spec.scale.up_above, Ppm(750'000));
  EXPECT_EQ(file.spec.preempt.budget_per_day, 9);
  for (const DerivedValue& value : file.spec.derived) {
    EXPECT_NE(value.key, "pool.inference_guard_min");
    EXPECT_NE(value.key, "scale.up_above");
  }
  EXPECT_TRUE(accepted("pool: {total_gpus: 64}\n").spec.derived.empty());
}

TEST(PoolFile, D10_APresetNeedsDevicesToDivide) {
  EXPECT_NE(
      refused("pool: {preset: balanced}\n").find("pool.preset: divides the devices of the pool"),
      std::string::npos);
  EXPECT_NE(refused("pool: {total_gpus: 3, preset: balanced}\n").find("divides 4 devices at least"),
            std::string::npos);
  EXPECT_NE(refused("pool: {total_gpus: 8, preset: even}\n").find("pool.preset"),
            std::string::npos);
  const PoolFile nodes =
      accepted("pool: {preset: balanced}\ndevices: {nodes: [{name: a, count: 8}]}\n");
  EXPECT_EQ(nodes.spec.inference_guard_min, 2);
}

TEST(PoolFile, D11_F8_StartsAndStages) {
  const PoolFile file = accepted(
      "pool: {total_gpus: 8, stage: physical}\n"
      "starts: {at_once: 2, apart: 10s, loading: 90s}\n"
      "adoption: {stabilise: 3d, most_faults: 1, least_kept: 90%}\n");
  EXPECT_EQ(file.spec.adoption.begin, AdoptionStage::physical);
  EXPECT_EQ(file.spec.adoption.stabilise, hours(72));
  EXPECT_EQ(file.spec.adoption.most_faults, 1);
  EXPECT_EQ(file.spec.adoption.least_kept, Ppm(900'000));
  EXPECT_EQ(file.spec.starts.at_once, 2);
  EXPECT_EQ(file.spec.starts.apart, seconds(10));
  EXPECT_EQ(file.spec.starts.loading, seconds(90));
  EXPECT_EQ(accepted("pool: {total_gpus: 8}\n").spec.adoption.begin, AdoptionStage::time);
  EXPECT_NE(refused("pool: {total_gpus: 8}\nstarts: {at_once: -1}\n").find("starts.at_once"),
            std::string::npos);
}

}  // namespace
}  // namespace neap::config::pool_file_test
