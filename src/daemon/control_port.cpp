#include "daemon/control_port.h"

#include <malloc.h>

#include <charconv>
#include <memory>
#include <optional>

#include "config/task_file.h"
#include "core/model/codec.h"
#include "core/model/pool_index.h"
#include "core/rules/adoption.h"
#include "daemon/adoption_views.h"
#include "daemon/control_calls.h"
#include "daemon/fit_profile.h"
#include "daemon/host_limit_views.h"
#include "daemon/log.h"
#include "daemon/model_claims.h"
#include "daemon/recovery.h"
#include "daemon/report_views.h"
#include "daemon/switch_views.h"
#include "daemon/team_view.h"
#include "journal/reader.h"
#include "journal/schema.h"

#ifndef NEAP_VERSION
#define NEAP_VERSION "0.1.0"
#endif
#ifndef NEAP_COMMIT
#define NEAP_COMMIT "unknown"
#endif

namespace neap::daemon {

namespace {

constexpr std::int64_t events_per_page = 1'000;

std::optional<std::uint64_t> as_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const TaskState* newest_named(const PoolState& state, std::string_view name) {
  if (const auto live = find_live_task(state, name)) return state.tasks.find(*live);
  const auto& ended = state.index->ended;
  for (auto at = ended.rbegin(); at != ended.rend(); ++at) {
    const TaskState* task = state.tasks.find(at->second);
    if (task != nullptr && task->spec.name == name) return task;
  }
  return nullptr;
}

const TaskState* by_id(const PoolState& state, std::uint64_t id) {
  if (id > 0xffffffffULL) return nullptr;
  return state.tasks.find(TaskId(static_cast<std::uint32_t>(id)));
}

const ServiceState* service_by_id(const PoolState& state, std::uint64_t id) {
  return id < state.services.size() ? &state.services[id] : nullptr;
}

std::string hex(std::uint64_t value) {
  std::string out(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4) out[i] = "0123456789abcdef"[value & 15];
  return out;
}

tl::unexpected<Error> no_task(std::string_view name) {
  return fail(ErrorCode::not_found, "no task is called " + std::string(name));
}

// Services and tasks share their names: who asks for the wrong one is told.
tl::unexpected<Error> no_task(const PoolState& state, const std::string& name) {
  if (!find_live_service(state, name)) return no_task(name);
  return fail(ErrorCode::not_found,
              name + " is a service; its replicas are tasks, called " + name + ".0 and so on");
}
tl::unexpected<Error> no_service(const PoolState& state, const std::string& name) {
  const char* what = find_live_task(state, name) ? " is a task, and no service" : nullptr;
  return fail(ErrorCode::not_found, what != nullptr ? name + what : "no service is called " + name);
}

}  // namespace

ControlPort::ControlPort(Loop& loop, ViewContext context, Outside outside, Loop::Clock clock)
    : loop_(loop),
      context_(std::move(context)),
      outside_(std::move(outside)),
      clock_(std::move(clock)) {}

Result<api::Subject> ControlPort::find_task(std::string_view name_or_id) {
  const std::string name(name_or_id);
  return ask<api::Subject>([name](const PoolState& state, const Books&) -> Result<api::Subject> {
    const TaskState* task = newest_named(state, name);
    if (task == nullptr) {
      if (const auto id = as_number(name)) task = by_id(state, *id);
    }
    if (task == nullptr) return no_task(state, name);
    return api::Subject{task->id.value, task->spec.name, task->spec.owner.uid};
  });
}

Result<api::Subject> ControlPort::find_service(std::string_view name_or_id) {
  const std::string name(name_or_id);
  return ask<api::Subject>([name](const PoolState& state, const Books&) -> Result<api::Subject> {
    const ServiceState* service = nullptr;
    if (const auto live = find_live_service(state, name)) {
      service = &state.service(*live);
    } else if (const auto id = as_number(name)) {
      service = service_by_id(state, *id);
    }
    if (service == nullptr) return no_service(state, name);
    return api::Subject{service->id.value, service->spec.name, service->spec.owner.uid};
  });
}

Result<api::Subject> ControlPort::submit(const api::Caller& /*caller*/, config::TaskFile file) {
  std::unique_lock claiming(claiming_, std::defer_lock);
  if (file.is_service()) claiming.lock();
  auto fitted = ask<std::shared_ptr<config::TaskFile>>(
      [this, file = std::move(file)](const PoolState& state,
                                     const Books&) -> Result<std::shared_ptr<config::TaskFile>> {
        auto copy = std::make_shared<config::TaskFile>(file);
        if (auto fits = config::fit_to_pool(state.spec, *copy); !fits) {
          return tl::unexpected(fits.error());
        }
        if (auto fits = fit_to_profile(state, *copy); !fits) return tl::unexpected(fits.error());
        if (auto free = check_models(state, *copy); !free) return tl::unexpected(free.error());
        if (auto assigned = service_ports_.assign(state, *copy); !assigned) {
          return tl::unexpected(assigned.error());
        }
        return copy;
      });
  if (!fitted) return tl::unexpected(fitted.error());
  const config::TaskFile& ready = **fitted;
  if (ready.is_service()) {
    auto outcome = tell(ServiceSubmitted{std::get<ServiceSpec>(ready.spec)});
    if (!outcome) return tl::unexpected(outcome.error());
    return find_service(ready.name());
  }
  auto outcome = tell(TaskSubmitted{std::get<TaskSpec>(ready.spec)});
  if (!outcome) return tl::unexpected(outcome.error());
  for (const Decision& decision : outcome->decisions) {
    if (const auto* refused = std::get_if<TaskRefused>(&decision)) {
      return fail(ErrorCode::refused,
                  "not admitted, condition " + refused->condition + ": " + refused->detail);
    }
    if (const auto* admitted = std::get_if<TaskAdmitted>(&decision)) {
      return api::Subject{admitted->task.value, ready.name(),
                          std::get<TaskSpec>(ready.spec).owner.uid};
    }
  }
  return find_task(ready.name());
}

Result<void> ControlPort::cancel_task(const api::Caller& caller, std::uint64_t id) {
  auto name = ask<std::string>([id](const PoolState& state, const Books&) -> Result<std::string> {
    const TaskState* task = by_id(state, id);
    if (task == nullptr) return no_task(std::to_string(id));
    if (has_ended(task->phase)) {
      return fail(ErrorCode::conflict,
                  task->spec.name + " has ended already: " + std::string(name_of(task->phase)));
    }
    return task->spec.name;
  });
  if (!name) return tl::unexpected(name.error());
  return tell(TaskCancelRequested{*name, caller.user}).map([](const auto&) {});
}

Result<void> ControlPort::cancel_service(const api::Caller& caller, std::uint64_t id) {
  auto name = ask<std::string>([id](const PoolState& state, const Books&) -> Result<std::string> {
    const ServiceState* service = service_by_id(state, id);
    if (service == nullptr) return fail(ErrorCode::not_found, "there is no such service");
    return service->spec.name;
  });
  if (!name) return tl::unexpected(name.error());
  return tell(ServiceRemoveRequested{*name, caller.user}).map([](const auto&) {});
}

Result<void> ControlPort::scale_service(const api::Caller& caller, std::uint64_t id,
                                        api::Scale scale) {
  auto event =
      ask<ServiceScaled>([id, scale, user = caller.user](const PoolState& state,
                                                         const Books&) -> Result<ServiceScaled> {
        const ServiceState* service = service_by_id(state, id);
        if (service == nullptr) return fail(ErrorCode::not_found, "there is no such service");
        ServiceScaled scaled{service->spec.name, service->spec.min_replicas,
                             service->spec.max_replicas, user};
        if (scale.replicas_min != api::unknown) {
          scaled.min_replicas = static_cast<std::int32_t>(scale.replicas_min);
          scaled.max_replicas = std::max(scaled.max_replicas, scaled.min_replicas);
        }
        if (scale.replicas_max != api::unknown) {
          scaled.max_replicas = static_cast<std::int32_t>(scale.replicas_max);
          if (scale.replicas_min == api::unknown) {
            scaled.min_replicas = std::min(scaled.min_replicas, scaled.max_replicas);
          }
        }
        return scaled;
      });
  if (!event) return tl::unexpected(event.error());
  return tell(*event).map([](const auto&) {});
}

Result<void> ControlPort::pause(const api::Caller& caller, std::string_view reason) {
  auto paused = ask<bool>(
      [](const PoolState& state, const Books&) -> Result<bool> { return state.pause.active; });
  if (!paused) return tl::unexpected(paused.error());
  if (*paused) return {};
  return tell(PauseRequested{caller.user, std::string(reason)}).map([](const auto&) {});
}

Result<void> ControlPort::resume(const api::Caller& caller) {
  auto paused = ask<bool>(
      [](const PoolState& state, const Books&) -> Result<bool> { return state.pause.active; });
  if (!paused) return tl::unexpected(paused.error());
  if (!*paused) return {};
  return tell(ResumeRequested{caller.user}).map([](const auto&) {});
}

Result<void> ControlPort::change_stage(const api::Caller& caller, const api::StageChange& change) {
  for (const AdoptionStage to :
       {AdoptionStage::physical, AdoptionStage::memory, AdoptionStage::time}) {
    if (name_of(to) != change.to) continue;
    return tell(AdoptionChangeRequested{to, caller.user, change.why, change.forced})
        .map([](const auto&) {});
  }
  return fail(ErrorCode::invalid_argument, "expected physical, memory or time", "to");
}

Result<api::PoolDetail> ControlPort::describe_pool() {
  return ask<api::PoolDetail>([this](const PoolState& state, const Books&) {
    return Result<api::PoolDetail>(view_pool(state, clock_(), context_));
  });
}

Result<api::ReviewReport> ControlPort::review(std::int64_t from_us) {
  return ask<api::ReviewReport>([this, from_us](const PoolState& state, const Books& books) {
    const Micros week = hours(7 * 24);
    const Time from = from_us == api::unknown ? state.now - week : Time(from_us);
    return Result<api::ReviewReport>(view_review(state, books, from, context_));
  });
}

Result<api::ProfileListing> ControlPort::profiles() {
  return ask<api::ProfileListing>([this](const PoolState& state, const Books&) {
    return Result<api::ProfileListing>(view_profiles(state, context_));
  });
}

Result<api::PoolStatus> ControlPort::status() {
  return ask<api::PoolStatus>([this](const PoolState& state, const Books&) {
    return Result<api::PoolStatus>(view_status(state, context_));
  });
}

Result<api::TaskListing> ControlPort::list_tasks() {
  return ask<api::TaskListing>([this](const PoolState& state, const Books&) {
    api::TaskListing listing{view_status(state, context_), {}};
    state.tasks.for_each(
        [&](const TaskState& task) { listing.tasks.push_back(view_task(state, task)); });
    return Result<api::TaskListing>(std::move(listing));
  });
}

Result<api::ServiceListing> ControlPort::list_services() {
  return ask<api::ServiceListing>([this](const PoolState& state, const Books&) {
    api::ServiceListing listing{view_status(state, context_), {}};
    for (const ServiceState& service : state.services) {
      if (service.removed && service.replicas.empty()) continue;
      listing.services.push_back(view_service(state, service));
      listing.services.back().address = outside_.address_of(service.spec.name);
    }
    return Result<api::ServiceListing>(std::move(listing));
  });
}

Result<api::DeviceListing> ControlPort::list_devices() {
  return ask<api::DeviceListing>([this](const PoolState& state, const Books&) {
    api::DeviceListing listing{view_status(state, context_), {}};
    for (const DeviceState& device : state.devices) {
      listing.devices.push_back(view_device(state, device, context_));
    }
    return Result<api::DeviceListing>(std::move(listing));
  });
}

Result<api::TaskDetail> ControlPort::describe_task(std::uint64_t id) {
  return ask<api::TaskDetail>(
      [this, id](const PoolState& state, const Books& books) -> Result<api::TaskDetail> {
        const TaskState* task = by_id(state, id);
        if (task == nullptr) return no_task(std::to_string(id));
        api::TaskDetail detail = view_task_detail(state, books, *task, context_);
        detail.host.asked = host_limits_asked(task->spec.launch);
        const bool runs = holds_devices(task->phase) && task->phase != Phase::waiting;
        if (runs && outside_.host_limits) {
          outside_.host_limits(task->allocation, task->purpose, detail.host);
        }
        return detail;
      });
}

Result<api::LatencyReport> ControlPort::latency(std::uint64_t id) {
  auto report = ask<api::LatencyReport>(
      [this, id](const PoolState& state, const Books&) -> Result<api::LatencyReport> {
        const ServiceState* service = service_by_id(state, id);
        if (service == nullptr) return fail(ErrorCode::not_found, "there is no such service");
        api::LatencyReport made;
        made.pool = view_status(state, context_);
        made.subject = view_service(state, *service).subject;
        return made;
      });
  if (!report) return report;
  if (auto filled = outside_.latency(report->subject.name, *report); !filled) {
    return tl::unexpected(filled.error());
  }
  return report;
}

Result<api::ServiceDetail> ControlPort::describe_service(std::uint64_t id) {
  return ask<api::ServiceDetail>([this, id](const PoolState& state,
                                            const Books& books) -> Result<api::ServiceDetail> {
    const ServiceState* service = service_by_id(state, id);
    if (service == nullptr) return fail(ErrorCode::not_found, "there is no such service");
    api::ServiceDetail detail;
    detail.pool = view_status(state, context_);
    detail.row = view_service(state, *service);
    detail.row.address = outside_.address_of(service->spec.name);
    detail.declared = {{"concurrency", std::to_string(service->spec.concurrency)},
                       {"gpus", std::to_string(service->spec.request.count)},
                       {"compute", std::to_string(service->spec.request.share.value / 10) + "%"}};
    for (api::Attribute& asked : host_limits_asked(service->spec.launch)) {
      detail.declared.push_back({"host." + asked.name, std::move(asked.value)});
    }
    for (const TaskId replica : service->replicas) {
      const TaskState& task = state.tasks.at(replica);
      const char* health = task.ready                      ? "ready"
                           : task.phase == Phase::stopping ? "draining"
                           : task.phase == Phase::waiting  ? "unknown"
                                                           : "starting";
      detail.replicas.push_back(
          {view_task(state, task), health, outside_.port_of(task.allocation)});
    }
    const Time now = std::max(clock_(), state.now);
    detail.switches = view_switches(state, books.ledger(), *service, now);
    return detail;
  });
}

Result<api::WhyReport> ControlPort::why(std::uint64_t id) {
  // The search for what would start it works on a copy, off the loop's thread.
  auto copy = ask<std::shared_ptr<PoolState>>(
      [id](const PoolState& state, const Books&) -> Result<std::shared_ptr<PoolState>> {
        if (by_id(state, id) == nullptr) return no_task(std::to_string(id));
        return std::make_shared<PoolState>(state);
      });
  if (!copy) return tl::unexpected(copy.error());
  const PoolState& state = **copy;
  Result<api::WhyReport> report =
      view_why(state, *by_id(state, id), std::max(clock_(), state.now), context_);
  const bool waits = by_id(state, id)->phase == Phase::waiting;
  // The many small parts of a large copy would stay with the process.
  copy->reset();
  ::malloc_trim(0);
  if (waits) {
    if (const auto starts = outside_.starts()) view_start(*starts, id, clock_(), *report);
  }
  return report;
}

Result<api::ForecastReport> ControlPort::forecast() {
  const auto starts = outside_.starts();
  return ask<api::ForecastReport>([this, starts](const PoolState& state, const Books&) {
    api::ForecastReport report;
    if (starts) report = view_forecast(state, *starts, clock_());
    report.pool = view_status(state, context_);
    return Result<api::ForecastReport>(std::move(report));
  });
}

Result<api::TeamListing> ControlPort::list_teams() {
  return ask<api::TeamListing>([this](const PoolState& state, const Books&) {
    api::TeamListing listing;
    listing.pool = view_status(state, context_);
    listing.teams = view_teams(state);
    return Result<api::TeamListing>(std::move(listing));
  });
}

Result<api::LogChunk> ControlPort::read_log(std::uint64_t id, api::LogRange range) {
  struct Place {
    AllocationId allocation;
    std::string state;
    std::int64_t exit_code;
  };
  auto place = ask<Place>([id](const PoolState& state, const Books&) -> Result<Place> {
    const TaskState* task = by_id(state, id);
    if (task == nullptr) return no_task(std::to_string(id));
    const api::TaskRow row = view_task(state, *task);
    return Place{task->allocation, row.state, row.exit_code};
  });
  if (!place) return tl::unexpected(place.error());
  api::LogChunk chunk;
  if (place->allocation.valid()) {
    auto read = outside_.read_log(place->allocation, range);
    if (!read) return read;
    chunk = std::move(*read);
  }
  chunk.state = place->state;
  chunk.exit_code = place->exit_code;
  return chunk;
}

Result<std::vector<api::EventRow>> ControlPort::events_after(std::uint64_t after,
                                                             std::int64_t limit) {
  auto reader = journal::Reader::open(outside_.journal_path);
  if (!reader) return tl::unexpected(reader.error());
  auto oldest = reader->first_sequence();
  if (!oldest) return tl::unexpected(oldest.error());
  auto head = reader->head();
  if (!head) return tl::unexpected(head.error());
  auto cursor = reader->from(std::min(std::max(after + 1, *oldest), head->sequence + 1));
  if (!cursor) return tl::unexpected(cursor.error());
  std::vector<Record> records;
  const std::int64_t most = std::clamp<std::int64_t>(limit, 1, events_per_page);
  while (static_cast<std::int64_t>(records.size()) < most) {
    auto next = cursor->next();
    if (!next) return tl::unexpected(next.error());
    if (!next->has_value()) break;
    auto record = decode_record(**next);
    if (!record) return tl::unexpected(record.error());
    records.push_back(std::move(*record));
  }
  // The question owns what it reads: it may run after this call gave up waiting.
  auto shared = std::make_shared<std::vector<Record>>(std::move(records));
  return ask<std::vector<api::EventRow>>([shared](const PoolState& state, const Books& books) {
    std::vector<api::EventRow> rows;
    for (Record& record : *shared) {
      if (const auto* event = std::get_if<Event>(&record.body)) {
        if (const ReportStamp* stamp = stamp_of(*event)) {
          record.reporter = books.task_of(stamp->source);
        }
      }
      rows.push_back(view_event(state, record));
    }
    return Result<std::vector<api::EventRow>>(std::move(rows));
  });
}

Result<api::UsageReport> ControlPort::usage() {
  return ask<api::UsageReport>([this](const PoolState& state, const Books& books) {
    const Time now = std::max(clock_(), books.ledger().now());
    return Result<api::UsageReport>(view_usage(state, books, now, context_));
  });
}

Result<ledger::PreemptionReport> ControlPort::preemptions(std::int64_t window_us) {
  return ask<ledger::PreemptionReport>(
      [this, window_us](const PoolState& state, const Books& books) {
        const Time now = std::max(clock_(), state.now);
        const Time since(std::max<std::int64_t>(0, now.us - window_us));
        return Result<ledger::PreemptionReport>(books.preemptions().report(state, since, now));
      });
}

Result<void> ControlPort::start_drill(const api::Caller& caller, const api::DrillOrder& order) {
  return tell(drill_of(order, caller.user)).map([](const auto&) {});
}

Result<void> ControlPort::stop_drill(const api::Caller& caller) {
  return tell(DrillStopRequested{caller.user}).map([](const auto&) {});
}

Result<api::DrillReport> ControlPort::drill() {
  return ask<api::DrillReport>([](const PoolState& state, const Books&) {
    return Result<api::DrillReport>(view_drill(state));
  });
}

Result<api::VersionInfo> ControlPort::version() {
  return ask<api::VersionInfo>([](const PoolState& state, const Books&) {
    api::VersionInfo info;
    info.version = NEAP_VERSION;
    info.commit = NEAP_COMMIT;
    info.schema = std::to_string(journal::schema_version);
    info.sequence = state.sequence;
    info.state_hash = hex(hash_of(state));
    return Result<api::VersionInfo>(std::move(info));
  });
}

Result<std::vector<api::DoctorCheck>> ControlPort::doctor() {
  if (auto alive = status(); !alive) return tl::unexpected(alive.error());
  return outside_.doctor();
}

}  // namespace neap::daemon
