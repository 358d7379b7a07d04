#include <sys/utsname.h>

#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "backend/local/block_device.h"
#include "backend/local/durable_file.h"
#include "backend/local/json.h"
#include "backend/local/verify.h"

namespace neap::local {
namespace {

// Groups that a daemon left which was killed while it tried something.
void sweep_groups(const CgroupRoot& root) {
  std::error_code error;
  std::vector<std::string> bases{root.path + "/neap"};
  for (const auto& entry : std::filesystem::directory_iterator(root.path, error)) {
    bases.push_back(entry.path().string() + "/neap");  // v1: one of them may be left alone
  }
  std::set<std::string> left;
  for (const std::string& base : bases) {
    for (const auto& entry : std::filesystem::directory_iterator(base, error)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("check-")) continue;
      const std::string pid = name.substr(6, name.find('-', 6) - 6);
      if (!std::filesystem::exists("/proc/" + pid, error)) left.insert(name);
    }
  }
  for (const std::string& name : left) Cgroup::existing(root, "neap/" + name).remove();
}

}  // namespace

std::string subject_of(const VerifyPlace& place) {
  std::string boot =
      read_bounded("/proc/sys/kernel/random/boot_id", 256).value_or(std::string("unknown"));
  while (!boot.empty() && boot.back() == '\n') boot.pop_back();
  utsname kernel{};
  (void)::uname(&kernel);
  std::string out = "boot " + boot + ", kernel " + kernel.release + ", groups " +
                    place.cgroup_root + ", disk " + disk_of(place.folder).value_or("none") +
                    ", interfaces";
  for (const std::string& name : place.interfaces) out += " " + name;
  return out;
}

std::string checks_text(std::string_view subject, const MethodChecks& checks) {
  JsonObject list;
  for (const auto& [method, check] : checks) {
    if (check.state == MethodState::unchecked) continue;
    JsonObject one;
    one.add("held", std::int64_t{check.state == MethodState::held ? 1 : 0});
    one.add("evidence", check.evidence);
    list.add_object(name_of(method), one);
  }
  JsonObject out;
  out.add("subject", subject).add_object("checks", list);
  return out.line() + "\n";
}

std::optional<MethodChecks> parse_checks(std::string_view text, std::string_view subject) {
  if (text.size() > kept_checks_limit) return std::nullopt;
  const auto json = parse_json(text);
  if (!json || json->kind != Json::Kind::object) return std::nullopt;
  const auto of = JsonFields(*json, "").string("subject", 4096);
  const Json* list = json->find("checks");
  if (!of || *of != subject || list == nullptr || list->kind != Json::Kind::object) {
    return std::nullopt;
  }
  MethodChecks out;
  for (const JsonMember& member : list->members) {
    const auto method = method_called(member.name);
    if (!method || member.value.kind != Json::Kind::object) return std::nullopt;
    const JsonFields fields(member.value, "");
    const auto is_held = fields.integer("held", 0, 1);
    auto evidence = fields.string("evidence", 4096);
    if (!is_held || !evidence) return std::nullopt;
    out[*method] = {*is_held == 1 ? MethodState::held : MethodState::failed, std::move(*evidence)};
  }
  return out;
}

MethodChecks verify_kept(const VerifyPlace& place, const std::string& file,
                         const std::function<bool()>& go_on) {
  const std::string subject = subject_of(place);
  sweep_groups(detect_cgroups(place.cgroup_root));
  MethodChecks checks;
  if (const auto text = read_bounded(file, kept_checks_limit)) {
    checks = parse_checks(*text, subject).value_or(MethodChecks());
  }
  std::vector<Method> open;
  for (const Method method : all_methods) {
    // One that failed is tried again: the machine may have been too busy, or was put right.
    const auto known = checks.find(method);
    if (known == checks.end() || known->second.state != MethodState::held) open.push_back(method);
  }
  for (auto& [method, check] : verify_methods(place, open, go_on)) checks[method] = check;
  (void)write_durably(file, checks_text(subject, checks), 0644);
  return checks;
}

}  // namespace neap::local
