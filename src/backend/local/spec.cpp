#include "backend/local/spec.h"

#include <limits>

#include "backend/local/json.h"

namespace neap::local {
namespace {

constexpr std::int64_t most_uint32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t day_us = 86'400'000'000;

// Reads fields one after the other and keeps the first error, so that the caller reads straight.
class Reader {
 public:
  Reader(const Json& object, std::string where)
      : object_(object), fields_(object, where), where_(std::move(where)) {}

  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) {
    return keep(fields_.integer(key, low, high), low);
  }
  std::uint32_t unsigned32(std::string_view key) {
    return static_cast<std::uint32_t>(integer(key, 0, most_uint32));
  }
  std::int32_t small(std::string_view key, std::int32_t low, std::int32_t high) {
    return static_cast<std::int32_t>(integer(key, low, high));
  }
  Micros micros(std::string_view key) { return Micros(integer(key, 0, day_us)); }
  [[nodiscard]] bool has(std::string_view key) const { return fields_.has(key); }
  std::optional<std::int64_t> optional(std::string_view key, std::int64_t low) {
    if (!fields_.has(key)) return std::nullopt;
    return integer(key, low, json_integer_max);
  }
  std::string text(std::string_view key, std::size_t limit) {
    std::string value = keep(fields_.string(key, limit), std::string());
    if (value.find('\0') != std::string::npos) refuse(key, "must not hold a zero byte");
    return value;
  }
  std::vector<std::string> texts(std::string_view key, std::size_t count, std::size_t size) {
    auto values = keep(fields_.strings(key, count, size), std::vector<std::string>());
    for (const std::string& value : values) {
      if (value.find('\0') != std::string::npos) refuse(key, "must not hold a zero byte");
    }
    return values;
  }
  const Json* object(std::string_view key) {
    const Json* value = object_.find(key);
    if (value != nullptr && value->kind != Json::Kind::object) {
      refuse(key, "expected an object");
      return nullptr;
    }
    return value;
  }
  const Json* list(std::string_view key) {
    const Json* value = object_.find(key);
    if (value == nullptr || value->kind != Json::Kind::array) {
      refuse(key, "expected a list");
      return nullptr;
    }
    return value;
  }
  void refuse(std::string_view key, std::string_view why) {
    std::string message = where_;
    message.append(key).append(": ").append(why);
    adopt(Error{ErrorCode::invalid_argument, std::move(message), {}});
  }
  void known(std::initializer_list<std::string_view> names) {
    if (const auto name = fields_.unknown(names)) {
      adopt({ErrorCode::invalid_argument, *name + ": no such field", {}});
    }
  }
  void adopt(Error error) {
    if (!error_) error_ = std::move(error);
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  template <class T>
  T keep(const Result<T>& value, T otherwise) {
    if (value) return *value;
    adopt(value.error());
    return otherwise;
  }

  const Json& object_;
  JsonFields fields_;
  std::string where_;
  std::optional<Error> error_;
};

void read_service(Reader& outer, SupervisedTask& task) {
  const Json* object = outer.object("service");
  if (object == nullptr) return;
  Reader in(*object, "service.");
  in.known({"port", "health_path", "interval_us", "timeout_us", "failures"});
  SupervisedService service;
  service.port = in.small("port", 1, 65535);
  service.health_path = in.text("health_path", 1024);
  if (!service.health_path.starts_with('/') ||
      service.health_path.find_first_of(" \r\n\t") != std::string::npos) {
    in.refuse("health_path", "expected a path that begins with / and has no blanks");
  }
  service.interval = in.micros("interval_us");
  service.timeout = in.micros("timeout_us");
  service.failures = in.small("failures", 1, 1000);
  if (in.error()) outer.adopt(*in.error());
  task.service = std::move(service);
}

void read_group(Reader& outer, SupervisedTask& task) {
  const Json* object = outer.object("cgroup");
  if (object == nullptr) return;
  Reader in(*object, "cgroup.");
  in.known({"root", "name", "cpu_weight", "cpu_quota_milli", "memory_max_bytes", "processes_max",
            "cpus", "memory_high_bytes", "io_weight", "network_bytes", "io", "traffic_class",
            "required"});
  SupervisedGroup group;
  group.root = in.text("root", 4096);
  group.name = in.text("name", 1024);
  const bool inside = !group.name.empty() && group.name.front() != '/' &&
                      ("/" + group.name + "/").find("/../") == std::string::npos;
  if (!inside) in.refuse("name", "expected a relative path without ..");
  group.limits.cpu_weight = in.optional("cpu_weight", 1);
  group.limits.cpu_quota_milli = in.optional("cpu_quota_milli", 1);
  group.limits.memory_max_bytes = in.optional("memory_max_bytes", 1);
  group.limits.processes_max = in.optional("processes_max", 1);
  group.limits.memory_high_bytes = in.optional("memory_high_bytes", 1);
  group.limits.io_weight = in.optional("io_weight", 1);
  group.limits.network_bytes = in.optional("network_bytes", 1);
  group.limits.cpus = in.text("cpus", 1024);
  // What follows is not in the specs of earlier versions, whose tasks may still run.
  if (in.has("traffic_class")) group.traffic_class = in.unsigned32("traffic_class");
  if (in.has("required")) group.required = in.texts("required", 64, 64);
  const auto io = in.has("io") ? in.texts("io", 64, 256) : std::vector<std::string>();
  for (const std::string& text : io) {
    auto limit = parse_io_text(text);
    if (!limit) {
      in.refuse("io", "expected texts such as '8:0 rbps=1000 wbps=max riops=max wiops=max'");
      break;
    }
    group.limits.io.push_back(std::move(*limit));
  }
  if (in.error()) outer.adopt(*in.error());
  task.cgroup = std::move(group);
}

void read_groups(Reader& in, SupervisedTask& task) {
  const Json* list = in.list("groups");
  if (list == nullptr) return;
  if (list->items.size() > 65536) return in.refuse("groups", "more than 65536");
  for (const Json& item : list->items) {
    if (item.kind != Json::Kind::integer || item.integer < 0 || item.integer > most_uint32) {
      return in.refuse("groups", "expected group ids");
    }
    task.groups.push_back(static_cast<std::uint32_t>(item.integer));
  }
}

void check_environment(Reader& in, const SupervisedTask& task) {
  for (const std::string& entry : task.environment) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      return in.refuse("environment", "expected NAME=value, not '" + entry + "'");
    }
  }
}

}  // namespace

std::string spec_text(const SupervisedTask& task) {
  JsonObject out;
  out.add("allocation", static_cast<std::int64_t>(task.allocation.value));
  out.add("epoch", static_cast<std::int64_t>(task.epoch));
  out.add("argv", task.argv).add("environment", task.environment);
  out.add("working_directory", task.working_directory);
  out.add("uid", static_cast<std::int64_t>(task.uid));
  out.add("gid", static_cast<std::int64_t>(task.gid));
  out.add_integers("groups", {task.groups.begin(), task.groups.end()});
  out.add("umask", static_cast<std::int64_t>(task.umask));
  out.add("signals", std::int64_t{task.signals ? 1 : 0}).add("watch", task.watch);
  out.add("watch_settle_us", task.watch_settle.value);
  out.add("watch_interval_us", task.watch_interval.value);
  out.add("log_file_bytes", task.log.file_bytes).add("log_files", task.log.files);
  out.add("steps_every_us", task.steps_every.value).add("linger_us", task.linger.value);
  if (task.service) {
    JsonObject service;
    service.add("port", task.service->port).add("health_path", task.service->health_path);
    service.add("interval_us", task.service->interval.value);
    service.add("timeout_us", task.service->timeout.value);
    service.add("failures", task.service->failures);
    out.add_object("service", service);
  }
  if (task.cgroup) {
    JsonObject group;
    const CgroupLimits& limits = task.cgroup->limits;
    group.add("root", task.cgroup->root).add("name", task.cgroup->name);
    if (limits.cpu_weight) group.add("cpu_weight", *limits.cpu_weight);
    if (limits.cpu_quota_milli) group.add("cpu_quota_milli", *limits.cpu_quota_milli);
    if (limits.memory_max_bytes) group.add("memory_max_bytes", *limits.memory_max_bytes);
    if (limits.processes_max) group.add("processes_max", *limits.processes_max);
    if (limits.memory_high_bytes) group.add("memory_high_bytes", *limits.memory_high_bytes);
    if (limits.io_weight) group.add("io_weight", *limits.io_weight);
    if (limits.network_bytes) group.add("network_bytes", *limits.network_bytes);
    group.add("cpus", limits.cpus);
    std::vector<std::string> io;
    for (const IoLimit& limit : limits.io) io.push_back(io_text(limit));
    group.add("io", io);
    group.add("traffic_class", static_cast<std::int64_t>(task.cgroup->traffic_class));
    group.add("required", task.cgroup->required);
    out.add_object("cgroup", group);
  }
  return out.line() + "\n";
}

Result<SupervisedTask> parse_spec(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return tl::unexpected(json.error());
  if (json->kind != Json::Kind::object) {
    return fail(ErrorCode::invalid_argument, "expected a JSON object");
  }
  Reader in(*json, "");
  in.known({"allocation", "epoch", "argv", "environment", "working_directory", "uid", "gid",
            "groups", "umask", "signals", "watch", "watch_settle_us", "watch_interval_us",
            "log_file_bytes", "log_files", "steps_every_us", "linger_us", "service", "cgroup"});
  SupervisedTask task;
  task.allocation =
      AllocationId(static_cast<std::uint64_t>(in.integer("allocation", 0, json_integer_max)));
  task.epoch = in.unsigned32("epoch");
  task.argv = in.texts("argv", 4096, 128 * 1024);
  if (task.argv.empty() || task.argv.front().empty()) in.refuse("argv", "expected a program");
  task.environment = in.texts("environment", 4096, 128 * 1024);
  check_environment(in, task);
  task.working_directory = in.text("working_directory", 4096);
  if (!task.working_directory.starts_with('/')) {
    in.refuse("working_directory", "expected an absolute path");
  }
  task.uid = in.unsigned32("uid");
  task.gid = in.unsigned32("gid");
  read_groups(in, task);
  task.umask = static_cast<std::uint32_t>(in.integer("umask", 0, 0777));
  task.signals = in.integer("signals", 0, 1) == 1;
  task.watch = in.text("watch", 4096);
  task.watch_settle = in.micros("watch_settle_us");
  task.watch_interval = in.micros("watch_interval_us");
  task.log.file_bytes = in.integer("log_file_bytes", 1024, json_integer_max);
  task.log.files = in.small("log_files", 1, 1000);
  task.steps_every = in.micros("steps_every_us");
  task.linger = in.micros("linger_us");
  read_service(in, task);
  read_group(in, task);
  if (in.error()) return tl::unexpected(*in.error());
  return task;
}

std::string spec_path(const std::string& directory) { return directory + "/spec.json"; }
std::string control_path(const std::string& directory) { return directory + "/control.sock"; }
std::string contract_path(const std::string& directory) { return directory + "/contract.sock"; }
std::string lock_path(const std::string& directory) { return directory + "/lock"; }
std::string started_path(const std::string& directory) { return directory + "/started.json"; }
std::string exit_path(const std::string& directory) { return directory + "/exit.json"; }

}  // namespace neap::local
