#include "backend/local/processes.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>

#include "backend/local/durable_file.h"

namespace neap::local {
namespace {

constexpr std::size_t environment_limit = 8 * 1024 * 1024;

bool has_entry(pid_t pid, const std::string& entry) {
  if (entry.empty()) return false;
  const auto text = read_bounded("/proc/" + std::to_string(pid) + "/environ", environment_limit);
  if (!text) return false;
  for (std::size_t at = text->find(entry); at != std::string::npos;
       at = text->find(entry, at + 1)) {
    const std::size_t end = at + entry.size();
    const bool begins = at == 0 || (*text)[at - 1] == '\0';
    const bool ends = end == text->size() || (*text)[end] == '\0';
    if (begins && ends) return true;
  }
  return false;
}

}  // namespace

std::optional<ProcessFacts> read_process(pid_t pid) {
  const auto text = read_bounded("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!text) return std::nullopt;
  // The name in parentheses may hold anything, parentheses too: fields begin after the last one.
  const std::size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  ProcessFacts facts;
  facts.pid = pid;
  int parent = 0;
  int group = 0;
  int session = 0;
  unsigned long long start = 0;
  const int fields = std::sscanf(text->c_str() + name_end + 1,
                                 " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                                 "%*d %*d %*d %llu",
                                 &facts.state, &parent, &group, &session, &start);
  if (fields != 5) return std::nullopt;
  facts.parent = parent;
  facts.session = session;
  facts.start_ticks = start;
  return facts;
}

std::vector<ProcessFacts> list_processes() {
  std::vector<ProcessFacts> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir("/proc"), ::closedir);
  if (!open) return out;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || end != name.data() + name.size()) continue;
    const auto facts = read_process(pid);
    if (facts && facts->state != 'Z' && facts->state != 'X') out.push_back(*facts);
  }
  std::sort(out.begin(), out.end(),
            [](const ProcessFacts& a, const ProcessFacts& b) { return a.pid < b.pid; });
  return out;
}

std::vector<pid_t> descendants_of(pid_t ancestor) {
  const std::vector<ProcessFacts> all = list_processes();
  std::vector<pid_t> found{ancestor};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const ProcessFacts& process : all) {
      if (process.parent == found[i]) found.push_back(process.pid);
    }
  }
  found.erase(found.begin());
  return found;
}

std::vector<pid_t> remains_of(const TaskMarks& marks) {
  std::vector<pid_t> out;
  if (marks.cgroup) {
    // Zombies stay listed until they are reaped, and hold nothing.
    for (const pid_t pid : marks.cgroup->processes()) {
      const auto facts = read_process(pid);
      if (facts && facts->state != 'Z' && facts->state != 'X') out.push_back(pid);
    }
  }
  bool session_is_ours = false;
  if (marks.session > 0) {
    // A session's number is not given out again while it has members, so it is ours unless its
    // leader is another process than the one that was started.
    const auto leader = read_process(marks.session);
    session_is_ours = !leader || leader->start_ticks == marks.start_ticks;
  }
  for (const ProcessFacts& process : list_processes()) {
    const bool member = session_is_ours && process.session == marks.session;
    if (member || has_entry(process.pid, marks.environment)) out.push_back(process.pid);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace neap::local
