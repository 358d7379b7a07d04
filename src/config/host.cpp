#include "config/host.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace neap::config {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t entries_max = 64;
constexpr std::int64_t cgroup_weight_max = 10'000;
constexpr std::int64_t operations_max = 1'000'000'000;

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void add_whole(Fields& fields, const char* key, Range range, Json& out) {
  std::int64_t value = 0;
  if (fields.whole(key, value, range)) out[key] = value;
}

void add_mib(Fields& fields, const char* key, const char* as, Json& out) {
  MiB value{0};
  if (fields.memory(key, value)) out[as] = value.value;
}

// A rate: so much memory a second.
void add_rate(Fields& fields, const char* key, const char* as, Json& out) {
  MiB value{0};
  if (!fields.memory(key, value)) return;
  if (value.value > 1 << 19) {
    fields.refuse(key, "is more a second than can be limited; expected at most 512GiB");
    return;
  }
  out[as] = value.value << 20;
}

// Disk limits of one entry. Says how many of bytes and of operations it found, wrong ones too:
// those were told already.
struct Found {
  int bytes = 0;
  int operations = 0;
};
Found add_disk(Fields& fields, Json& out) {
  add_rate(fields, "read", "read_bytes", out);
  add_rate(fields, "write", "write_bytes", out);
  const std::pair<const char*, const char*> operations[] = {{"read_iops", "read_operations"},
                                                            {"write_iops", "write_operations"}};
  for (const auto& [key, as] : operations) {
    std::int64_t value = 0;
    if (fields.whole(key, value, {1, operations_max})) out[as] = value;
  }
  Found found;
  for (const char* key : {"read", "write"}) found.bytes += fields.has(key) ? 1 : 0;
  for (const char* key : {"read_iops", "write_iops"}) found.operations += fields.has(key) ? 1 : 0;
  return found;
}

std::string absolute_path(const std::string& path, std::string_view workdir) {
  if (path.starts_with('/') || workdir.empty()) return path;
  return std::string(workdir) + (workdir.ends_with('/') ? "" : "/") + path;
}

// Such as 0-3,8: numbers that the kernel knows, ranges that go upwards.
bool is_cpu_list(std::string_view text) {
  constexpr int processors_max = 8'192;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    int ends[2] = {0, 0};
    const char* const end = part.data() + part.size();
    const auto first = std::from_chars(part.data(), end, ends[0]);
    ends[1] = ends[0];
    bool whole = first.ec == std::errc() && first.ptr == end;
    if (first.ec == std::errc() && !whole && *first.ptr == '-') {
      const auto last = std::from_chars(first.ptr + 1, end, ends[1]);
      whole = last.ec == std::errc() && last.ptr == end;
    }
    if (!whole || ends[0] < 0 || ends[1] < ends[0] || ends[1] >= processors_max) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

bool is_of_one_line(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; });
}

void add_path(Fields& fields, std::string_view workdir, Json& out) {
  std::string path;
  if (!fields.text("path", path, Need::required)) return;
  path = absolute_path(path, workdir);
  if (!path.starts_with('/'))
    fields.refuse("path", "is a relative path; expected an absolute_path one");
  out["path"] = path;
}

// What task files and both kinds of work in pool files may say.
Json read_limits(Fields& fields, std::string_view workdir) {
  Json out = Json::object();
  add_whole(fields, "cpu_weight", {1, cgroup_weight_max}, out);
  std::int64_t quota = 0;
  if (fields.parsed("cpu_quota", quota, parse_cpu_milli)) {
    if (quota < 10)
      fields.refuse("cpu_quota", "is less than the kernel can hold; expected 10milli or more");
    out["cpu_quota_milli"] = quota;
  }
  std::string cpus;
  if (fields.text("cpus", cpus, Need::optional, 1024)) {
    if (cpus != "near" && !is_cpu_list(cpus)) {
      fields.refuse("cpus", "is no list of processors; expected one such as 0-3,8, or near");
    }
    out["cpus"] = cpus;
  }
  add_mib(fields, "memory_max", "memory_max_mib", out);
  add_mib(fields, "memory_high", "memory_high_mib", out);
  if (out.contains("memory_max_mib") && out.contains("memory_high_mib") &&
      out["memory_high_mib"].get<std::int64_t>() > out["memory_max_mib"].get<std::int64_t>()) {
    fields.refuse("memory_high",
                  "is above memory_max, which would come first; expected at most that");
  }
  add_whole(fields, "processes", {1, 4'194'304}, out);
  add_whole(fields, "io_weight", {1, cgroup_weight_max}, out);
  add_rate(fields, "network", "network_bytes", out);
  Json io = Json::array();
  fields.each("io", entries_max, [&](Fields& item) {
    Json entry = Json::object();
    add_path(item, workdir, entry);
    const Found found = add_disk(item, entry);
    if (item.present() && found.bytes + found.operations == 0) {
      item.missing("read", "a limit: read, write, read_iops or write_iops");
    }
    item.close();
    io.push_back(std::move(entry));
  });
  if (!io.empty()) out["io"] = std::move(io);
  return out;
}

Json read_storage(Fields& item) {
  Json entry = Json::object();
  add_path(item, "", entry);
  enum class Kind : std::uint8_t { none, throughput, low_latency };
  Kind kind = Kind::none;
  item.choice<Kind>("class", kind,
                    {{"throughput", Kind::throughput}, {"low_latency", Kind::low_latency}});
  if (item.present() && !item.has("class")) item.missing("class", "throughput or low_latency");
  entry["class"] = kind == Kind::low_latency ? "low_latency" : "throughput";
  enum class Whom : std::uint8_t { all, inference, training };
  Whom whom = Whom::all;
  if (item.choice<Whom>(
          "for", whom,
          {{"all", Whom::all}, {"inference", Whom::inference}, {"training", Whom::training}})) {
    entry["for"] = whom == Whom::all ? "all" : whom == Whom::inference ? "inference" : "training";
  }
  const Found found = add_disk(item, entry);
  // The class says what its users fight over: bytes where files are read through, operations
  // where each access counts.
  if (kind == Kind::throughput && found.bytes == 0) {
    item.missing("read", "a limit of bytes a second: read or write, for class throughput");
  } else if (kind == Kind::low_latency && found.operations == 0) {
    item.missing("read_iops",
                 "a limit of operations a second: read_iops or write_iops, for class "
                 "low_latency");
  }
  item.close();
  return entry;
}

bool is_interface(std::string_view name) {
  return !name.empty() && name.size() <= 15 && name.front() != '-' && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c < 127 && c != '/' && c != ':'; });
}

}  // namespace

std::string read_task_host(Fields fields, std::string_view workdir) {
  Json out = read_limits(fields, workdir);
  std::vector<std::string> paths;
  if (fields.texts("paths", paths, entries_max)) {
    for (std::string& path : paths) {
      path = absolute_path(path, workdir);
      if (!path.starts_with('/') || !is_of_one_line(path)) {
        fields.refuse("paths",
                      "holds " + in_quotes(path) + "; expected absolute paths of one line");
      }
    }
    out["paths"] = paths;
  }
  fields.close();
  return out.empty() ? "" : dumped(out);
}

void read_pool_host(Fields fields, PoolHost& into) {
  Json out = Json::object();
  fields.flag("verify", into.verify);
  for (const char* kind : {"inference", "training"}) {
    Fields section = fields.section(kind);
    Json limits = read_limits(section, "");
    section.close();
    if (!limits.empty()) out[kind] = std::move(limits);
  }
  Json storage = Json::array();
  fields.each("storage", entries_max, [&](Fields& item) { storage.push_back(read_storage(item)); });
  if (!storage.empty()) out["storage"] = std::move(storage);
  std::vector<std::string> interfaces;
  if (fields.texts("interfaces", interfaces, 16)) {
    for (const std::string& name : interfaces) {
      if (!is_interface(name)) {
        fields.refuse("interfaces",
                      "holds " + in_quotes(name) +
                          ", which names no network interface; expected such as eth0");
      }
    }
    out["interfaces"] = interfaces;
  }
  fields.close();
  into.policy = dumped(out);
}

}  // namespace neap::config
