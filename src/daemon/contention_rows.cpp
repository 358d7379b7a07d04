#include "daemon/contention_rows.h"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "backend/local/durable_file.h"
#include "backend/local/json.h"
#include "backend/local/spec.h"

namespace neap::daemon {
namespace {

std::int64_t us_of(const std::optional<Micros>& length) {
  return length ? length->value : api::unknown;
}
std::int64_t ppm_of(const std::optional<Ppm>& part) { return part ? part->value : api::unknown; }
std::int64_t known_of(const std::optional<std::int64_t>& value) {
  return value.value_or(api::unknown);
}
// Nothing takes no time: a length of 0 was not measured, and nothing is compared with it.
std::optional<Micros> length_of(std::int64_t us) {
  return us <= 0 ? std::nullopt : std::optional(Micros(us));
}
std::optional<std::int64_t> number_of(std::int64_t value) {
  return value == api::unknown ? std::nullopt : std::optional(value);
}

}  // namespace

api::SpeedRow row_of(const measure::Speed& speed) {
  api::SpeedRow row;
  row.first_byte_p50_us = us_of(speed.first_byte_p50);
  row.first_byte_p99_us = us_of(speed.first_byte_p99);
  row.inter_token_p50_us = us_of(speed.inter_token_p50);
  row.inter_token_p99_us = us_of(speed.inter_token_p99);
  row.step_us = us_of(speed.step);
  row.requests_milli_per_s = known_of(speed.requests_milli_per_s);
  return row;
}

api::UseRow row_of(const std::string& name, const measure::Use& use) {
  api::UseRow row;
  row.name = name;
  row.cpu_milli = known_of(use.cpu_milli);
  row.cpu_wait_ppm = ppm_of(use.cpu_wait);
  row.memory_bytes = known_of(use.memory_bytes);
  row.io_bytes_per_s = known_of(use.io_bytes_per_s);
  row.major_faults_milli_per_s = known_of(use.major_faults_milli_per_s);
  return row;
}

api::LadderMoveRow row_of(const measure::LadderMove& move, const std::string& fault) {
  api::LadderMoveRow row;
  row.at_us = move.at.us;
  row.from = measure::name_of(move.from);
  row.to = measure::name_of(move.to);
  row.resource = measure::name_of(move.resource);
  row.neighbour = move.neighbour;
  row.why = move.why;
  row.fault = fault;
  return row;
}

void fill_diagnosis(const measure::Diagnosis& verdict, api::ContentionReport& into) {
  into.resource = measure::name_of(verdict.resource);
  into.confidence_ppm = verdict.confidence.value;
  into.slowdown_milli = known_of(verdict.slowdown_milli);
  into.neighbour = verdict.neighbour;
  for (const measure::Evidence& one : verdict.evidence) {
    into.evidence.push_back({one.signal, one.unit, one.value, one.limit});
  }
  into.unknown_signals = verdict.unknown;
}

measure::Alone alone_of(const api::BaselineReport& report) {
  measure::Alone out;
  const api::SpeedRow& speed = report.alone;
  out.speed.first_byte_p50 = length_of(speed.first_byte_p50_us);
  out.speed.first_byte_p99 = length_of(speed.first_byte_p99_us);
  out.speed.inter_token_p50 = length_of(speed.inter_token_p50_us);
  out.speed.inter_token_p99 = length_of(speed.inter_token_p99_us);
  out.speed.step = length_of(speed.step_us);
  out.speed.requests_milli_per_s = number_of(speed.requests_milli_per_s);
  out.machine.disk_await = length_of(report.use_alone.disk_await_us);
  out.use.cpu_milli = number_of(report.use_alone.cpu_milli);
  out.use.memory_bytes = number_of(report.use_alone.memory_bytes);
  out.use.io_bytes_per_s = number_of(report.use_alone.io_bytes_per_s);
  return out;
}

std::string line_of(const std::string& service, const api::LadderMoveRow& row) {
  local::JsonObject out;
  out.add("service", service)
      .add("at_us", row.at_us)
      .add("from", row.from)
      .add("to", row.to)
      .add("resource", row.resource)
      .add("neighbour", row.neighbour)
      .add("why", row.why)
      .add("fault", row.fault);
  if (row.training_steps_milli_per_s != api::unknown) {
    out.add("training_steps_milli_per_s", row.training_steps_milli_per_s);
  }
  return out.line();
}

void append_bounded(const std::string& path, std::uintmax_t bytes_max, const std::string& line) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size + line.size() > bytes_max) std::filesystem::rename(path, path + ".1", error);
  std::ofstream(path, std::ios::app) << line << '\n';
}

void keep_limits(const std::string& path, const local::CgroupLimits& limits) {
  local::SupervisedTask task;
  task.allocation = AllocationId(0);
  task.argv = {"usual"};
  task.cgroup.emplace();
  task.cgroup->name = "usual";
  task.cgroup->limits = limits;
  // Without the file the limits of a rung would be taken for the usual ones after a crash; what
  // cannot be written is no reason to leave a service slow.
  (void)local::write_durably(path, local::spec_text(task), 0600);
}

Result<local::CgroupLimits> kept_limits(const std::string& path) {
  const auto text = local::read_bounded(path, local::spec_size_limit);
  if (!text) return tl::unexpected(text.error());
  const auto task = local::parse_spec(*text);
  if (!task) return tl::unexpected(task.error());
  if (!task->cgroup) return fail(ErrorCode::invalid_argument, "holds no limits", path);
  return task->cgroup->limits;
}

Result<void> keep_frozen(const std::string& path, const std::set<AllocationId>& frozen) {
  if (frozen.empty()) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    return {};
  }
  std::string text;
  for (const AllocationId one : frozen) text += std::to_string(one.value) + '\n';
  return local::write_durably(path, text, 0600);
}

std::set<AllocationId> kept_frozen(const std::string& path) {
  constexpr std::size_t bytes_max = std::size_t{1} << 20;
  const std::string text = local::read_bounded(path, bytes_max).value_or("");
  std::set<AllocationId> out;
  const char* at = text.data();
  const char* last = at + text.size();
  while (at < last) {
    AllocationId one;
    const auto [end, error] = std::from_chars(at, last, one.value);
    if (error == std::errc{}) out.insert(one);
    at = end + 1;
  }
  return out;
}

}  // namespace neap::daemon
