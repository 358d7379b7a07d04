// Clusters, policies, workloads: what is read, and what is refused with its place.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulate/run/cluster.h"
#include "simulate/run/policy.h"
#include "simulate/run/series.h"
#include "simulate/run/source.h"
#include "simulate/run/testing/scratch.h"
#include "simulate/run/tiers.h"

namespace neap::whatif {
namespace {

using testing::Scratch;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Cluster, ShortForms) {
  struct Case {
    const char* text;
    std::size_t nodes;
    std::int64_t devices;
    const char* model;  // of the last
    std::int64_t gib;
  };
  const Case cases[] = {{"64x8xA100-80G", 64, 512, "A100-80G", 80},
                        {"8xT4", 1, 8, "T4", 16},
                        {"2x4xV100M32,1x2xX1:48GiB", 3, 10, "X1", 48},
                        {"1x1xH200", 1, 1, "H200", 141}};
  for (const Case& c : cases) {
    const auto cluster = cluster_of_text(c.text);
    ASSERT_TRUE(cluster) << c.text << ": " << to_string(cluster.error());
    EXPECT_EQ(cluster->nodes.size(), c.nodes) << c.text;
    EXPECT_EQ(cluster->devices(), c.devices) << c.text;
    EXPECT_EQ(cluster->nodes.back().devices.back().model, c.model) << c.text;
    EXPECT_EQ(cluster->nodes.back().devices.back().memory.value, c.gib * 1024) << c.text;
  }
  for (const char* text :
       {"", "x", "64", "64x", "64xx", "0x8xT4", "8x65xT4", "20001x1xT4", "8xX1", "8xX1:0GiB",
        "8xX1:48GB", "8xT4,", "-1x8xT4", "8xT4:16GiB:1", "99999999999999999999x8xT4", "2x3x4xT4"}) {
    const auto cluster = cluster_of_text(text);
    ASSERT_FALSE(cluster) << text;
    EXPECT_TRUE(has(to_string(cluster.error()), "--cluster")) << to_string(cluster.error());
  }
}

TEST(Cluster, FilesByTheirContent) {
  const Scratch scratch;
  const std::string list = scratch.write(
      "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\na,1,1,2,P100\nb,1,1,0,\nc,1,1,8,G2\n");
  ASSERT_TRUE(load_cluster(list));
  EXPECT_EQ(load_cluster(list)->devices(), 10);
  const std::string pool = scratch.write(
      "pool.yaml", "pool: {}\ndevices:\n  nodes:\n    - {name: n, count: 3, model: A100-40G}\n");
  EXPECT_EQ(load_cluster(pool)->devices(), 3);
  const std::string total = scratch.write("total.yaml", "pool: {total_gpus: 64}\n");
  EXPECT_EQ(load_cluster(total)->devices(), 64);
  const std::string nothing = scratch.write("nothing.yaml", "pool: {}\n");
  EXPECT_TRUE(has(to_string(load_cluster(nothing).error()), "names no devices"));
  EXPECT_TRUE(has(to_string(load_cluster("no-such-file").error()), "no such file"));
  const std::string cpus =
      scratch.write("cpus.csv", "sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,\n");
  EXPECT_TRUE(has(to_string(load_cluster(cpus).error()), "holds no node with devices"));
}

// --set is checked as the file is: the same errors, with the place where it was said.
TEST(Policy, SetsAreCheckedLikeTheFile) {
  const Scratch scratch;
  const std::string file = scratch.write("p.yaml",
                                         "pool: {total_gpus: 8}\n"
                                         "priority_tiers:\n"
                                         "  - {name: infer, weight: 9}\n"
                                         "  - {name: train, weight: 4}\n");
  const auto good = load_policy(file, {"preempt.fixed_cost=30min", "priority_tiers[1].weight=5",
                                       "pool.inference_guard_min=2", "scale={up_for: 1min}"});
  ASSERT_TRUE(good) << to_string(good.error());
  EXPECT_EQ(good->pool.preempt.fixed_cost, 1'800'000'000'000);
  EXPECT_EQ(good->pool.tiers[1].weight, 5);
  EXPECT_EQ(good->pool.inference_guard_min, 2);
  EXPECT_EQ(good->pool.scale.up_for, minutes(1));
  EXPECT_TRUE(has(good->name, "preempt.fixed_cost=30min"));
  const std::pair<const char*, const char*> cases[] = {
      {"preempt.fixed_cost=30m", "--set preempt.fixed_cost=30m: preempt.fixed_cost: \"30m\""},
      {"preempt.fixedcost=1h", "is not a known field; did you mean \"fixed_cost\"?"},
      {"pool.inference_guard_min=9", "9 is more than total_gpus (8)"},
      {"priority_tiers[2].weight=5", "has no item 2"},
      {"priority_tiers.weight=5", "is no section"},
      {"preempt.enabled=", "has no value"},
      {"preempt.enabled", "expected key=value"},
      {"=1", "expected key=value"},
      {"preempt..x=1", "is no key"},
      {"preempt.enabled={", "write a plain word"}};
  for (const auto& [set, message] : cases) {
    const auto policy = load_policy(file, {set});
    ASSERT_FALSE(policy) << set;
    EXPECT_TRUE(has(to_string(policy.error()), message))
        << set << ": " << to_string(policy.error());
    EXPECT_TRUE(has(to_string(policy.error()), "--set")) << to_string(policy.error());
  }
  // A fault of the file itself keeps its line.
  const std::string bad = scratch.write("bad.yaml", "pool:\n  total_gpus: x\n");
  EXPECT_TRUE(has(to_string(load_policy(bad, {"preempt.enabled=true"}).error()), "bad.yaml:2"));
}

TEST(Policy, OfAnotherClusterIsCheckedAgainstItsDevices) {
  const Scratch scratch;
  const std::string file = scratch.write("p.yaml", "pool: {total_gpus: 8}\n");
  const std::vector<std::string> large = {"pool.inference_guard_min=9"};
  ASSERT_FALSE(load_policy(file, large));
  const auto there = load_policy(file, large, 64);
  ASSERT_TRUE(there) << to_string(there.error());
  EXPECT_EQ(there->pool.total_gpus, 64);
  EXPECT_TRUE(has(to_string(load_policy(file, large, 4).error()), "9 is more than total_gpus (4)"));
}

TEST(Tiers, OfAPool) {
  PoolSpec pool;
  pool.tiers = {{"infer_core", 100, Purpose::inference},
                {"train_deadline_near", 80, Purpose::batch},
                {"train_normal", 40, Purpose::batch}};
  const auto tiers = tiers_for(pool, "");
  ASSERT_TRUE(tiers);
  EXPECT_EQ(tiers->job, "train_normal");
  EXPECT_EQ(tiers->deadline, "train_deadline_near");
  EXPECT_EQ(tiers->inference, "infer_core");
  EXPECT_EQ(tiers->training_or(pool, "train_deadline_near"), "train_deadline_near");
  EXPECT_EQ(tiers->training_or(pool, "gone"), "train_normal");
  EXPECT_FALSE(tiers_for(pool, "infer_core"));
  EXPECT_EQ(tiers_for(pool, "train_deadline_near")->job, "train_deadline_near");
  pool.tiers.resize(1);
  EXPECT_FALSE(tiers_for(pool, ""));
}

TEST(Source, FormatsAreKnownByTheirContent) {
  const Scratch scratch;
  const std::pair<const char*, Format> cases[] = {
      {"{\"neap_workload\":1}\n", Format::neap},
      {"\xef\xbb\xbf{\"neap_workload\":1}\n", Format::neap},
      {"{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}\n", Format::mooncake},
      {"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\r\n", Format::openb},
      {"timestamp,duration,num_gpus,gpu_time,cluster\n", Format::philly},
      {"job_id,user,num_gpu,submit_time,best_effort\n", Format::chronus},
      {"TIMESTAMP,ContextTokens,GeneratedTokens\n", Format::azure},
      {"time,total_gpu_num,running_gpu_num,pending_gpu_num\n", Format::helios},
      {"SQLite format 3\n", Format::journal}};
  for (const auto& [text, format] : cases) {
    const auto found = detect_format(scratch.write("w", text));
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(*found, format) << text;
  }
  EXPECT_EQ(*detect_format(scratch.path("")), Format::journal) << "a state folder";
  EXPECT_TRUE(has(to_string(detect_format(scratch.write("e", "")).error()), "is empty"));
  const auto unknown = detect_format(scratch.write("u", "a,b,c\n1,2,3\n"));
  EXPECT_TRUE(has(to_string(unknown.error()), "u:1: begins like no workload"));
  EXPECT_EQ(detect_format(scratch.path("nowhere")).error().code, ErrorCode::not_found);
  for (const std::string& name : format_names()) EXPECT_TRUE(format_named(name)) << name;
  EXPECT_FALSE(format_named("csv"));
}

TEST(Source, HeliosDemandAsJobsFirstInFirstOut) {
  const Scratch scratch;
  const std::string path = scratch.write(
      "h.csv",
      "time,total_gpu_num,running_gpu_num,pending_gpu_num,running_gpujob_num,pending_gpujob_num\n"
      "2020-05-01 00:00:00,64,2,0,1,0\n"
      "2020-05-01 00:01:00,64,2,1,1,1\n"
      "2020-05-01 00:02:00,64,1,0,1,0\n");
  auto stream = open_arrivals(path, Format::helios, "");
  ASSERT_TRUE(stream);
  std::vector<std::int64_t> minutes_long;
  trace::Arrival arrival;
  while (*(*stream)->next(arrival)) {
    minutes_long.push_back(std::get<trace::JobArrival>(arrival.what).duration.value / 60'000'000);
  }
  EXPECT_EQ(minutes_long, (std::vector<std::int64_t>{2, 2, 2}));
}

TEST(Source, GeneratedJobsAskForTheLoad) {
  for (const std::string& kind : generator_names()) {
    Generated what{.kind = kind, .jobs = 2'000, .load = Ppm(800'000), .devices = 100, .seed = 3};
    what.service = "chat";
    what.replica_rate_micro = 1'000'000;
    auto stream = generate_arrivals(what);
    double work = 0;
    std::int64_t jobs = 0;
    trace::Arrival arrival;
    Time last;
    while (*stream->next(arrival)) {
      if (const auto* job = std::get_if<trace::JobArrival>(&arrival.what)) {
        work += static_cast<double>(job->duration.value) * job->gpus *
                static_cast<double>(job->each.value) / 1'000;
        ++jobs;
        last = arrival.at;
      }
    }
    EXPECT_EQ(jobs, 2'000) << kind;
    EXPECT_EQ(*stream->total(), 2'000) << kind;
    EXPECT_NEAR(work / static_cast<double>(last.us) / 100, 0.8, 0.08) << kind;
  }
}

TEST(Series, MeansOfSpansThatDouble) {
  Series series(2, Time(0), Micros(10));
  series.change(0, Time(0), 4);
  series.change(0, Time(15), -2);
  series.settle(Time(20));
  EXPECT_EQ(series.means(0, Time(20)), (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(series.means(1, Time(20)), (std::vector<std::int64_t>{0, 0}));
  EXPECT_TRUE(series.integral(0) == 70);
  // Far beyond what 480 spans of 10 µs hold: spans are longer then, and nothing is lost.
  series.change(0, Time(100'000), 0);
  series.settle(Time(100'000));
  EXPECT_TRUE(series.integral(0) == 70 + 2 * (100'000 - 20));
  EXPECT_LE(series.means(0, Time(100'000)).size(), Series::most_spans);
  EXPECT_EQ(series.means(0, Time(100'000)).back(), 2);
  EXPECT_EQ(series.highest(0), 4);
}

}  // namespace
}  // namespace neap::whatif
