#include "api/routes.h"

#include <pwd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "api/contention_routes.h"
#include "api/decode.h"
#include "api/encode.h"
#include "api/error_body.h"
#include "api/query.h"
#include "api/reports.h"
#include "config/pipeline_file.h"

namespace neap::api {

namespace {

using http::Request;
using http::Response;
constexpr std::int64_t page_max = 1000;
constexpr std::int64_t log_bytes_max = 256 * 1024;
constexpr std::int64_t week_us = 7 * 24 * 3'600 * std::int64_t{1'000'000};

Response failure(const Error& error) {
  const bool later = error.code == ErrorCode::exhausted || error.code == ErrorCode::unavailable;
  return {http_status_of(error.code), error_body(error), later ? 1 : 0};
}

Response failure(const config::Problems& problems) {
  return {http_status_of(ErrorCode::invalid_argument), error_body(problems)};
}

template <class Value>
Response reply(const Result<Value>& result) {
  if (!result) return failure(result.error());
  if constexpr (std::is_void_v<Value>) {
    return {200, "{}"};
  } else {
    return {200, encode(*result)};
  }
}

std::string login_name(std::uint32_t uid) {
  char space[16 * 1024];
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(uid, &entry, space, sizeof space, &found);
  return found == nullptr ? std::to_string(uid) : found->pw_name;
}

class Routes {
 public:
  explicit Routes(const RouteContext& context) : context_(context) {}

  [[nodiscard]] Caller caller_of(const Request& request) const {
    if (request.peer.by_token) return {context_.daemon_uid, context_.daemon_gid, 0, "token"};
    return {request.peer.uid, request.peer.gid, request.peer.pid, login_name(request.peer.uid)};
  }

  // The subject that the path names, when the caller may manage it.
  [[nodiscard]] Result<Subject> task_of(const Request& request, const Caller& caller) const {
    return allowed(context_.control.find_task(request.parameters.at("task")), caller);
  }
  [[nodiscard]] Result<Subject> service_of(const Request& request, const Caller& caller) const {
    return allowed(context_.control.find_service(request.parameters.at("service")), caller);
  }

  [[nodiscard]] Result<Subject> pipeline_of(const Request& request, const Caller& caller) const {
    return allowed(context_.control.find_pipeline(request.parameters.at("pipeline")), caller);
  }

  Response submit(const Request& request) const;
  Response list_pipelines(const Request& request) const;
  Response list_tasks(const Request& request) const;
  Response forecast(const Request& request) const;
  Response list_services(const Request& request) const;
  Response list_devices(const Request& request) const;
  Response events(const Request& request) const;
  Response log(const Request& request) const;
  Response scale(const Request& request) const;
  Response pause(const Request& request) const;
  Response resume(const Request& request) const;
  Response preemptions(const Request& request) const;
  Response usage(const Request& request) const;
  Response start_drill(const Request& request) const;
  Response stop_drill(const Request& request) const;
  Response drill(const Request& request) const;
  Response change_stage(const Request& request) const;
  Response profiles(const Request& request) const;
  Response with_task(const Request& request,
                     const std::function<Response(const Caller&, std::uint64_t)>& act) const;
  Response with_pipeline(const Request& request,
                         const std::function<Response(const Caller&, std::uint64_t)>& act) const;
  Response with_service(const Request& request,
                        const std::function<Response(const Caller&, std::uint64_t)>& act) const;
  [[nodiscard]] Control& control() const { return context_.control; }
  [[nodiscard]] auto may_administer(const Request& request) const {
    return context_.authority.may_administer(caller_of(request));
  }

 private:
  [[nodiscard]] Result<Subject> submit_work(const Caller& caller, const Submission& body,
                                            const config::TaskFile& file) const;
  [[nodiscard]] Result<Subject> allowed(Result<Subject> subject, const Caller& caller) const {
    if (!subject) return subject;
    if (auto may = context_.authority.may_manage(caller, *subject); !may) {
      return tl::unexpected(may.error());
    }
    return subject;
  }

  RouteContext context_;
};

Response Routes::with_task(const Request& request,
                           const std::function<Response(const Caller&, std::uint64_t)>& act) const {
  const Caller caller = caller_of(request);
  const Result<Subject> task = task_of(request, caller);
  return task ? act(caller, task->id) : failure(task.error());
}

Response Routes::with_service(
    const Request& request,
    const std::function<Response(const Caller&, std::uint64_t)>& act) const {
  const Caller caller = caller_of(request);
  const Result<Subject> service = service_of(request, caller);
  return service ? act(caller, service->id) : failure(service.error());
}

Response Routes::with_pipeline(
    const Request& request,
    const std::function<Response(const Caller&, std::uint64_t)>& act) const {
  const Caller caller = caller_of(request);
  const Result<Subject> pipeline = pipeline_of(request, caller);
  return pipeline ? act(caller, pipeline->id) : failure(pipeline.error());
}

Response Routes::list_pipelines(const Request& request) const {
  const Caller caller = caller_of(request);
  Result<PipelineListing> listing = context_.control.list_pipelines();
  if (listing) {
    std::erase_if(listing->pipelines, [&](const PipelineRow& row) {
      return !context_.authority.sees(caller, row.subject.owner_uid);
    });
  }
  return reply(listing);
}

Result<Subject> Routes::submit_work(const Caller& caller, const Submission& body,
                                    const config::TaskFile& file) const {
  if (body.kind == Submission::Kind::fresh) return context_.control.submit(caller, file);
  if (!file.is_service()) {
    return fail(ErrorCode::invalid_argument,
                "is a task; only a service is replaced by a new version", "name");
  }
  const Result<Subject> live = context_.control.find_service(file.name());
  if (live) {
    if (auto may = context_.authority.may_manage(caller, *live); !may) {
      return tl::unexpected(may.error());
    }
  }
  return context_.control.replace(caller, file);
}

Response Routes::submit(const Request& request) const {
  const Result<Submission> body = decode_submission(request.body);
  if (!body) return failure(body.error());
  const Caller caller = caller_of(request);
  config::Problems problems(body->file);
  const config::Submitter submitter{{caller.uid, caller.gid, caller.user}, body->workdir};
  const auto file = config::parse_submitted_file(body->text, submitter, problems);
  if (!file) return failure(problems);
  const auto* pipeline = std::get_if<config::PipelineFile>(&*file);
  const auto* work = std::get_if<config::TaskFile>(&*file);
  const Result<Subject> made = pipeline != nullptr
                                   ? context_.control.submit_pipeline(caller, *pipeline)
                                   : submit_work(caller, *body, *work);
  if (made) return {201, encode(*made)};
  const Error& error = made.error();
  if (error.context.empty()) return failure(error);
  // The daemon names a field; where that stands only the file knows.
  config::Problem problem = pipeline != nullptr ? pipeline->place_of(error.context)
                                                : config::Problem{work->line_of(error.context),
                                                                  work->path_of(error.context), ""};
  if (error.code == ErrorCode::invalid_argument) {
    problems.add(problem.line, problem.field, error.message);
    return failure(problems);
  }
  return failure({error.code, error.message, place_of(body->file, problem)});
}

Response Routes::list_tasks(const Request& request) const {
  const Caller caller = caller_of(request);
  Result<TaskListing> listing = context_.control.list_tasks();
  if (listing) {
    std::erase_if(listing->tasks, [&](const TaskRow& row) {
      return !context_.authority.sees(caller, row.subject.owner_uid);
    });
  }
  return reply(listing);
}

Response Routes::forecast(const Request& request) const {
  const Caller caller = caller_of(request);
  Result<ForecastReport> report = context_.control.forecast();
  if (report) {
    std::erase_if(report->starts, [&](const StartRow& row) {
      return !context_.authority.sees(caller, row.task.owner_uid);
    });
  }
  return reply(report);
}

Response Routes::list_services(const Request& request) const {
  const Caller caller = caller_of(request);
  Result<ServiceListing> listing = context_.control.list_services();
  if (listing) {
    std::erase_if(listing->services, [&](const ServiceRow& row) {
      return !context_.authority.sees(caller, row.subject.owner_uid);
    });
  }
  return reply(listing);
}

// Everybody sees where device time went; what switches of a service took, those who see the
// service.
Response Routes::usage(const Request& request) const {
  const Caller caller = caller_of(request);
  Result<UsageReport> report = context_.control.usage();
  if (report) {
    std::erase_if(report->switches, [&](const SwitchRow& row) {
      return !context_.authority.sees(caller, row.owner_uid);
    });
  }
  return reply(report);
}

// Everybody sees how full a device is; whose task fills it, only those who may.
Response Routes::list_devices(const Request& request) const {
  const Caller caller = caller_of(request);
  Result<DeviceListing> listing = context_.control.list_devices();
  if (listing) {
    for (DeviceRow& row : listing->devices) {
      for (DeviceHolder& holder : row.holders) {
        if (context_.authority.sees(caller, holder.task.owner_uid)) continue;
        holder.task = {0, "(another user's)", holder.task.owner_uid};
      }
    }
  }
  return reply(listing);
}

Response Routes::events(const Request& request) const {
  const Caller caller = caller_of(request);
  Request with_id = request;
  // A reader that connects again says where it was.
  if (!request.last_event_id.empty()) with_id.query["after"] = request.last_event_id;
  const Result<std::int64_t> after = number_in_query(with_id, "after", unknown);
  const Result<std::int64_t> limit = number_in_query(request, "limit", page_max, 1);
  if (!after) return failure(after.error());
  if (!limit) return failure(limit.error());
  std::uint64_t from = static_cast<std::uint64_t>(std::max<std::int64_t>(*after, 0));
  if (!follows(request)) {
    auto page = context_.control.events_after(from, std::clamp<std::int64_t>(*limit, 1, page_max));
    if (!page) return failure(page.error());
    // The next page begins here, whatever the caller may not see.
    const std::uint64_t last = page->empty() ? from : page->back().sequence;
    std::erase_if(*page, [&](const EventRow& row) {
      return !row.about_pool && !context_.authority.sees(caller, row.owner_uid);
    });
    return {200, encode(EventPage{std::move(*page), last})};
  }
  if (*after == unknown) {
    const Result<PoolStatus> status = context_.control.status();
    if (!status) return failure(status.error());
    from = status->sequence;
  }
  Response response;
  response.stream = [context = context_, caller, from](std::shared_ptr<http::Stream> stream) {
    context.events.follow(caller, from, std::move(stream));
  };
  return response;
}

Response Routes::log(const Request& request) const {
  const Result<std::int64_t> offset = number_in_query(request, "offset", 0);
  if (!offset) return failure(offset.error());
  return with_task(request, [&](const Caller&, std::uint64_t id) -> Response {
    if (!follows(request)) {
      Result<LogChunk> chunk = context_.control.read_log(id, {*offset, log_bytes_max});
      if (chunk && static_cast<std::int64_t>(chunk->bytes.size()) == log_bytes_max) {
        chunk->next_offset -= static_cast<std::int64_t>(drop_broken_end(chunk->bytes));
      }
      return reply(chunk);
    }
    Response response;
    response.stream = [context = context_, id, from = *offset](std::shared_ptr<http::Stream> s) {
      context.logs.follow(id, from, std::move(s));
    };
    return response;
  });
}

Response Routes::scale(const Request& request) const {
  const Result<Scale> scale = decode_scale(request.body);
  if (!scale) return failure(scale.error());
  return with_service(request, [&](const Caller& caller, std::uint64_t id) {
    return reply(context_.control.scale_service(caller, id, *scale));
  });
}

Response Routes::pause(const Request& request) const {
  const Caller caller = caller_of(request);
  if (auto may = context_.authority.may_administer(caller); !may) return failure(may.error());
  const Result<std::string> reason = decode_pause(request.body);
  if (!reason) return failure(reason.error());
  return reply(context_.control.pause(caller, *reason));
}

Response Routes::resume(const Request& request) const {
  const Caller caller = caller_of(request);
  if (auto may = context_.authority.may_administer(caller); !may) return failure(may.error());
  return reply(context_.control.resume(caller));
}

Response Routes::preemptions(const Request& request) const {
  const Result<std::int64_t> window = number_in_query(request, "since_us", week_us);
  if (!window) return failure(window.error());
  if (*window <= 0) {
    return failure({ErrorCode::invalid_argument, "is a length of time above 0", "since_us"});
  }
  return reply(context_.control.preemptions(*window));
}

Response Routes::start_drill(const Request& request) const {
  const Caller caller = caller_of(request);
  if (auto may = context_.authority.may_administer(caller); !may) return failure(may.error());
  const Result<DrillOrder> order = decode_drill(request.body);
  if (!order) return failure(order.error());
  return reply(context_.control.start_drill(caller, *order));
}

Response Routes::stop_drill(const Request& request) const {
  const Caller caller = caller_of(request);
  if (auto may = context_.authority.may_administer(caller); !may) return failure(may.error());
  return reply(context_.control.stop_drill(caller));
}

Response Routes::drill(const Request& request) const {
  const Caller caller = caller_of(request);
  Result<DrillReport> report = context_.control.drill();
  if (report) {
    for (DrillVictimRow& victim : report->victims) {
      if (context_.authority.sees(caller, victim.task.owner_uid)) continue;
      victim.task = {0, "(another user's)", victim.task.owner_uid};
    }
  }
  return reply(report);
}

// Of types whose tasks the caller may see.
Response Routes::profiles(const Request& request) const {
  const Caller caller = caller_of(request);
  Result<ProfileListing> listing = context_.control.profiles();
  constexpr std::uint32_t nobody = 0xffffffff;  // whose work administrators alone see
  if (listing && !context_.authority.sees(caller, nobody)) {
    std::erase_if(listing->profiles, [&](const ProfileRow& row) {
      return std::none_of(row.owners.begin(), row.owners.end(), [&](std::uint32_t owner) {
        return context_.authority.sees(caller, owner);
      });
    });
  }
  return reply(listing);
}

Response Routes::change_stage(const Request& request) const {
  const Caller caller = caller_of(request);
  if (auto may = context_.authority.may_administer(caller); !may) return failure(may.error());
  const Result<StageChange> change = decode_stage_change(request.body);
  if (!change) return failure(change.error());
  return reply(context_.control.change_stage(caller, *change));
}

void add_task_routes(http::Router& router, const Routes& routes) {
  router.add("GET", "/v1/tasks", [routes](const Request& r) { return routes.list_tasks(r); });
  router.add("GET", "/v1/forecast", [routes](const Request& r) { return routes.forecast(r); });
  router.add("GET", "/v1/teams",
             [routes](const Request&) { return reply(routes.control().list_teams()); });
  router.add("POST", "/v1/tasks", [routes](const Request& r) { return routes.submit(r); });
  router.add("GET", "/v1/tasks/{task}", [routes](const Request& r) {
    return routes.with_task(r, [&](const Caller&, std::uint64_t id) {
      return reply(routes.control().describe_task(id));
    });
  });
  router.add("DELETE", "/v1/tasks/{task}", [routes](const Request& r) {
    return routes.with_task(r, [&](const Caller& caller, std::uint64_t id) {
      return reply(routes.control().cancel_task(caller, id));
    });
  });
  router.add("GET", "/v1/tasks/{task}/why", [routes](const Request& r) {
    return routes.with_task(
        r, [&](const Caller&, std::uint64_t id) { return reply(routes.control().why(id)); });
  });
  router.add("GET", "/v1/tasks/{task}/log", [routes](const Request& r) { return routes.log(r); });
}

void add_contention(http::Router& router, const Routes& routes, WorkKind kind) {
  const bool service = kind == WorkKind::service;
  ContentionRoutes its{kind, service ? "/v1/services/{service}" : "/v1/tasks/{task}", {}, {}, {}};
  its.with = [routes, service](const Request& request, const auto& act) {
    const auto take = [&](const Caller&, auto id) { return act(id); };
    return service ? routes.with_service(request, take) : routes.with_task(request, take);
  };
  its.may_administer = [routes](const Request& r) { return routes.may_administer(r); };
  its.failure = [](const Error& error) { return failure(error); };
  add_contention_routes(router, routes.control(), its);
}

void add_service_routes(http::Router& router, const Routes& routes) {
  router.add("GET", "/v1/services", [routes](const Request& r) { return routes.list_services(r); });
  router.add("GET", "/v1/services/{service}", [routes](const Request& r) {
    return routes.with_service(r, [&](const Caller&, std::uint64_t id) {
      return reply(routes.control().describe_service(id));
    });
  });
  router.add("GET", "/v1/services/{service}/latency", [routes](const Request& r) {
    return routes.with_service(
        r, [&](const Caller&, std::uint64_t id) { return reply(routes.control().latency(id)); });
  });
  router.add("DELETE", "/v1/services/{service}", [routes](const Request& r) {
    return routes.with_service(r, [&](const Caller& caller, std::uint64_t id) {
      return reply(routes.control().cancel_service(caller, id));
    });
  });
  router.add("DELETE", "/v1/services/{service}/version", [routes](const Request& r) {
    return routes.with_service(r, [&](const Caller& caller, std::uint64_t id) {
      return reply(routes.control().cancel_version(caller, id));
    });
  });
  router.add("POST", "/v1/services/{service}/scale",
             [routes](const Request& r) { return routes.scale(r); });
}

void add_pipeline_routes(http::Router& router, const Routes& routes) {
  router.add("GET", "/v1/pipelines",
             [routes](const Request& r) { return routes.list_pipelines(r); });
  router.add("GET", "/v1/pipelines/{pipeline}", [routes](const Request& r) {
    return routes.with_pipeline(r, [&](const Caller&, std::uint64_t id) {
      return reply(routes.control().describe_pipeline(id));
    });
  });
  router.add("DELETE", "/v1/pipelines/{pipeline}", [routes](const Request& r) {
    return routes.with_pipeline(r, [&](const Caller& caller, std::uint64_t id) {
      return reply(routes.control().cancel_pipeline(caller, id));
    });
  });
}

}  // namespace

http::Router make_router(const RouteContext& context) {
  const Routes routes(context);
  http::Router router;
  router.add("GET", "/v1/version",
             [routes](const Request&) { return reply(routes.control().version()); });
  router.add("GET", "/v1/status",
             [routes](const Request&) { return reply(routes.control().status()); });
  router.add("GET", "/v1/pool",
             [routes](const Request&) { return reply(routes.control().describe_pool()); });
  router.add("GET", "/v1/profiles", [routes](const Request& r) { return routes.profiles(r); });
  router.add("GET", "/v1/review", [routes](const Request& r) {
    const Result<std::int64_t> from = number_in_query(r, "from_us", unknown);
    if (!from) return failure(from.error());
    return reply(routes.control().review(*from));
  });
  router.add("POST", "/v1/stage", [routes](const Request& r) { return routes.change_stage(r); });
  router.add("GET", "/v1/usage", [routes](const Request& r) { return routes.usage(r); });
  router.add("GET", "/v1/preemptions",
             [routes](const Request& r) { return routes.preemptions(r); });
  router.add("GET", "/v1/drill", [routes](const Request& r) { return routes.drill(r); });
  router.add("POST", "/v1/drill", [routes](const Request& r) { return routes.start_drill(r); });
  router.add("DELETE", "/v1/drill", [routes](const Request& r) { return routes.stop_drill(r); });
  router.add("GET", "/v1/doctor",
             [routes](const Request&) { return reply(routes.control().doctor()); });
  router.add("GET", "/v1/devices", [routes](const Request& r) { return routes.list_devices(r); });
  router.add("GET", "/v1/events", [routes](const Request& r) { return routes.events(r); });
  router.add("POST", "/v1/pause", [routes](const Request& r) { return routes.pause(r); });
  router.add("POST", "/v1/resume", [routes](const Request& r) { return routes.resume(r); });
  add_task_routes(router, routes);
  add_service_routes(router, routes);
  add_pipeline_routes(router, routes);
  for (const auto kind : {WorkKind::service, WorkKind::task}) add_contention(router, routes, kind);
  return router;
}

}  // namespace neap::api
