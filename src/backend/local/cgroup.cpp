#include "backend/local/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "backend/local/durable_file.h"

namespace neap::local {
namespace {

constexpr std::size_t control_file_limit = 4 * 1024 * 1024;
constexpr const char* v1_controllers[] = {"cpu", "cpuset", "memory", "freezer", "pids", "blkio"};

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Writes a control file that is there; control files are never made.
Result<void> put(const std::string& path, std::string_view value) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC));
  if (!file.valid()) return tl::unexpected(system_error("open", path));
  if (!write_all(file.get(), value)) return tl::unexpected(system_error("write", path));
  return {};
}

std::string get(const std::string& path) {
  return read_bounded(path, control_file_limit).value_or(std::string());
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// The number behind `key ` in a file of "key value" lines.
std::int64_t value_of(const std::string& text, std::string_view key) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    std::int64_t value = 0;
    std::from_chars(line.data() + key.size() + 1, line.data() + line.size(), value);
    return value;
  }
  return 0;
}

void read_pids(const std::string& text, std::vector<pid_t>& out) {
  const char* at = text.data();
  const char* last = at + text.size();
  while (at < last) {
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(at, last, pid);
    if (error == std::errc{} && pid > 0) out.push_back(pid);
    at = end + 1;
  }
}

// Calls `visit` on each directory below `path`, the deepest first.
template <class Visit>
void for_each_below(const std::string& path, const Visit& visit, int depth_left = 16) {
  if (depth_left == 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(path.c_str()), ::closedir);
  if (!open) return;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string child = path + "/" + entry->d_name;
    if (entry->d_type != DT_DIR) continue;
    for_each_below(child, visit, depth_left - 1);
    visit(child);
  }
}

// Makes root/a, root/a/b, … and calls `ready` on each parent before its child is made.
template <class Ready>
Result<void> make_path(const std::string& root, const std::string& name, const Ready& ready) {
  std::string path = root;
  std::size_t begin = 0;
  while (begin <= name.size()) {
    ready(path);
    const std::size_t end = std::min(name.find('/', begin), name.size());
    path += "/" + name.substr(begin, end - begin);
    begin = end + 1;
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
      return tl::unexpected(system_error("mkdir", path));
    }
  }
  return {};
}

// A new v1 cpuset has no CPUs and takes no process until it is filled from its parent.
void fill_cpuset(const std::string& path, const std::string& root) {
  if (path == root) return;
  const std::string parent = path.substr(0, path.rfind('/'));
  for (const char* file : {"/cpuset.cpus", "/cpuset.mems"}) {
    if (trimmed(get(path + file)).empty()) (void)put(path + file, trimmed(get(parent + file)));
  }
}

void note(std::vector<std::string>& not_enforced, std::string_view what,
          const Result<void>& result) {
  if (!result) not_enforced.push_back(std::string(what) + ": " + result.error().message);
}

}  // namespace

CgroupRoot detect_cgroups(const std::string& path) {
  const std::string controllers = get(path + "/cgroup.controllers");
  if (controllers.find("memory") != std::string::npos ||
      controllers.find("cpu") != std::string::npos) {
    return {CgroupVersion::v2, path};
  }
  for (const char* controller : v1_controllers) {
    if (exists(path + "/" + controller + "/cgroup.procs")) return {CgroupVersion::v1, path};
  }
  return {CgroupVersion::none, path};
}

std::vector<Cgroup::Directory> Cgroup::places(const CgroupRoot& root, const std::string& name) {
  std::vector<Directory> out;
  const auto place = [&](const std::string& controller, const std::string& base) {
    const std::string path = base + "/" + name;
    out.push_back({controller, path, path + "/cgroup.procs"});
  };
  if (root.version == CgroupVersion::v2) place("", root.path);
  if (root.version == CgroupVersion::v1) {
    for (const char* controller : v1_controllers) {
      const std::string base = root.path + "/" + controller;
      if (exists(base + "/cgroup.procs")) place(controller, base);
    }
    // A hybrid machine: v2 without the controllers still kills a whole group at once.
    const std::string hybrid = root.path + "/unified";
    if (exists(hybrid + "/cgroup.procs")) place("", hybrid);
  }
  return out;
}

Cgroup::Created Cgroup::create(const CgroupRoot& root, const std::string& name,
                               const CgroupLimits& limits) {
  Created out{Cgroup(root.version, {}), {}};
  if (root.version == CgroupVersion::none) {
    out.not_enforced.push_back("cgroup: none mounted at " + root.path);
    return out;
  }
  for (Directory& place : places(root, name)) {
    const std::string base = place.path.substr(0, place.path.size() - name.size() - 1);
    const auto ready = [&](const std::string& parent) {
      if (place.controller == "cpuset") fill_cpuset(parent, base);
      if (root.version != CgroupVersion::v2) return;
      for (const char* controller : {"+cpu", "+memory", "+io", "+cpuset", "+pids"}) {
        // Each alone: one that is missing must not keep the others away.
        (void)put(parent + "/cgroup.subtree_control", controller);
      }
    };
    const auto made = make_path(base, name, ready);
    if (!made) {
      out.not_enforced.push_back("cgroup " + place.controller + ": " + made.error().message);
      continue;
    }
    if (place.controller == "cpuset") fill_cpuset(place.path, base);
    out.group.directories_.push_back(std::move(place));
  }
  for (std::string& one : out.group.change({}, limits)) out.not_enforced.push_back(std::move(one));
  return out;
}

Cgroup Cgroup::existing(const CgroupRoot& root, const std::string& name) {
  std::vector<Directory> found;
  for (Directory& place : places(root, name)) {
    if (is_directory(place.path)) found.push_back(std::move(place));
  }
  return Cgroup(root.version, std::move(found));
}

const Cgroup::Directory* Cgroup::find(std::string_view controller) const {
  for (const Directory& directory : directories_) {
    if (directory.controller == controller) return &directory;
  }
  return nullptr;
}

void Cgroup::write(const CgroupSetting& setting, const std::string& value,
                   std::vector<std::string>& not_enforced) const {
  const Directory* place = version_ == CgroupVersion::v1 ? find(setting.controller) : unified();
  if (place == nullptr) {
    not_enforced.push_back(setting.what + ": no group of " + setting.controller);
    return;
  }
  std::string text = value;
  if (text.empty()) {  // only cpuset: all that the group above has
    const std::string above = place->path.substr(0, place->path.rfind('/'));
    text = version_ == CgroupVersion::v1 ? trimmed(get(above + "/" + setting.file)) : "\n";
  }
  note(not_enforced, setting.what, put(place->path + "/" + setting.file, text));
}

std::vector<std::string> Cgroup::change(const CgroupLimits& before,
                                        const CgroupLimits& after) const {
  CgroupSettings old = settings_of(version_, before);
  CgroupSettings wanted = settings_of(version_, after);
  std::vector<std::string> not_enforced = std::move(wanted.unavailable);
  const auto same_place = [](const CgroupSetting& a, const CgroupSetting& b) {
    return a.file == b.file && a.device == b.device;
  };
  for (const CgroupSetting& setting : old.settings) {
    const bool stays = std::any_of(wanted.settings.begin(), wanted.settings.end(),
                                   [&](const auto& other) { return same_place(setting, other); });
    if (!stays) write(setting, setting.lifted, not_enforced);
  }
  for (const CgroupSetting& setting : wanted.settings) {
    const bool stands =
        std::any_of(old.settings.begin(), old.settings.end(), [&](const auto& other) {
          return same_place(setting, other) && setting.value == other.value;
        });
    if (!stands) write(setting, setting.value, not_enforced);
  }
  return not_enforced;
}

bool Cgroup::enter(pid_t pid) const {
  char number[16];
  const auto end = std::to_chars(number, number + sizeof number, pid).ptr;
  const std::string_view text(number, static_cast<std::size_t>(end - number));
  bool all = true;
  for (const Directory& directory : directories_) {
    const int fd = ::open(directory.procs.c_str(), O_WRONLY | O_CLOEXEC);
    all = fd >= 0 && write_all(fd, text) && all;
    if (fd >= 0) ::close(fd);
  }
  return all;
}

std::vector<pid_t> Cgroup::processes() const {
  std::vector<pid_t> pids;
  for (const Directory& directory : directories_) {
    read_pids(get(directory.procs), pids);
    for_each_below(directory.path, [&](const std::string& child) {
      read_pids(get(child + "/cgroup.procs"), pids);
    });
  }
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

Result<void> Cgroup::set_frozen(std::string_view v1_state, std::string_view v2_state) const {
  if (const Directory* freezer = find("freezer")) {
    return put(freezer->path + "/freezer.state", v1_state);
  }
  if (const Directory* group = unified()) return put(group->path + "/cgroup.freeze", v2_state);
  return fail(ErrorCode::unavailable, "no cgroup that can freeze");
}

Result<void> Cgroup::freeze() const { return set_frozen("FROZEN", "1"); }
Result<void> Cgroup::thaw() const { return set_frozen("THAWED", "0"); }

void Cgroup::kill() const {
  if (const Directory* group = unified()) {
    if (put(group->path + "/cgroup.kill", "1")) {
      (void)thaw();  // frozen processes of v1 die when they thaw
      return;
    }
  }
  // Frozen first, so that nothing forks away from the list.
  (void)freeze();
  for (const pid_t pid : processes()) (void)::kill(pid, SIGKILL);
  (void)thaw();
}

std::int64_t Cgroup::oom_kills() const {
  if (version_ == CgroupVersion::v2) {
    const Directory* group = unified();
    return group == nullptr ? 0 : value_of(get(group->path + "/memory.events"), "oom_kill");
  }
  const Directory* memory = find("memory");
  return memory == nullptr ? 0 : value_of(get(memory->path + "/memory.oom_control"), "oom_kill");
}

std::int64_t Cgroup::memory_bytes() const {
  const std::string directory = directory_of("memory");
  if (directory.empty()) return 0;
  const bool v1 = version_ == CgroupVersion::v1;
  const std::string text = get(directory + (v1 ? "/memory.usage_in_bytes" : "/memory.current"));
  std::int64_t bytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  return bytes;
}

std::string Cgroup::directory_of(std::string_view v1_controller) const {
  const Directory* place = version_ == CgroupVersion::v1 ? find(v1_controller) : unified();
  return place == nullptr ? std::string() : place->path;
}

std::string Cgroup::unified_directory() const {
  const Directory* place = unified();
  return place == nullptr ? std::string() : place->path;
}

void Cgroup::remove() const {
  for (const Directory& directory : directories_) {
    for_each_below(directory.path, [](const std::string& child) { (void)::rmdir(child.c_str()); });
    (void)::rmdir(directory.path.c_str());
  }
}

namespace {

std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* const folder = ::opendir(path.c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string name = entry->d_name;
    if (!name.starts_with('.') && is_directory(path + "/" + name)) names.push_back(name);
  }
  ::closedir(folder);
  return names;
}

// Where groups of pools lie: <v2>/neap, or <v1>/<hierarchy>/neap each.
std::vector<std::string> homes_of_pools(const CgroupRoot& root) {
  if (root.version == CgroupVersion::none) return {};
  if (root.version == CgroupVersion::v2) return {root.path + "/neap"};
  std::vector<std::string> homes;
  for (const std::string& hierarchy : folders_in(root.path)) {
    homes.push_back(root.path + "/" + hierarchy + "/neap");
  }
  return homes;
}

}  // namespace

void remove_empty_groups(const CgroupRoot& root, const std::string& pool,
                         const std::vector<std::string>& kept) {
  for (const std::string& home : homes_of_pools(root)) {
    const std::string place = home + pool.substr(pool.find('/'));
    for (const std::string& group : folders_in(place)) {
      if (std::find(kept.begin(), kept.end(), group) != kept.end()) continue;
      (void)::rmdir((place + "/" + group).c_str());
    }
  }
}

void remove_empty_pools(const CgroupRoot& root, const std::string& name) {
  for (const std::string& home : homes_of_pools(root)) {
    for (const std::string& pool : folders_in(home)) {
      const bool same_name = pool == name || pool.starts_with(name + "-");
      if (same_name) (void)::rmdir((home + "/" + pool).c_str());
    }
  }
}

}  // namespace neap::local
