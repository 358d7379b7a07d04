#include "cli/machine_checks.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/context.h"

namespace neap::cli {

namespace {

constexpr std::uint64_t disk_min_mib = 1024;
constexpr rlim_t descriptors_min = 4096;
constexpr long type_tmpfs = 0x01021994;
constexpr long type_nfs = 0x6969;

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

Check check_cgroups(const Machine& machine) {
  const std::string& root = machine.cgroups;
  const bool v2 = ::access((root + "/cgroup.controllers").c_str(), R_OK) == 0;
  const bool v1 = is_directory(root + "/memory");
  if (!v1 && !v2) {
    return {"cgroups", "failed", "no cgroup file system at " + root,
            "mount cgroup v2 there; without it tasks have no limits of processor and memory"};
  }
  const std::string kind = v2 ? "cgroup v2" : "cgroup v1";
  if (::access((v2 ? root : root + "/memory").c_str(), W_OK) != 0) {
    return {"cgroups", "warning", kind + " is not writable: limits of processor and memory are off",
            "run the daemon as root, or have systemd delegate a cgroup to its user (Delegate=yes)"};
  }
  return {"cgroups", "ok", kind + ", writable", ""};
}

Check check_proxy(const Machine& machine) {
  std::string path = machine.path + ":/usr/sbin:/usr/local/sbin";
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string program = path.substr(begin, end - begin) + "/haproxy";
    if (program.front() == '/' && ::access(program.c_str(), X_OK) == 0) {
      return {"haproxy", "ok", program, ""};
    }
    begin = end + 1;
  }
  return {"haproxy", "failed", "HAProxy is not installed: services cannot be reached",
          "apt-get install haproxy"};
}

Check check_driver(const Machine& machine) {
  const std::string version = first_line(machine.driver);
  if (!version.empty()) return {"driver", "ok", version, ""};
  return {"driver", "warning",
          "no NVIDIA driver: devices are simulated, processes on them are real",
          "install the driver where there is a GPU; without one nothing is wrong"};
}

Check check_user() {
  if (::geteuid() == 0) return {"user", "ok", "root: tasks can run as their submitters", ""};
  return {"user", "warning", "not root: a daemon of this user runs tasks of this user alone",
          "run the daemon as root to serve several users"};
}

// The folder itself, or the nearest one above that is there.
std::string existing_part(std::string path) {
  while (!path.empty() && path != "/" && !is_directory(path)) {
    path = std::filesystem::path(path).parent_path().string();
  }
  return path.empty() ? "/" : path;
}

Check check_state_dir(const Machine& machine) {
  const std::string& wanted = machine.state_dir;
  const std::string there = existing_part(wanted);
  if (::access(there.c_str(), W_OK | X_OK) != 0) {
    return {"state", "failed", wanted + " cannot be written by this user",
            "choose another with state_dir in the pool file, or run as its owner"};
  }
  struct statfs info {};
  if (::statfs(there.c_str(), &info) != 0) {
    return {"state", "failed", there + " does not answer", "check the disk"};
  }
  const std::uint64_t free_mib =
      static_cast<std::uint64_t>(info.f_bavail) * static_cast<std::uint64_t>(info.f_bsize) >> 20;
  const std::string shown = std::to_string(free_mib) + " MiB free in " + wanted;
  if (info.f_type == type_tmpfs) {
    return {"state", "warning", wanted + " is in memory: a reboot forgets the journal",
            "name a folder on a disk with state_dir in the pool file"};
  }
  if (info.f_type == type_nfs) {
    return {"state", "warning", wanted + " is on NFS, whose locks a journal cannot rely on",
            "name a folder on a local disk with state_dir in the pool file"};
  }
  if (free_mib < disk_min_mib) {
    return {"state", "warning", shown,
            "free some space: a journal that cannot be written stops the pool"};
  }
  return {"state", "ok", shown, ""};
}

Check check_clock() {
  timex clock{};
  const bool synchronised = ::adjtimex(&clock) != TIME_ERROR && (clock.status & STA_UNSYNC) == 0;
  if (synchronised) return {"clock", "ok", "synchronised", ""};
  return {"clock", "warning", "not synchronised: times in the journal may be wrong",
          "install chrony or systemd-timesyncd"};
}

Check check_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::string shown = "at most " + std::to_string(limit.rlim_max) + " open files";
  if (limit.rlim_max >= descriptors_min) return {"files", "ok", shown, ""};
  return {"files", "warning", shown + ": few tasks and streams at once",
          "raise the limit, for example LimitNOFILE=65536 in the systemd unit"};
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.path = environment_of_process("PATH");
  machine.state_dir = ::geteuid() == 0 || environment_of_process("HOME").empty()
                          ? "/var/lib/neap"
                          : environment_of_process("HOME") + "/.local/state/neap";
  return machine;
}

std::vector<Check> check_machine(const Machine& machine) {
  return {check_cgroups(machine),   check_proxy(machine), check_driver(machine), check_user(),
          check_state_dir(machine), check_clock(),        check_descriptors()};
}

}  // namespace neap::cli
