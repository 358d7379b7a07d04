#include "backend/local/shared_cpu.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <vector>

#include "backend/local/durable_file.h"

namespace neap::local {
namespace {

constexpr int rounds = 64;  // more than processes that fork meanwhile need
constexpr std::size_t list_limit = std::size_t{1} << 20;

Result<std::string> v1_directory(const Cgroup& group) {
  std::string directory = group.directory_of("cpu");
  if (directory.empty()) return fail(ErrorCode::unavailable, "it has no CPU group");
  if (::access((directory + "/cpu.shares").c_str(), F_OK) != 0) {
    return fail(ErrorCode::unavailable, "one CPU group for all needs cgroup v1");
  }
  return directory;
}

std::vector<pid_t> pids_in(const std::string& directory) {
  const std::string text = read_bounded(directory + "/cgroup.procs", list_limit).value_or("");
  std::vector<pid_t> out;
  const char* at = text.data();
  const char* last = at + text.size();
  while (at < last) {
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(at, last, pid);
    if (error == std::errc{} && pid > 0) out.push_back(pid);
    at = end + 1;
  }
  std::ranges::sort(out);
  return out;
}

// True when none was left to move.
Result<bool> move_once(const std::vector<pid_t>& pids, const std::string& to) {
  for (const pid_t pid : pids) {
    const std::string path = to + "/cgroup.procs";
    const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file.valid()) return tl::unexpected(system_error("open", path));
    if (!write_all(file.get(), std::to_string(pid)) && errno != ESRCH) {
      return tl::unexpected(system_error("write", path));
    }
  }
  return pids.empty();
}

}  // namespace

Result<void> share_cpu(const Cgroup& group) {
  const auto own = v1_directory(group);
  if (!own) return tl::unexpected(own.error());
  const std::string above = own->substr(0, own->rfind('/'));
  for (int i = 0; i < rounds; ++i) {
    const auto done = move_once(pids_in(*own), above);
    if (!done) return tl::unexpected(done.error());
    if (*done) return {};
  }
  return fail(ErrorCode::conflict, "it forks faster than it can be moved");
}

Result<void> separate_cpu(const Cgroup& group) {
  const auto own = v1_directory(group);
  if (!own) return tl::unexpected(own.error());
  const std::string above = own->substr(0, own->rfind('/'));
  for (int i = 0; i < rounds; ++i) {
    // Its processes are known by its other groups.
    const std::vector<pid_t> all = group.processes();
    std::vector<pid_t> here;
    std::ranges::set_intersection(all, pids_in(above), std::back_inserter(here));
    const auto done = move_once(here, *own);
    if (!done) return tl::unexpected(done.error());
    if (*done) return {};
  }
  return fail(ErrorCode::conflict, "it forks faster than it can be moved");
}

}  // namespace neap::local
