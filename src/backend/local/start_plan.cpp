#include "backend/local/start_plan.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "backend/local/isolation.h"
#include "backend/local/json.h"

namespace neap::local {
namespace {

constexpr std::int64_t most_groups = 65'536;

struct User {
  std::string name;
  std::string home = "/";
  std::string shell = "/bin/sh";
  std::vector<std::uint32_t> groups;
};

Result<Json> read_launch(const StartTask& start) {
  auto json = parse_json(start.launch);
  if (!json) return fail(json.error().code, "launch: " + json.error().message, start.name);
  if (json->kind != Json::Kind::object) {
    return fail(ErrorCode::invalid_argument, "launch: expected a JSON object", start.name);
  }
  return std::move(*json);
}

// A user without an entry (a container's, a removed one) still runs, with his primary group only.
User look_up(const Owner& owner) {
  User user;
  user.name = owner.user.empty() ? std::to_string(owner.uid) : owner.user;
  user.groups = {owner.gid};
  std::vector<char> buffer(16 * 1024);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(owner.uid, &entry, buffer.data(), buffer.size(), &found) != 0) return user;
  if (found == nullptr) return user;
  user.name = found->pw_name;
  user.home = found->pw_dir;
  user.shell = found->pw_shell;
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  while (::getgrouplist(found->pw_name, owner.gid, groups.data(), &count) < 0) {
    if (count > most_groups || count <= static_cast<int>(groups.size())) return user;
    groups.resize(static_cast<std::size_t>(count));
  }
  user.groups.assign(groups.begin(), groups.begin() + count);
  return user;
}

void replace_all(std::string& text, std::string_view what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

std::string with_commas(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

// "fine-tune" is FINE_TUNE.
std::string variable_part(std::string name) {
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '-') c = '_';
  }
  return name;
}

// Three layers, the later ones win: what a login would set, what the task asks for, what the pool
// says.
std::vector<std::string> environment_of(const StartTask& start, const Json& launch,
                                        const User& user, const SupervisedTask& task,
                                        const std::string& artifacts) {
  std::map<std::string, std::string> variables = {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                                  {"HOME", user.home},
                                                  {"USER", user.name},
                                                  {"LOGNAME", user.name},
                                                  {"SHELL", user.shell},
                                                  {"LANG", "C.UTF-8"}};
  if (const Json* wanted = launch.find("env")) {
    for (const auto& [name, value] : wanted->members) variables[name] = value.text;
  }
  variables["NEAP_TASK"] = start.name;
  variables["NEAP_ALLOCATION"] = std::to_string(start.allocation.value);
  // Given by the task file or else its own place, so that two tasks in one directory stay apart.
  variables.try_emplace("NEAP_CHECKPOINT_DIR",
                        task.working_directory + "/checkpoints/" + start.name);
  if (!start.restore_from.empty()) variables["NEAP_RESTORE_FROM"] = start.restore_from;
  const std::string above = artifacts + "/";
  if (!start.artifacts.own.empty()) variables["NEAP_ARTIFACTS"] = above + start.artifacts.own;
  for (const StageInput& input : start.artifacts.inputs) {
    variables["NEAP_INPUT_" + variable_part(input.stage)] = above + input.directory;
  }
  variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  variables["CUDA_VISIBLE_DEVICES"] = with_commas(start.devices);
  variables["NEAP_GPUS"] = std::to_string(start.devices.size());
  if (task.service) variables["NEAP_PORT"] = std::to_string(task.service->port);
  if (const Json* folder = launch.find("model_dir");
      folder != nullptr && folder->kind == Json::Kind::string) {
    variables["NEAP_MODEL_DIR"] = folder->text;
  }
  std::vector<std::string> out;
  for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
  return out;
}

Result<void> plan_service(const Json& launch, std::int32_t port, SupervisedTask& task) {
  SupervisedService service;
  service.port = port;
  if (const Json* health = launch.find("health")) {
    const JsonFields in(*health, "health.");
    auto path = in.string("path", 1024);
    const auto interval = in.integer_or("interval_us", 1, json_integer_max, service.interval.value);
    const auto timeout = in.integer_or("timeout_us", 1, json_integer_max, service.timeout.value);
    if (!path) return tl::unexpected(path.error());
    if (!interval) return tl::unexpected(interval.error());
    if (!timeout) return tl::unexpected(timeout.error());
    service.health_path = std::move(*path);
    service.interval = Micros(*interval);
    service.timeout = Micros(*timeout);
  }
  for (std::string& word : task.argv) replace_all(word, "{port}", std::to_string(port));
  task.service = std::move(service);
  return {};
}

// What the task file says of the host; the folder of its models has a storage class too.
Result<HostLimits> host_of(const Json& launch) {
  HostLimits out;
  if (const Json* host = launch.find("host")) {
    auto read = read_host_limits(*host, "launch.host.");
    if (!read) return tl::unexpected(read.error());
    out = std::move(*read);
  }
  const Json* models = launch.find("model_dir");
  if (models != nullptr && models->text.starts_with('/')) out.paths.push_back(models->text);
  return out;
}

Result<SupervisedGroup> group_of(const StartTask& start, const PlanSettings& settings,
                                 const Json& launch, KindOfWork kind) {
  const JsonFields fields(launch, "launch.");
  const auto cpu = fields.integer_or("cpu_milli", 0, json_integer_max, 0);
  const auto memory = fields.integer_or("host_memory_mib", 0, json_integer_max >> 20, 0);
  if (!cpu) return tl::unexpected(cpu.error());
  if (!memory) return tl::unexpected(memory.error());
  const auto host = host_of(launch);
  if (!host) return tl::unexpected(host.error());
  const HostFacts facts{settings.disk_of, [&] { return processors_near(start.devices); }};
  auto chosen = choose_limits(*host, kind, settings.host, facts);
  if (!chosen) return tl::unexpected(chosen.error());
  SupervisedGroup group;
  group.root = settings.cgroup_root;
  group.name = "neap/" + settings.pool + "/" + std::to_string(start.allocation.value);
  group.limits = std::move(chosen->limits);
  const bool serves = kind == KindOfWork::inference;
  CgroupLimits& limits = group.limits;
  if (!limits.cpu_weight) {
    limits.cpu_weight = serves ? settings.service_weight : settings.training_weight;
  }
  if (!limits.io_weight) {
    limits.io_weight = serves ? settings.service_weight : settings.training_weight;
  }
  // What it takes of the machine's for placement is also what it gets, unless it says otherwise.
  if (*cpu > 0 && !chosen->asked.cpu_quota_milli) limits.cpu_quota_milli = *cpu;
  if (*memory > 0 && !chosen->asked.memory_max_bytes) limits.memory_max_bytes = *memory << 20;
  for (const Method method : methods_of(chosen->asked)) {
    group.required.emplace_back(name_of(method));
  }
  return group;
}

}  // namespace

namespace {

Result<void> make_folder(const std::string& path, mode_t mode) {
  const bool is_new = ::mkdir(path.c_str(), mode) == 0;
  if (!is_new && errno == EEXIST) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
    return fail(ErrorCode::conflict, "is no folder, and artefacts go there", path);
  }
  if (is_new && ::chmod(path.c_str(), mode) == 0) return {};  // whatever the umask is
  return fail(ErrorCode::unavailable,
              std::string("cannot be made for artefacts: ") + std::strerror(errno), path);
}

}  // namespace

Result<void> prepare_artifacts(const StartTask& start, const PlanSettings& settings) {
  const std::string& own = start.artifacts.own;
  if (own.empty()) return {};
  const std::string of_pipeline = settings.artifacts + "/" + own.substr(0, own.find('/'));
  const std::string folder = settings.artifacts + "/" + own;
  // Others pass through to what is theirs, and see nothing else.
  if (auto made = make_folder(settings.artifacts, 0711); !made) return made;
  if (auto made = make_folder(of_pipeline, 0711); !made) return made;
  if (auto made = make_folder(folder, 0750); !made) return made;
  const bool is_root = ::geteuid() == 0;
  if (is_root && ::lchown(folder.c_str(), start.owner.uid, start.owner.gid) != 0) {
    return fail(ErrorCode::unavailable,
                std::string("cannot be given to its owner: ") + std::strerror(errno), folder);
  }
  return {};
}

Result<bool> needs_port(const StartTask& start) {
  const auto launch = read_launch(start);
  if (!launch) return tl::unexpected(launch.error());
  return start.service.valid() || launch->find("health") != nullptr;
}

Result<SupervisedTask> plan_start(const StartTask& start, const PlanSettings& settings,
                                  std::optional<std::int32_t> port) {
  const auto launch = read_launch(start);
  if (!launch) return tl::unexpected(launch.error());
  const JsonFields fields(*launch, "launch.");
  SupervisedTask task;
  task.allocation = start.allocation;
  auto command = fields.strings("command", 4096, 128 * 1024);
  if (!command) return tl::unexpected(command.error());
  auto directory = fields.string("workdir", 4096);
  if (!directory) return tl::unexpected(directory.error());
  task.argv = std::move(*command);
  task.working_directory = std::move(*directory);
  task.log = settings.log;
  task.signals = start.contract.signals;
  if (start.contract.watch && fields.has("watch")) {
    auto watch = fields.string("watch", 4096);
    if (!watch) return tl::unexpected(watch.error());
    task.watch = std::move(*watch);
  }
  if (port) {
    if (auto read = plan_service(*launch, *port, task); !read) {
      return tl::unexpected(read.error());
    }
  }
  const User user = look_up(start.owner);
  task.uid = start.owner.uid;
  task.gid = start.owner.gid;
  task.groups = user.groups;
  task.environment = environment_of(start, *launch, user, task, settings.artifacts);
  if (!settings.cgroup_root.empty()) {
    auto group =
        group_of(start, settings, *launch, port ? KindOfWork::inference : KindOfWork::training);
    if (!group) return tl::unexpected(group.error());
    task.cgroup = std::move(*group);
  } else if (launch->find("host") != nullptr) {
    return fail(ErrorCode::unavailable, "host limits are off: this pool makes no control groups",
                start.name);
  }
  return task;
}

}  // namespace neap::local
