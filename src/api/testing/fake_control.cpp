#include "api/testing/fake_control.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "config/pipeline_file.h"

namespace neap::api::testing {

namespace {

constexpr std::uint32_t stranger = 4242;

TaskRow row_of(std::uint64_t id, const std::string& name, std::uint32_t uid,
               const std::string& state) {
  TaskRow row;
  row.subject = {id, name, uid};
  row.kind = "training";
  row.user = std::to_string(uid);
  row.team = "default";
  row.tier = "batch";
  row.state = state;
  row.gpus = 2;
  row.compute_milli = 1000;
  row.memory_mib = 81920;
  row.submitted_us = 1'000'000;
  return row;
}

ServiceRow service_of(std::uint64_t id, const std::string& name, std::uint32_t uid) {
  ServiceRow row;
  row.subject = {id, name, uid};
  row.user = std::to_string(uid);
  row.team = "default";
  row.tier = "inference";
  row.state = "ready";
  row.replicas_min = 1;
  row.replicas_max = 4;
  row.replicas_wanted = 1;
  row.replicas_ready = 1;
  return row;
}

}  // namespace

FakeControl::FakeControl() {
  tasks_.push_back({row_of(1, "mine", ::getuid(), "running"), "line 1\nline 2\n"});
  tasks_.push_back({row_of(2, "theirs", stranger, "waiting"), "secret\n"});
  tasks_.push_back({row_of(3, "done", ::getuid(), "finished"), "bye\n"});
  tasks_[0].row.node = "n1";
  tasks_[0].row.devices = {"SIM-n1-0", "SIM-n1-1"};
  tasks_[0].row.started_us = 2'000'000;
  tasks_[1].row.place = 1;
  tasks_[1].row.reason = "too few wholly free devices";
  tasks_[2].row.exit_code = 7;
  services_ = {service_of(1, "chat", ::getuid()), service_of(2, "other", stranger)};
}

FakeControl::Task* FakeControl::task(std::uint64_t id) {
  const auto found = std::find_if(tasks_.begin(), tasks_.end(),
                                  [&](const Task& one) { return one.row.subject.id == id; });
  return found == tasks_.end() ? nullptr : &*found;
}

void FakeControl::note(const std::string& text, const Caller& caller) {
  asked_.push_back(text + " by " + caller.user);
}

PoolStatus FakeControl::pool() const {
  PoolStatus pool;
  pool.version = "0.1.0";
  pool.device_source = "simulated";
  pool.sequence = events_.empty() ? 0 : events_.back().sequence;
  pool.now_us = 10'000'000;
  pool.paused_by = paused_by_;
  if (!paused_by_.empty()) pool.paused_since_us = 5'000'000;
  pool.devices_total = 4;
  pool.devices_usable = 4;
  return pool;
}

Result<Subject> FakeControl::find_task(std::string_view name_or_id) {
  const std::lock_guard lock(mutex_);
  for (const Task& one : tasks_) {
    if (one.row.subject.name == name_or_id || std::to_string(one.row.subject.id) == name_or_id) {
      return one.row.subject;
    }
  }
  return fail(ErrorCode::not_found, "no task is called " + std::string(name_or_id));
}

Result<Subject> FakeControl::find_service(std::string_view name_or_id) {
  const std::lock_guard lock(mutex_);
  for (const ServiceRow& one : services_) {
    if (one.subject.name == name_or_id) return one.subject;
  }
  return fail(ErrorCode::not_found, "no service is called " + std::string(name_or_id));
}

Result<Subject> FakeControl::submit(const Caller& caller, config::TaskFile file) {
  PoolSpec pool;
  pool.total_gpus = 4;
  pool.tiers = {{"inference", 100, Purpose::inference}, {"batch", 40, Purpose::batch}};
  if (auto fitted = config::fit_to_pool(pool, file); !fitted) {
    return tl::unexpected(fitted.error());
  }
  const std::lock_guard lock(mutex_);
  for (const Task& one : tasks_) {
    if (one.row.subject.name == file.name() && !is_final(one.row.state)) {
      return fail(ErrorCode::conflict, "a live task is called " + file.name(), "name");
    }
  }
  note("submit " + file.name(), caller);
  const std::uint64_t id = tasks_.size() + 1;
  launch_ = std::visit([](const auto& spec) { return spec.launch; }, file.spec);
  tasks_.push_back({row_of(id, file.name(), caller.uid, "waiting"), ""});
  return tasks_.back().row.subject;
}

Result<Subject> FakeControl::replace(const Caller& caller, config::TaskFile file) {
  const std::lock_guard lock(mutex_);
  note("replace " + file.name(), caller);
  return Subject{1, file.name(), caller.uid};
}

Result<Subject> FakeControl::find_pipeline(std::string_view name_or_id) {
  const std::lock_guard lock(mutex_);
  for (const PipelineRow& one : pipelines_) {
    if (one.subject.name == name_or_id) return one.subject;
  }
  return fail(ErrorCode::not_found, "no pipeline is called " + std::string(name_or_id));
}

Result<Subject> FakeControl::submit_pipeline(const Caller& caller, config::PipelineFile file) {
  const std::lock_guard lock(mutex_);
  if (file.stages.size() > 2) {
    return fail(ErrorCode::invalid_argument, "is too much", "stages[2].gpus");
  }
  note("submit pipeline " + file.name, caller);
  PipelineRow row;
  row.subject = {pipelines_.size() + 1, file.name, caller.uid};
  row.state = "waiting";
  for (const config::PipelineFile::Stage& stage : file.stages) {
    StageRow& out = row.stages.emplace_back();
    out.name = stage.name;
    out.state = "waiting";
  }
  pipelines_.push_back(row);
  return row.subject;
}

Result<void> FakeControl::cancel_pipeline(const Caller& caller, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  note("cancel pipeline " + std::to_string(id), caller);
  return {};
}

Result<PipelineListing> FakeControl::list_pipelines() {
  const std::lock_guard lock(mutex_);
  return PipelineListing{pool(), pipelines_};
}

Result<PipelineDetail> FakeControl::describe_pipeline(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  return PipelineDetail{pool(), pipelines_.at(id - 1)};
}

Result<void> FakeControl::cancel_task(const Caller& caller, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  note("cancel " + std::to_string(id), caller);
  return {};
}

Result<void> FakeControl::cancel_service(const Caller& caller, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  note("cancel service " + std::to_string(id), caller);
  return {};
}

Result<void> FakeControl::cancel_version(const Caller& caller, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  note("cancel version " + std::to_string(id), caller);
  return {};
}

Result<void> FakeControl::scale_service(const Caller& caller, std::uint64_t id, Scale scale) {
  const std::lock_guard lock(mutex_);
  note("scale " + std::to_string(id) + " " + std::to_string(scale.replicas_min) + ".." +
           std::to_string(scale.replicas_max),
       caller);
  return {};
}

Result<void> FakeControl::pause(const Caller& caller, std::string_view reason) {
  const std::lock_guard lock(mutex_);
  note("pause \"" + std::string(reason) + "\"", caller);
  paused_by_ = caller.user;
  return {};
}

Result<void> FakeControl::resume(const Caller& caller) {
  const std::lock_guard lock(mutex_);
  note("resume", caller);
  paused_by_.clear();
  return {};
}

Result<void> FakeControl::change_stage(const Caller& caller, const StageChange& change) {
  const std::lock_guard lock(mutex_);
  if (change.to == "time" && !change.forced) {
    return fail(ErrorCode::conflict, "the check of stage memory is not passed: drill");
  }
  note("stage " + change.to + (change.forced ? " forced" : ""), caller);
  return {};
}

Result<PoolDetail> FakeControl::describe_pool() {
  const std::lock_guard lock(mutex_);
  PoolDetail detail;
  detail.pool = pool();
  detail.pool.stage = "memory";
  detail.pool.preset = "balanced";
  detail.pool.isolation = "shares";
  detail.next_stage = "time";
  detail.stage_since_us = 1'000'000;
  detail.gates = {{"stabilised", true, "200 h 0 min, at least 168 h 0 min"},
                  {"drill", false, "no drill has been run in this stage"}};
  detail.seen = {{"starts", "12"}};
  detail.changes = {{1'000'000, "physical", "memory", true, "ops", "in a hurry", "faults: 1"}};
  detail.derived = {{"pool.elastic_buffer", "16"}};
  return detail;
}

Result<ReviewReport> FakeControl::review(std::int64_t from_us) {
  const std::lock_guard lock(mutex_);
  ReviewReport report;
  report.pool = pool();
  report.from_us = from_us;
  report.to_us = from_us + 7 * 86'400'000'000;
  report.verdict = "more-for-training";
  report.why = "training waited while the guard was free";
  report.guard_next = 6;
  report.buffer_next = 5;
  report.evidence = {"guard 16, free for 60.0 % of its time; buffer 16"};
  report.figures = {{"short_minutes", "0"}};
  return report;
}

Result<ProfileListing> FakeControl::profiles() {
  const std::lock_guard lock(mutex_);
  ProfileRow row;
  row.name = "vision/resnet";
  row.kind = "batch";
  row.declared_mib = 8'192;
  row.memory_mib = {5, 9'000, 9'216};
  row.work_us = {5, 3'600'000'000, 4'000'000'000};
  row.owners = {tasks_[0].row.subject.owner_uid};
  return ProfileListing{pool(), {row}};
}

Result<PoolStatus> FakeControl::status() {
  const std::lock_guard lock(mutex_);
  return pool();
}

Result<TaskListing> FakeControl::list_tasks() {
  const std::lock_guard lock(mutex_);
  TaskListing listing{pool(), {}};
  for (const Task& one : tasks_) listing.tasks.push_back(one.row);
  return listing;
}

Result<ServiceListing> FakeControl::list_services() {
  const std::lock_guard lock(mutex_);
  return ServiceListing{pool(), services_};
}

Result<DeviceListing> FakeControl::list_devices() {
  const std::lock_guard lock(mutex_);
  DeviceRow device;
  device.name = "SIM-n1-0";
  device.node = "n1";
  device.model = "A100-80G";
  device.source = "simulated";
  device.partition = "shared";
  device.state = "usable";
  device.memory_mib = 81920;
  device.holders = {{tasks_[0].row.subject, 600, 16384}, {tasks_[1].row.subject, 300, 8192}};
  return DeviceListing{pool(), {device}};
}

Result<TaskDetail> FakeControl::describe_task(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const Task* found = task(id);
  if (found == nullptr) return fail(ErrorCode::not_found, "no such task");
  TaskDetail detail;
  detail.pool = pool();
  detail.row = found->row;
  detail.declared = {{"gpus", "2"}};
  detail.trail.push_back({1, 1'000'000, "waiting", "", "submitted"});
  detail.trail.push_back({2, 2'000'000, "running", "n1: SIM-n1-0", "two devices were free"});
  return detail;
}

Result<ServiceDetail> FakeControl::describe_service(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  return ServiceDetail{pool(), services_.at(id - 1), {}, {{tasks_[0].row, "ready", 18'000}}, {},
                       {}};
}

Result<WhyReport> FakeControl::why(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const Task* found = task(id);
  if (found == nullptr) return fail(ErrorCode::not_found, "no such task");
  WhyReport report;
  report.pool = pool();
  report.row = found->row;
  report.code = "whole_devices";
  report.reason = "too few wholly free devices";
  report.place = 1;
  report.queue_length = 1;
  report.unblocks = {"mine ends", "it asks for 1 device"};
  report.admission = {{"interruptible", "met", "it has a contract"}};
  report.start_p50_us = report.pool.now_us + 120'000'000;
  report.start_p90_us = report.pool.now_us + 7'500'000'000;
  report.forecast_age_us = 12'000'000;
  report.forecast_draws = 50;
  return report;
}

Result<TeamListing> FakeControl::list_teams() {
  const std::lock_guard lock(mutex_);
  TeamListing listing;
  listing.pool = pool();
  listing.teams = {{"lab", "", 6'000, 0, 2'000, 4'000, 12'000, 1, 2, 3},
                   {"vision", "lab", 6'000, 0, 2'000, 2'000, unknown, 2, 2, 1}};
  return listing;
}

Result<LatencyReport> FakeControl::latency(std::uint64_t service) {
  const std::lock_guard lock(mutex_);
  LatencyReport report;
  report.pool = pool();
  report.subject = services_.at(service - 1).subject;
  report.requests = 1'200;
  report.slo_first_byte_us = 500'000;
  report.objective_ppm = 990'000;
  report.burns = {{"fast", 3'600'000'000, 300'000'000, 14'400, 20'000, 31'000, true},
                  {"slow", 21'600'000'000, 1'800'000'000, 6'000, unknown, unknown, false}};
  LatencyWindowRow window{
      .length_us = 60'000'000, .requests = 100, .good = 90, .failed = 1, .shed = 9};
  window.first_byte = {90, 12'000, 40'000, 80'000, 95'000};
  report.series = {{"service", "", {window}}, {"class", "high", {window}}};
  report.engine.replicas = 1;
  report.engine.asked = 2;
  report.engine.running = 3;
  report.engine.inter_token_p50_us = 21'000;
  return report;
}

Result<ContentionReport> FakeControl::contention(WorkKind kind, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  ContentionReport report;
  report.pool = pool();
  report.subject =
      kind == WorkKind::service ? services_.at(id - 1).subject : tasks_.at(id - 1).row.subject;
  report.mode = "auto";
  report.windows = 12;
  report.resource = "cpu";
  report.confidence_ppm = 950'000;
  report.slowdown_milli = 7'300;
  report.neighbour = "train";
  report.evidence = {{"waits for a processor", "%", 71.5, 20}};
  report.rung = "flow";
  report.rung_resource = "cpu";
  report.moves = {{1'000'000, "none", "flow", "cpu", "train", "waits", "", 12'500}};
  report.training_steps_milli_per_s = 10'600;
  report.training_steps_before_milli_per_s = 12'500;
  return report;
}

Result<BaselineReport> FakeControl::baseline(WorkKind kind, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  BaselineReport report;
  report.pool = pool();
  report.subject =
      kind == WorkKind::service ? services_.at(id - 1).subject : tasks_.at(id - 1).row.subject;
  report.at_us = 5'000'000;
  report.alone.inter_token_p50_us = 2'000;
  report.mixed.inter_token_p50_us = 14'000;
  report.frozen = {"train"};
  return report;
}

Result<void> FakeControl::measure_baseline(WorkKind, std::uint64_t, const BaselineOrder&) {
  return {};
}

Result<ForecastReport> FakeControl::forecast() {
  const std::lock_guard lock(mutex_);
  ForecastReport report;
  report.pool = pool();
  report.made_us = report.pool.now_us - 12'000'000;
  report.age_us = 12'000'000;
  report.draws = 50;
  report.horizon_us = 1'209'600'000'000;
  // The second one is another user's; so late that no replay saw it start.
  for (const Task& task : tasks_) report.starts.push_back({task.row.subject, unknown, unknown});
  report.starts[0].p50_us = report.pool.now_us + 120'000'000;
  return report;
}

Result<LogChunk> FakeControl::read_log(std::uint64_t id, LogRange range) {
  const std::lock_guard lock(mutex_);
  const Task* found = task(id);
  if (found == nullptr) return fail(ErrorCode::not_found, "no such task");
  const auto size = static_cast<std::int64_t>(found->log.size());
  const std::int64_t from = range.offset < 0 ? std::max<std::int64_t>(0, size + range.offset)
                                             : std::min(size, range.offset);
  LogChunk chunk;
  chunk.bytes =
      found->log.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(range.max_bytes));
  chunk.next_offset = from + static_cast<std::int64_t>(chunk.bytes.size());
  chunk.state = found->row.state;
  chunk.exit_code = found->row.exit_code;
  return chunk;
}

Result<std::vector<EventRow>> FakeControl::events_after(std::uint64_t after, std::int64_t limit) {
  const std::lock_guard lock(mutex_);
  std::vector<EventRow> page;
  for (const EventRow& event : events_) {
    if (event.sequence > after && static_cast<std::int64_t>(page.size()) < limit) {
      page.push_back(event);
    }
  }
  return page;
}

Result<ledger::PreemptionReport> FakeControl::preemptions(std::int64_t window_us) {
  ledger::PreemptionReport report;
  report.until = Time(window_us);
  return report;
}

Result<void> FakeControl::start_drill(const Caller& caller, const DrillOrder& order) {
  note("drill of " + order.service + " to " + std::to_string(order.replicas), caller);
  return {};
}

Result<void> FakeControl::stop_drill(const Caller& caller) {
  note("stop drill", caller);
  return {};
}

Result<DrillReport> FakeControl::drill() {
  DrillReport report;
  report.phase = "demand";
  report.victims.push_back({{2, "theirs", 4242}, 1, 2});
  return report;
}

Result<UsageReport> FakeControl::usage() {
  const std::lock_guard lock(mutex_);
  UsageReport report;
  report.pool = pool();
  report.provisioned = "100";
  report.categories = {{"useful", "60"}, {"idle", "40"}};
  report.effective_utilisation_ppm = 600'000;
  report.tasks = 3;
  report.mean_wait_us = 1'500'000;
  for (const ServiceRow& service : services_) {
    SwitchRow row;
    row.service = service.subject.name;
    row.owner_uid = service.subject.owner_uid;
    row.device_time = "10";
    report.switches.push_back(row);
  }
  return report;
}

Result<VersionInfo> FakeControl::version() {
  VersionInfo info;
  info.version = "0.1.0";
  info.commit = "abc";
  info.schema = "1";
  return info;
}

Result<std::vector<DoctorCheck>> FakeControl::doctor() {
  return std::vector<DoctorCheck>{{"journal", "ok", "writes in 1 ms", ""}};
}

std::vector<std::string> FakeControl::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

void FakeControl::set_state(std::uint64_t id, const std::string& state, std::int64_t exit_code) {
  const std::lock_guard lock(mutex_);
  task(id)->row.state = state;
  task(id)->row.exit_code = exit_code;
}

void FakeControl::append_log(std::uint64_t id, std::string_view text) {
  const std::lock_guard lock(mutex_);
  task(id)->log.append(text);
}

void FakeControl::add_event(EventRow event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

std::string FakeControl::submitted() const {
  const std::lock_guard lock(mutex_);
  return launch_;
}

}  // namespace neap::api::testing
