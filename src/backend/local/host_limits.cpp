#include "backend/local/host_limits.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace neap::local {
namespace {

constexpr std::size_t most_entries = 64;
constexpr std::size_t path_limit = 4096;

using Amount = std::optional<std::int64_t>;

// Keeps the first error, so that the caller reads straight.
class LimitReader {
 public:
  LimitReader(const Json& object, std::string where)
      : object_(object), fields_(object, where), where_(std::move(where)) {
    if (object.kind != Json::Kind::object)
      adopt({ErrorCode::invalid_argument, named() + ": expected an object", {}});
  }

  void amount(std::string_view key, Amount& into, std::int64_t high = json_integer_max) {
    if (!fields_.has(key)) return;
    auto value = fields_.integer(key, 1, high);
    if (!value) return adopt(value.error());
    into = *value;
  }
  std::string text(std::string_view key, std::size_t limit) {
    if (!fields_.has(key)) return "";
    auto value = fields_.string(key, limit);
    if (value) return *value;
    adopt(value.error());
    return "";
  }
  std::vector<std::string> texts(std::string_view key, std::size_t size) {
    if (!fields_.has(key)) return {};
    auto value = fields_.strings(key, most_entries, size);
    if (value) return *value;
    adopt(value.error());
    return {};
  }
  std::string path() {
    std::string value = text("path", path_limit);
    if (!value.starts_with('/') || value.find('\0') != std::string::npos) {
      adopt(wrong("path: expected an absolute path"));
    }
    return value;
  }
  const std::vector<Json>& list(std::string_view key) {
    static const std::vector<Json> none;
    const Json* value = object_.find(key);
    if (value == nullptr) return none;
    if (value->kind == Json::Kind::array && value->items.size() <= most_entries) {
      return value->items;
    }
    adopt(wrong(std::string(key) + ": expected a list of at json_integer_max 64"));
    return none;
  }
  const Json* find(std::string_view key) const { return object_.find(key); }
  void known(std::initializer_list<std::string_view> names) {
    if (const auto name = fields_.unknown(names)) {
      adopt({ErrorCode::invalid_argument, *name + ": no such field", {}});
    }
  }
  void adopt(Error error) {
    if (!error_) error_ = std::move(error);
  }
  [[nodiscard]] Error wrong(const std::string& what) const {
    return {ErrorCode::invalid_argument, where_ + what, {}};
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  // Where it stands, without the dot that goes before a field.
  [[nodiscard]] std::string named() const { return where_.substr(0, where_.rfind('.')); }

 private:
  const Json& object_;
  JsonFields fields_;
  std::string where_;
  std::optional<Error> error_;
};

IoLimit read_io(LimitReader& in) {
  IoLimit out;
  in.amount("read_bytes", out.read_bytes);
  in.amount("write_bytes", out.write_bytes);
  in.amount("read_operations", out.read_operations, std::numeric_limits<std::uint32_t>::max());
  in.amount("write_operations", out.write_operations, std::numeric_limits<std::uint32_t>::max());
  return out;
}

// "0-3,8"
bool is_cpu_list(std::string_view text) {
  bool digit = false;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      digit = true;
    } else if (digit && (c == '-' || c == ',')) {
      digit = false;
    } else {
      return false;
    }
  }
  return digit;
}

bool is_interface(std::string_view name) {
  return !name.empty() && name.size() <= 15 && name.front() != '-' && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c < 127 && c != '/' && c != ':'; });
}

Result<StorageClass> read_storage(const Json& object, const std::string& where) {
  LimitReader in(object, where);
  in.known(
      {"path", "class", "for", "read_bytes", "write_bytes", "read_operations", "write_operations"});
  if (in.error()) return tl::unexpected(*in.error());
  StorageClass out;
  out.path = in.path();
  const std::string kind = in.text("class", 64);
  if (kind != "throughput" && kind != "low_latency") {
    in.adopt(in.wrong("class: expected throughput or low_latency"));
  }
  out.kind = kind == "low_latency" ? StorageKind::low_latency : StorageKind::throughput;
  const std::string whom = in.text("for", 64);
  if (!whom.empty() && whom != "all" && whom != "inference" && whom != "training") {
    in.adopt(in.wrong("for: expected all, inference or training"));
  }
  out.for_inference = whom != "training";
  out.for_training = whom != "inference";
  out.limit = read_io(in);
  if (in.error()) return tl::unexpected(*in.error());
  return out;
}

Amount lower(const Amount& a, const Amount& b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

void join(std::vector<IoLimit>& all, IoLimit one) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const IoLimit& io) { return io.device == one.device; });
  if (found == all.end()) return all.push_back(std::move(one));
  found->read_bytes = lower(found->read_bytes, one.read_bytes);
  found->write_bytes = lower(found->write_bytes, one.write_bytes);
  found->read_operations = lower(found->read_operations, one.read_operations);
  found->write_operations = lower(found->write_operations, one.write_operations);
}

bool lies_below(std::string_view path, std::string_view above) {
  while (above.size() > 1 && above.ends_with('/')) above.remove_suffix(1);
  if (!path.starts_with(above)) return false;
  return above == "/" || path.size() == above.size() || path[above.size()] == '/';
}

const StorageClass* class_of(const std::string& path, KindOfWork kind, const HostPolicy& policy) {
  const StorageClass* best = nullptr;
  for (const StorageClass& one : policy.storage) {
    const bool meant = kind == KindOfWork::inference ? one.for_inference : one.for_training;
    if (!meant || !lies_below(path, one.path)) continue;
    if (best == nullptr || one.path.size() > best->path.size()) best = &one;
  }
  return best;
}

CgroupLimits overlaid(CgroupLimits base, const CgroupLimits& over) {
  if (over.cpu_weight) base.cpu_weight = over.cpu_weight;
  if (over.cpu_quota_milli) base.cpu_quota_milli = over.cpu_quota_milli;
  if (over.memory_max_bytes) base.memory_max_bytes = over.memory_max_bytes;
  if (over.memory_high_bytes) base.memory_high_bytes = over.memory_high_bytes;
  if (over.processes_max) base.processes_max = over.processes_max;
  if (over.io_weight) base.io_weight = over.io_weight;
  if (over.network_bytes) base.network_bytes = over.network_bytes;
  if (!over.cpus.empty()) base.cpus = over.cpus;
  return base;
}

Result<void> add_io(const std::vector<PathLimit>& from, const HostFacts& facts,
                    CgroupLimits& into) {
  for (const PathLimit& one : from) {
    IoLimit limit = one.limit;
    auto disk = facts.disk_of(one.path);
    if (!disk) return tl::unexpected(disk.error());
    limit.device = std::move(*disk);
    join(into.io, std::move(limit));
  }
  return {};
}

}  // namespace

Result<HostLimits> read_host_limits(const Json& object, const std::string& where) {
  LimitReader in(object, where);
  if (in.error()) return tl::unexpected(*in.error());
  in.known({"cpu_weight", "cpu_quota_milli", "cpus", "memory_max_mib", "memory_high_mib",
            "processes", "io_weight", "network_bytes", "io", "paths"});
  HostLimits out;
  CgroupLimits& limits = out.limits;
  in.amount("cpu_weight", limits.cpu_weight, 10'000);
  in.amount("cpu_quota_milli", limits.cpu_quota_milli, 1'000'000'000);
  in.amount("memory_max_mib", limits.memory_max_bytes, json_integer_max >> 20);
  in.amount("memory_high_mib", limits.memory_high_bytes, json_integer_max >> 20);
  if (limits.memory_max_bytes) *limits.memory_max_bytes <<= 20;
  if (limits.memory_high_bytes) *limits.memory_high_bytes <<= 20;
  in.amount("processes", limits.processes_max, 4'194'304);
  in.amount("io_weight", limits.io_weight, 10'000);
  in.amount("network_bytes", limits.network_bytes, 1'000'000'000'000);
  const std::string cpus = in.text("cpus", 1024);
  out.near = cpus == "near";
  if (!out.near) limits.cpus = cpus;
  if (!limits.cpus.empty() && !is_cpu_list(cpus)) {
    in.adopt(in.wrong("cpus: expected a list such as 0-3,8, or near"));
  }
  std::size_t index = 0;
  for (const Json& item : in.list("io")) {
    LimitReader entry(item, where + "io[" + std::to_string(index++) + "].");
    if (entry.error()) return tl::unexpected(*entry.error());
    entry.known({"path", "read_bytes", "write_bytes", "read_operations", "write_operations"});
    PathLimit one;
    one.path = entry.path();
    one.limit = read_io(entry);
    if (entry.error()) return tl::unexpected(*entry.error());
    out.io.push_back(std::move(one));
  }
  out.paths = in.texts("paths", path_limit);
  for (const std::string& path : out.paths) {
    if (!path.starts_with('/')) in.adopt(in.wrong("paths: expected absolute paths"));
  }
  if (in.error()) return tl::unexpected(*in.error());
  return out;
}

Result<HostPolicy> parse_host_policy(std::string_view text) {
  if (text.size() > host_text_limit) {
    return fail(ErrorCode::too_large, "more than 256 KiB of host limits");
  }
  const auto json = parse_json(text);
  if (!json) return tl::unexpected(json.error());
  LimitReader in(*json, "host.");
  if (in.error()) return tl::unexpected(*in.error());
  in.known({"inference", "training", "storage", "interfaces"});
  HostPolicy out;
  const std::pair<const char*, HostLimits*> kinds[] = {{"inference", &out.inference},
                                                       {"training", &out.training}};
  for (const auto& [key, into] : kinds) {
    const Json* object = in.find(key);
    if (object == nullptr) continue;
    auto limits = read_host_limits(*object, std::string("host.") + key + ".");
    if (!limits) return tl::unexpected(limits.error());
    *into = std::move(*limits);
  }
  std::size_t index = 0;
  for (const Json& item : in.list("storage")) {
    auto one = read_storage(item, "host.storage[" + std::to_string(index++) + "].");
    if (!one) return tl::unexpected(one.error());
    out.storage.push_back(std::move(*one));
  }
  out.interfaces = in.texts("interfaces", 64);
  for (const std::string& name : out.interfaces) {
    if (!is_interface(name)) in.adopt(in.wrong("interfaces: expected names such as eth0"));
  }
  if (in.error()) return tl::unexpected(*in.error());
  return out;
}

Result<ChosenLimits> choose_limits(const HostLimits& task, KindOfWork kind,
                                   const HostPolicy& policy, const HostFacts& facts) {
  const HostLimits& usual = kind == KindOfWork::inference ? policy.inference : policy.training;
  ChosenLimits out;
  out.asked = task.limits;
  if (auto added = add_io(task.io, facts, out.asked); !added) return tl::unexpected(added.error());
  for (const std::string& path : task.paths) {
    const StorageClass* storage = class_of(path, kind, policy);
    if (storage == nullptr) continue;
    auto added = add_io({{path, storage->limit}}, facts, out.asked);
    if (!added) return tl::unexpected(added.error());
  }
  CgroupLimits base = usual.limits;
  for (const HostLimits* from : {&task, &usual}) {
    if (!from->near || !out.asked.cpus.empty()) continue;
    auto near = facts.processors_near();
    // What the task asks for must be had; of what the pool gives all, what can be had.
    if (!near && from == &task) return tl::unexpected(near.error());
    if (near) (from == &task ? out.asked : base).cpus = *near;
  }
  out.limits = overlaid(base, out.asked);
  out.limits.io = out.asked.io;
  if (auto added = add_io(usual.io, facts, out.limits); !added) {
    return tl::unexpected(added.error());
  }
  return out;
}

}  // namespace neap::local
