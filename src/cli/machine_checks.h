// What the machine must offer for a pool, checked without a daemon: each with a remedy.
#pragma once

#include <string>
#include <vector>

namespace neap::cli {

struct Check {
  std::string name;
  std::string state;  // "ok", "warning", "failed"
  std::string message;
  std::string remedy;  // empty when ok
};

// Where the checks look; tests look elsewhere.
struct Machine {
  std::string cgroups = "/sys/fs/cgroup";
  std::string driver = "/proc/driver/nvidia/version";
  std::string path;       // where programs are, separated by ':'
  std::string state_dir;  // of the daemon that would run here
};

[[nodiscard]] Machine this_machine();
[[nodiscard]] std::vector<Check> check_machine(const Machine& machine);

}  // namespace neap::cli
