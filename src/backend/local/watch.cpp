#include "backend/local/watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "backend/local/durable_file.h"

namespace neap::local {
namespace {

constexpr std::size_t matches_limit = 4096;
constexpr std::int64_t entries_limit = 100'000;
constexpr int depth_limit = 8;

std::int64_t mtime_ns(const struct stat& info) {
  return static_cast<std::int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
}

void mix(std::uint64_t& hash, std::uint64_t value) {  // FNV-1a, eight bytes at once
  hash = (hash ^ value) * 0x100000001B3ULL;
}

std::int64_t step_in(std::string_view name) {
  // "checkpoint-500", "step_500.pt": the last run of digits.
  std::size_t end = name.size();
  while (end > 0 && (name[end - 1] < '0' || name[end - 1] > '9')) --end;
  std::size_t begin = end;
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9' && end - begin < 12) --begin;
  std::int64_t step = 0;
  for (const char c : name.substr(begin, end - begin)) step = step * 10 + (c - '0');
  return step;
}

// Names in a directory, sorted: what readdir's order is would make fingerprints differ.
std::vector<std::string> entries_of(Fd directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::fdopendir(directory.get()), ::closedir);
  if (!open) return names;
  (void)directory.release();
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (static_cast<std::int64_t>(names.size()) >= entries_limit) break;
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Result<CheckpointWatch> CheckpointWatch::open(const std::string& directory,
                                              const std::string& pattern, Micros settle) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument,
                "checkpoint.watch: '" + pattern + "' " + std::string(why));
  };
  if (pattern.empty() || pattern.front() == '/') return refuse("is not a relative path");
  std::vector<std::string> components;
  for (std::size_t begin = 0; begin <= pattern.size();) {
    const std::size_t end = std::min(pattern.find('/', begin), pattern.size());
    std::string component = pattern.substr(begin, end - begin);
    begin = end + 1;
    if (component == "..") return refuse("leads out of the working directory");
    if (!component.empty() && component != ".") components.push_back(std::move(component));
  }
  if (components.empty()) return refuse("names nothing");
  if (components.size() > depth_limit) return refuse("has more than 8 components");
  Fd root(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return tl::unexpected(system_error("open", directory));
  CheckpointWatch watch(std::move(root), directory, std::move(components), settle);
  (void)watch.scan(Time(0), WatchPass::settling);
  for (auto& [name, seen] : watch.seen_) seen.reported = true;
  return watch;
}

Fd CheckpointWatch::open_inside(const std::string& name, int flags) const {
  open_how how{};
  // openat2 refuses flags that O_PATH would ignore.
  const int extra = (flags & O_PATH) != 0 ? O_CLOEXEC : O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.flags = static_cast<std::uint64_t>(flags | extra);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return Fd(static_cast<int>(::syscall(SYS_openat2, root_.get(), name.c_str(), &how, sizeof how)));
}

void CheckpointWatch::find(const std::string& prefix, std::size_t depth,
                           std::vector<std::string>& out) const {
  Fd directory = open_inside(prefix.empty() ? "." : prefix, O_RDONLY | O_DIRECTORY);
  if (!directory.valid()) return;
  for (const std::string& name : entries_of(std::move(directory))) {
    if (out.size() >= matches_limit) return;
    if (::fnmatch(components_[depth].c_str(), name.c_str(), FNM_PERIOD) != 0) continue;
    const std::string path = prefix.empty() ? name : prefix + "/" + name;
    if (depth + 1 == components_.size()) {
      out.push_back(path);
    } else {
      find(path, depth + 1, out);
    }
  }
}

// False when the entry went away or cannot be made durable; what is neither file nor directory
// is passed over.
bool CheckpointWatch::examine(const std::string& name, Visit visit, Fingerprint& print,
                              int depth_left) const {
  struct stat info {};
  // Looked at before it is opened: opening a FIFO or a device may have effects.
  const Fd place = open_inside(name, O_PATH);
  if (!place.valid() || ::fstat(place.get(), &info) != 0) return false;
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return true;
  if (++print.entries > entries_limit || depth_left == 0) return false;
  print.newest_ns = std::max(print.newest_ns, mtime_ns(info));
  mix(print.hash, std::hash<std::string>{}(name));
  mix(print.hash, static_cast<std::uint64_t>(mtime_ns(info)));
  mix(print.hash, static_cast<std::uint64_t>(info.st_ino));
  if (S_ISREG(info.st_mode)) {
    mix(print.hash, static_cast<std::uint64_t>(info.st_size));
    print.bytes += info.st_size;
    if (visit == Visit::look) return true;
    const Fd file = open_inside(name, O_RDONLY);
    return file.valid() && ::fsync(file.get()) == 0;
  }
  Fd directory = open_inside(name, O_RDONLY | O_DIRECTORY);
  if (!directory.valid()) return false;
  return examine_directory(directory.get(), name, visit, print, depth_left);
}

bool CheckpointWatch::examine_directory(int fd, const std::string& name, Visit visit,
                                        Fingerprint& print, int depth_left) const {
  for (const std::string& entry : entries_of(Fd(::dup(fd)))) {
    const std::string path = name + "/" + entry;
    struct stat info {};
    // A link inside a checkpoint is part of its name list only; what it points to is not ours.
    if (::fstatat(fd, entry.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (S_ISLNK(info.st_mode)) continue;
    if (!examine(path, visit, print, depth_left - 1)) return false;
  }
  return visit == Visit::look || ::fsync(fd) == 0;
}

std::vector<WatchedCheckpoint> CheckpointWatch::scan(Time now, WatchPass pass) {
  std::vector<std::string> matches;
  find("", 0, matches);
  for (auto& [name, seen] : seen_) seen.present = false;
  std::vector<std::pair<std::int64_t, WatchedCheckpoint>> done;
  for (const std::string& name : matches) {
    Fingerprint print;
    if (!examine(name, Visit::look, print, depth_limit)) continue;
    auto [it, fresh] = seen_.try_emplace(name, Seen{print, now});
    Seen& seen = it->second;
    seen.present = true;
    if (!fresh && seen.print != print) seen = Seen{print, now};
    if (seen.reported) continue;
    if (pass == WatchPass::settling && now - seen.since < settle_) continue;
    if (pass == WatchPass::settling && fresh) continue;
    Fingerprint after;
    if (!examine(name, Visit::sync, after, depth_limit) || after != seen.print) {
      seen = Seen{after, now};
      continue;
    }
    // The entry itself must survive a power cut too, hence the directory that names it.
    const std::size_t slash = name.rfind('/');
    const Fd parent =
        open_inside(slash == std::string::npos ? "." : name.substr(0, slash), O_RDONLY);
    if (!parent.valid() || ::fsync(parent.get()) != 0) continue;
    seen.reported = true;
    const std::string last = slash == std::string::npos ? name : name.substr(slash + 1);
    done.emplace_back(print.newest_ns,
                      WatchedCheckpoint{step_in(last), root_path_ + "/" + name, print.bytes,
                                        Time(print.newest_ns / 1'000)});
  }
  std::erase_if(seen_, [](const auto& entry) { return !entry.second.present; });
  std::stable_sort(done.begin(), done.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<WatchedCheckpoint> out;
  for (auto& [newest, checkpoint] : done) out.push_back(std::move(checkpoint));
  return out;
}

}  // namespace neap::local
