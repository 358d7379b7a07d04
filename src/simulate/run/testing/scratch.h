// What the tests of runs share: files that go away, and short ways to a run.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "simulate/run/run.h"

namespace neap::whatif::testing {

class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "neap-whatif-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  // neap's own format, with its first line before `lines`.
  [[nodiscard]] std::string workload(const std::string& lines) const {
    return write("workload.jsonl", "{\"neap_workload\":1}\n" + lines);
  }

 private:
  std::string folder_;
};

inline std::string job_line(std::int64_t at_s, const std::string& name, std::int64_t gpus,
                            std::int64_t duration_s, const std::string& more = {}) {
  return "{\"at_us\":" + std::to_string(at_s * 1'000'000) + ",\"kind\":\"job\",\"name\":\"" + name +
         "\",\"gpus\":" + std::to_string(gpus) +
         ",\"duration_us\":" + std::to_string(duration_s * 1'000'000) + more + "}\n";
}

inline std::string rate_line(std::int64_t at_s, const std::string& service, std::int64_t rate) {
  return "{\"at_us\":" + std::to_string(at_s * 1'000'000) + ",\"kind\":\"rate\",\"service\":\"" +
         service + "\",\"micro_per_second\":" + std::to_string(rate * 1'000'000) + "}\n";
}

inline RunSpec spec_of(const std::string& cluster, const std::string& workload,
                       const std::vector<std::string>& sets = {}) {
  RunSpec spec;
  const auto found = cluster_of_text(cluster);
  EXPECT_TRUE(found);
  spec.cluster = *found;
  const auto policy = load_policy("", sets);
  EXPECT_TRUE(policy) << to_string(policy.error());
  spec.policy = *policy;
  spec.workload.files = {workload};
  spec.workload.contract.sdk = true;
  spec.workload.contract.stall = Micros(0);
  spec.workload.replica.max = 64;
  return spec;
}

inline Outcome outcome_of(const RunSpec& spec, const Hooks& hooks = {}) {
  auto outcome = run_once(spec, hooks);
  EXPECT_TRUE(outcome) << (outcome ? "" : to_string(outcome.error()));
  return outcome ? std::move(*outcome) : Outcome{};
}

}  // namespace neap::whatif::testing
