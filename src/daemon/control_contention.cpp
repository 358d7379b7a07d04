#include "daemon/contention.h"
#include "daemon/control_calls.h"
#include "daemon/views.h"

namespace neap::daemon {
namespace {

const ServiceState* live_service(const PoolState& state, std::uint64_t id) {
  if (id >= state.services.size() || state.services[id].removed) return nullptr;
  return &state.services[id];
}

// Names the work of an answer; not_found when there is none.
Result<api::Subject> subject_of_work(const PoolState& state, api::WorkKind kind, std::uint64_t id) {
  if (kind == api::WorkKind::service) {
    const ServiceState* service = live_service(state, id);
    if (service == nullptr) return fail(ErrorCode::not_found, "there is no such service");
    return view_service(state, *service).subject;
  }
  const TaskState* task = state.tasks.find(TaskId(static_cast<std::uint32_t>(id)));
  if (task == nullptr) return fail(ErrorCode::not_found, "there is no such task");
  return api::Subject{id, task->spec.name, task->spec.owner.uid};
}

}  // namespace

Result<api::ContentionReport> ControlPort::contention(api::WorkKind kind, std::uint64_t id) {
  auto report = ask<api::ContentionReport>(
      [this, kind, id](const PoolState& state, const Books&) -> Result<api::ContentionReport> {
        auto subject = subject_of_work(state, kind, id);
        if (!subject) return tl::unexpected(subject.error());
        api::ContentionReport made;
        made.pool = view_status(state, context_);
        made.subject = std::move(*subject);
        return made;
      });
  if (report && outside_.contention != nullptr) {
    outside_.contention->fill(kind, report->subject.name, *report);
  }
  return report;
}

Result<api::BaselineReport> ControlPort::baseline(api::WorkKind kind, std::uint64_t id) {
  auto report = ask<api::BaselineReport>(
      [this, kind, id](const PoolState& state, const Books&) -> Result<api::BaselineReport> {
        auto subject = subject_of_work(state, kind, id);
        if (!subject) return tl::unexpected(subject.error());
        api::BaselineReport made;
        made.pool = view_status(state, context_);
        made.subject = std::move(*subject);
        return made;
      });
  if (!report) return report;
  if (outside_.contention == nullptr) return fail(ErrorCode::unavailable, "nothing is watched");
  if (auto found = outside_.contention->baseline(kind, report->subject.name, *report); !found) {
    return tl::unexpected(found.error());
  }
  return report;
}

Result<void> ControlPort::measure_baseline(api::WorkKind kind, std::uint64_t id,
                                           const api::BaselineOrder& order) {
  const auto subject = ask<api::Subject>([kind, id](const PoolState& state, const Books&) {
    return subject_of_work(state, kind, id);
  });
  if (!subject) return tl::unexpected(subject.error());
  if (outside_.contention == nullptr) return fail(ErrorCode::unavailable, "nothing is watched");
  return outside_.contention->order(kind, subject->name, order);
}

}  // namespace neap::daemon
