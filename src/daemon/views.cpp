#include "daemon/views.h"

#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/admit.h"
#include "core/rules/adoption.h"
#include "core/rules/explain.h"
#include "core/rules/keep_room.h"
#include "core/rules/profile.h"
#include "core/rules/promise_text.h"
#include "core/rules/tide.h"
#include "core/what_if.h"
#include "daemon/narrate.h"
#include "daemon/pipeline_views.h"
#include "daemon/report_views.h"
#include "daemon/switch_views.h"

#ifndef NEAP_VERSION
#define NEAP_VERSION "0.1.0"
#endif

namespace neap::daemon {

namespace {

std::string kind_of(const TaskState& task) {
  if (task.service.valid()) return "replica";
  return task.purpose == Purpose::interactive ? "interactive" : "training";
}

// "10min", "90s", "250ms": as the files write them.
std::string duration_text(Micros time) {
  const std::int64_t us = time.value;
  const auto in = [us](std::int64_t unit, const char* name) {
    return std::to_string(us / unit) + name;
  };
  if (us == 0) return "0s";
  if (us % 3'600'000'000 == 0) return in(3'600'000'000, "h");
  if (us % 60'000'000 == 0) return in(60'000'000, "min");
  if (us % 1'000'000 == 0) return in(1'000'000, "s");
  return in(1'000, "ms");
}

std::int64_t exit_code_of(const TaskState& task) {
  if (!has_ended(task.phase) && task.restarts == 0) return api::unknown;
  if (task.first_started == Time(0) || !task.allocation.valid()) return api::unknown;
  return task.exit_signal != 0 ? 128 + task.exit_signal : task.exit_code;
}

std::string yield_text(const PoolState& state, const TaskState& task) {
  if (task.stop_reason == StopReason::moved) return "moved to make room";
  const auto plan = state.plans.find(task.id);
  if (task.stop_reason != StopReason::resized || plan == state.plans.end()) {
    return std::string(name_of(task.stop_reason));
  }
  return "goes on with " + std::to_string(plan->second.slots.size()) + " devices";
}

std::string reason_of(const PoolState& state, const TaskState& task) {
  switch (task.phase) {
    case Phase::waiting:
      return explain_wait(state, task);
    case Phase::yielding:
      return "asked to yield (" + std::string(name_of(task.yield_mode)) + ", " +
             yield_text(state, task) + ")";
    case Phase::stopping:
      return "asked to stop: " + std::string(name_of(task.stop_reason));
    default:
      return task.detail;
  }
}

api::Subject subject_of(const TaskState& task) {
  return {task.id.value, task.spec.name, task.spec.owner.uid};
}

void declare(std::vector<api::Attribute>& out, std::string name, std::string value) {
  if (!value.empty()) out.push_back({std::move(name), std::move(value)});
}

std::string contract_text(const ContractSpec& contract) {
  std::string text;
  if (contract.sdk) text += "sdk ";
  if (contract.signals) text += "signals ";
  if (contract.watch) text += "watch ";
  if (!text.empty()) text.pop_back();
  return text.empty() ? "none" : text;
}

// What the file left open and the profile of its type gave.
std::string learned_text(std::uint8_t learned) {
  constexpr std::pair<Learned, const char*> names[] = {
      {Learned::work, "work"},
      {Learned::save, "checkpoint.save_time"},
      {Learned::stall, "checkpoint.stall_time"},
      {Learned::restore, "checkpoint.restore_time"},
      {Learned::memory, "memory"},
      {Learned::count, "gpus"},
  };
  std::string text;
  for (const auto& [field, name] : names) {
    if ((learned & learned_bit(field)) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

std::vector<api::Attribute> declared(const TaskState& task) {
  const TaskSpec& spec = task.spec;
  std::vector<api::Attribute> out;
  declare(out, "gpus",
          (spec.request.least > 0 ? std::to_string(spec.request.least) + "-" : "") +
              std::to_string(spec.request.count));
  declare(out, "compute", std::to_string(spec.request.share.value / 10) + "%");
  if (spec.request.memory.value > 0) {
    declare(out, "memory", std::to_string(spec.request.memory.value) + "MiB");
  }
  std::string models;
  for (const auto& model : spec.request.models) models += (models.empty() ? "" : ", ") + model;
  declare(out, "device_models", models);
  declare(out, "trust_domain", spec.request.trust_domain);
  declare(out, "baseline", spec.baseline);
  if (spec.work) declare(out, "work", duration_text(*spec.work));
  if (task.service.valid()) return out;
  declare(out, "interruptible", spec.interruptible ? "true" : "false");
  declare(out, "delay_tolerance", duration_text(spec.delay_tolerance));
  const ContractSpec& c = spec.contract;
  declare(out, "checkpoint.contract", contract_text(c));
  declare(out, "checkpoint.on_demand", c.on_demand || task.on_demand_seen ? "true" : "false");
  if (c.interval.value > 0) declare(out, "checkpoint.interval", duration_text(c.interval));
  declare(out, "checkpoint.restore_time", duration_text(c.restore));
  if (c.recovery.value > 0) declare(out, "checkpoint.recovery", duration_text(c.recovery));
  if (!task.checkpoint_path.empty()) {
    declare(out, "last_checkpoint",
            task.checkpoint_path + " (step " + std::to_string(task.durable_step) + ")");
  }
  declare(out, "lendable", task.releasable ? "true" : "false");
  declare(out, "profile", spec.profile);
  declare(out, "profile.gave", learned_text(spec.learned));
  if (task.seen_memory.value > 0) {
    declare(out, "memory.seen", std::to_string(task.seen_memory.value) + "MiB");
  }
  return out;
}

std::string device_state_text(const PoolState& state, const DeviceState& device) {
  const NodeState& node = state.node(device.node);
  if (!node.up || !node.reachable) return "lost";
  if (device.health != DeviceHealth::healthy) return "unhealthy";
  return device.excluded ? "filtered" : "usable";
}

std::string device_reason(const PoolState& state, const DeviceState& device) {
  const NodeState& node = state.node(device.node);
  if (!node.up) return "its node was lost";
  if (!node.reachable) return "its node cannot be reached";
  if (device.health != DeviceHealth::healthy) return device.health_detail;
  if (device.excluded) {
    return std::to_string(device.foreign.value) + " of " + std::to_string(device.memory.value) +
           " MiB are held by processes outside the pool";
  }
  return {};
}

}  // namespace

api::PoolStatus view_status(const PoolState& state, const ViewContext& context) {
  api::PoolStatus out;
  out.version = NEAP_VERSION;
  out.device_source = context.device_source;
  out.sequence = state.sequence;
  out.now_us = (context.clock ? std::max(context.clock(), state.now) : state.now).us;
  out.started_us = context.started.us;
  if (state.pause.active) {
    out.paused_by = state.pause.by.empty() ? "unknown" : state.pause.by;
    out.paused_since_us = state.pause.since.us;
  }
  out.devices_guard = state.spec.inference_guard_min;
  const std::int64_t rest = std::int64_t{state.index->usable_shared} - out.devices_guard;
  out.devices_buffer =
      std::clamp<std::int64_t>(lendable_wanted(state), 0, std::max<std::int64_t>(0, rest));
  for (const DeviceState& device : state.devices) {
    ++out.devices_total;
    out.devices_usable += is_usable(state, device) ? 1 : 0;
    if (device.role != Role::buffer) continue;
    out.devices_lent += std::any_of(device.tenants.begin(), device.tenants.end(),
                                    [&](const Tenant& t) {
                                      return state.tasks.at(t.task).purpose != Purpose::inference;
                                    })
                            ? 1
                            : 0;
  }
  state.tasks.for_each([&](const TaskState& task) {
    out.tasks_waiting += task.phase == Phase::waiting ? 1 : 0;
    out.tasks_running += holds_devices(task.phase) ? 1 : 0;
  });
  out.stage = std::string(name_of(state.adoption.stage));
  if (state.spec.preset != Preset::none) {
    out.preset = std::string(name_of(state.spec.preset));
    out.isolation = std::string(name_of(state.spec.isolation));
  }
  for (const auto& [name, detail] : state.conditions) out.conditions.push_back({name, detail});
  if (context.conditions) {
    for (api::Condition& more : context.conditions()) out.conditions.push_back(std::move(more));
  }
  return out;
}

api::TaskRow view_task(const PoolState& state, const TaskState& task) {
  api::TaskRow row;
  row.subject = subject_of(task);
  row.kind = kind_of(task);
  row.user = task.spec.owner.user;
  row.team = task.spec.team;
  row.tier = state.tier(task.tier).name;  // near its deadline it is another than it asked for
  if (task.service.valid()) row.service = state.service(task.service).spec.name;
  row.state = std::string(name_of(task.phase));
  row.reason = reason_of(state, task);
  if (task.phase == Phase::waiting) row.place = place_in_queue(state, task);
  if (task.phase == Phase::waiting && task.bound == BoundCode::issued) {
    row.start_by_us = task.start_by.us;
  }
  row.gpus = task.spec.request.count;
  row.least_gpus = task.spec.request.least;
  row.compute_milli = task.spec.request.share.value;
  row.memory_mib = task.spec.request.memory.value;
  for (const Slot& slot : task.slots) {
    const DeviceState& device = state.device(slot.device);
    row.devices.push_back(device.uuid);
    if (row.node.empty()) row.node = state.node(device.node).name;
  }
  row.submitted_us = task.submitted.us;
  if (task.started_at > Time(0)) row.started_us = task.started_at.us;
  if (has_ended(task.phase)) row.finished_us = task.phase_since.us;
  if (!task.checkpoint_path.empty()) row.last_checkpoint_us = task.captured.us;
  row.preemptions = task.preemptions;
  row.resizes = task.resizes;
  row.lost_work_us = task.lost.value;
  if (task.last_step > 0) row.step = task.last_step;
  row.exit_code = exit_code_of(task);
  return row;
}

api::ServiceRow view_service(const PoolState& state, const ServiceState& service) {
  api::ServiceRow row;
  row.subject = {service.id.value, service.spec.name, service.spec.owner.uid};
  row.user = service.spec.owner.user;
  row.team = service.spec.team;
  row.tier = service.spec.tier;
  row.replicas_min = service.removed ? 0 : service.spec.min_replicas;
  row.replicas_max = service.removed ? 0 : service.spec.max_replicas;
  for (const TaskId id : service.replicas) {
    const TaskState& task = state.tasks.at(id);
    if (task.phase == Phase::stopping || task.phase == Phase::yielding) {
      ++row.replicas_draining;
      continue;
    }
    ++row.replicas_wanted;
    if (task.ready) {
      ++row.replicas_ready;
    } else {
      ++row.replicas_starting;
    }
    if (task.phase == Phase::waiting && row.reason.empty()) {
      row.reason = task.spec.name + ": " + explain_wait(state, task);
    }
  }
  if (const std::string version = version_text(state, service); !version.empty()) {
    row.reason = version;
  }
  row.state = service.removed                          ? "removed"
              : row.replicas_ready >= row.replicas_min ? "ready"
              : row.replicas_ready > 0                 ? "degraded"
                                                       : "starting";
  const std::int64_t capacity = row.replicas_ready * service.spec.concurrency;
  if (service.in_use && capacity > 0) row.utilisation_ppm = *service.in_use * 1'000'000 / capacity;
  return row;
}

api::DeviceRow view_device(const PoolState& state, const DeviceState& device,
                           const ViewContext& context) {
  api::DeviceRow row;
  const NodeState& node = state.node(device.node);
  row.name = device.uuid;
  row.node = node.name;
  row.fault_domain = state.domains[node.domain.value];
  row.model = state.models[device.model.value].name;
  row.source = context.device_source;
  row.partition = device.role == Role::dedicated ? "dedicated" : "shared";
  row.role = std::string(name_of(device.role));
  row.state = device_state_text(state, device);
  row.reason = device_reason(state, device);
  row.memory_mib = device.memory.value;
  row.memory_free_mib = std::max<std::int64_t>(0, free_memory(state, device).value);
  row.memory_foreign_mib = device.foreign.value;
  row.compute_free_milli = std::max<std::int64_t>(0, free_share(device).value);
  for (const Tenant& tenant : device.tenants) {
    row.holders.push_back(
        {subject_of(state.tasks.at(tenant.task)), tenant.share.value, tenant.memory.value});
  }
  return row;
}

api::TaskDetail view_task_detail(const PoolState& state, const Books& books, const TaskState& task,
                                 const ViewContext& context) {
  api::TaskDetail out;
  out.pool = view_status(state, context);
  out.row = view_task(state, task);
  out.declared = declared(task);
  out.measured = view_checkpoints(state, task, books.checkpoints().of(task.id));
  declare(out.declared, "profile.warning",
          memory_warning(state, profile_key(task.spec.team, task.spec.profile), task.spec.request));
  for (TrailStep& step : books.trail_of(task.id)) {
    out.trail.push_back({step.sequence, step.time.us, std::string(name_of(step.phase)),
                         std::move(step.place), std::move(step.reason)});
  }
  return out;
}

api::WhyReport view_why(const PoolState& state, const TaskState& task, Time now,
                        const ViewContext& context) {
  api::WhyReport out;
  out.pool = view_status(state, context);
  out.row = view_task(state, task);
  out.code = std::string(name_of(wait_code_of(state, task)));
  out.reason = out.row.reason;
  // Whoever has devices claimed, or waits out a backoff, is not in the queue that is searched.
  const bool apart =
      out.row.place > 0 && !state.index->waiting[task.shape.value].contains(queue_key(task));
  out.queue_length = apart ? 1 : 0;
  for (auto s = state.index->waiting_shapes.first(); s;
       s = state.index->waiting_shapes.at_or_after(*s + 1)) {
    out.queue_length += static_cast<std::int64_t>(state.index->waiting[*s].size());
  }
  const Admission admission = admit(state, task);
  for (const char* condition : {"baseline", "predictable", "interruptible", "delay_tolerance"}) {
    const bool failed = admission.condition == condition;
    out.admission.push_back({condition, failed ? "failed" : "met", failed ? admission.detail : ""});
  }
  if (task.deadline != DeadlineVerdict::none) {
    const std::string refused = deadline_text(state, task);
    out.admission.push_back({"deadline", refused.empty() ? "met" : "failed", refused});
  }
  out.promise = promise_text(state, task);
  if (task.phase == Phase::waiting) {
    out.place = out.row.place;
    const Unblock unblock = find_unblock(state, task.id, now);
    out.unblocks.push_back(to_text(state, unblock));
    if (const auto plan = state.plans.find(task.id); plan != state.plans.end()) {
      out.estimate_us = needed_at(plan->second, now).us;
    }
  }
  return out;
}

namespace {

std::int64_t within_horizon(Time at) { return at == Time::never() ? api::unknown : at.us; }

}  // namespace

api::ForecastReport view_forecast(const PoolState& state, const forecast::Forecast& forecast,
                                  Time now) {
  api::ForecastReport out;
  out.made_us = forecast.made.us;
  out.age_us = std::max<std::int64_t>(0, (now - forecast.made).value);
  out.draws = forecast.draws;
  out.horizon_us = forecast::Limits{}.horizon.value;
  for (const forecast::Start& start : forecast.starts) {
    const TaskState* task = state.tasks.find(start.task);
    if (task == nullptr || task->phase != Phase::waiting) continue;
    out.starts.push_back({subject_of(*task), within_horizon(start.p50), within_horizon(start.p90)});
  }
  return out;
}

void view_start(const forecast::Forecast& forecast, std::uint64_t task, Time now,
                api::WhyReport& into) {
  const forecast::Start* start = forecast.of(TaskId(static_cast<std::uint32_t>(task)));
  if (start == nullptr) return;
  into.start_p50_us = within_horizon(start->p50);
  into.start_p90_us = within_horizon(start->p90);
  into.forecast_age_us = std::max<std::int64_t>(0, (now - forecast.made).value);
  into.forecast_draws = forecast.draws;
}

api::UsageReport view_usage(const PoolState& state, const Books& books, Time now,
                            const ViewContext& context) {
  api::UsageReport out;
  out.pool = view_status(state, context);
  const ledger::Totals totals = books.ledger().pool(now);
  out.provisioned = totals.provisioned.to_string();
  for (std::size_t c = 0; c < ledger::category_count; ++c) {
    out.categories.push_back({std::string(ledger::name_of(static_cast<ledger::Category>(c))),
                              totals.by_category[c].to_string()});
  }
  out.effective_utilisation_ppm = totals.effective_utilisation_ppm();
  out.unverified_ppm = totals.unverified_ppm();
  const ledger::Waits waits = books.ledger().waits(now);
  out.tasks = waits.tasks;
  out.mean_wait_us = waits.mean_us();
  out.switches = view_switches(state, books.ledger(), now);
  state.tasks.for_each([&](const TaskState& task) {
    out.preemptions += task.preemptions;
    out.lost_work_us += task.lost.value;
  });
  return out;
}

api::EventRow view_event(const PoolState& state, const Record& record) {
  Narration words;
  if (const auto* event = std::get_if<Event>(&record.body)) {
    words = narrate(state, record.time, *event, record.reporter);
  } else {
    words = narrate(state, record.time, std::get<Decision>(record.body));
  }
  api::EventRow row;
  row.sequence = record.sequence;
  row.time_us = record.time.us;
  row.about_pool = words.about_pool;
  row.kind = std::move(words.kind);
  row.subject = std::move(words.subject);
  row.owner_uid = words.owner_uid;
  row.message = std::move(words.message);
  return row;
}

}  // namespace neap::daemon
