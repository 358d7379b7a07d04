// Calls about pipelines and about new versions of services.
#include <charconv>

#include "config/pipeline_file.h"
#include "core/model/pool_index.h"
#include "daemon/control_calls.h"
#include "daemon/model_claims.h"
#include "daemon/pipeline_views.h"

namespace neap::daemon {

namespace {

const PipelineState* pipeline_by_id(const PoolState& state, std::uint64_t id) {
  if (id > 0xffffffffULL) return nullptr;
  return find_pipeline(state, PipelineId(static_cast<std::uint32_t>(id)));
}

tl::unexpected<Error> no_pipeline(const std::string& name) {
  return fail(ErrorCode::not_found, "no pipeline is called " + name);
}

api::Subject subject_of_pipeline(const PipelineState& pipeline) {
  return {pipeline.id.value, pipeline.name, pipeline.owner.uid};
}

}  // namespace

Result<api::Subject> ControlPort::find_pipeline(std::string_view name_or_id) {
  const std::string name(name_or_id);
  return ask<api::Subject>([name](const PoolState& state, const Books&) -> Result<api::Subject> {
    const PipelineState* pipeline = neap::find_pipeline(state, name);
    std::uint64_t id = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    const bool is_number = error == std::errc() && end == name.data() + name.size();
    if (pipeline == nullptr && is_number) pipeline = pipeline_by_id(state, id);
    if (pipeline == nullptr) return no_pipeline(name);
    return subject_of_pipeline(*pipeline);
  });
}

Result<api::Subject> ControlPort::submit_pipeline(const api::Caller& /*caller*/,
                                                  config::PipelineFile file) {
  const std::scoped_lock claiming(claiming_);
  auto fitted = ask<std::shared_ptr<config::PipelineFile>>(
      [this, file = std::move(file)](
          const PoolState& state, const Books&) -> Result<std::shared_ptr<config::PipelineFile>> {
        auto copy = std::make_shared<config::PipelineFile>(file);
        if (auto fits = config::fit_to_pool(state.spec, *copy); !fits) {
          return tl::unexpected(fits.error());
        }
        for (std::size_t i = 0; i < copy->stages.size(); ++i) {
          auto assigned = check_models(state, copy->stages[i].work);
          if (assigned) assigned = service_ports_.assign(state, copy->stages[i].work);
          if (assigned) continue;
          const Error& error = assigned.error();
          return fail(error.code, error.message,
                      "stages[" + std::to_string(i) + "]." + error.context);
        }
        return copy;
      });
  if (!fitted) return tl::unexpected(fitted.error());
  auto outcome = tell(PipelineSubmitted{(*fitted)->to_spec()});
  if (!outcome) return tl::unexpected(outcome.error());
  return find_pipeline((*fitted)->name);
}

Result<api::Subject> ControlPort::replace(const api::Caller& caller, config::TaskFile file) {
  const std::scoped_lock claiming(claiming_);
  auto fitted = ask<std::shared_ptr<config::TaskFile>>(
      [this, file](const PoolState& state,
                   const Books&) -> Result<std::shared_ptr<config::TaskFile>> {
        if (!find_live_service(state, file.name())) {
          return fail(ErrorCode::not_found,
                      "no service is called " + file.name() + ": submit it without --replace",
                      "name");
        }
        auto copy = std::make_shared<config::TaskFile>(file);
        if (auto fits = config::fit_to_pool(state.spec, *copy); !fits) {
          return tl::unexpected(fits.error());
        }
        if (auto free = check_models(state, *copy); !free) return tl::unexpected(free.error());
        if (auto assigned = service_ports_.assign(state, *copy); !assigned) {
          return tl::unexpected(assigned.error());
        }
        return copy;
      });
  if (!fitted) return tl::unexpected(fitted.error());
  auto outcome = tell(ServiceReplaced{std::get<ServiceSpec>((*fitted)->spec), caller.user});
  if (!outcome) return tl::unexpected(outcome.error());
  return find_service((*fitted)->name());
}

Result<void> ControlPort::cancel_version(const api::Caller& caller, std::uint64_t id) {
  auto before = ask<ServiceSpec>([id](const PoolState& state, const Books&) -> Result<ServiceSpec> {
    if (id >= state.services.size() || state.services[id].removed) {
      return fail(ErrorCode::not_found, "there is no such service");
    }
    const ServiceState& service = state.services[id];
    if (!service.roll || service.roll->phase != RollPhase::forward) {
      return fail(ErrorCode::conflict, "no new version of " + service.spec.name +
                                           " is being loaded: there is none to give up");
    }
    return service.roll->before;
  });
  if (!before) return tl::unexpected(before.error());
  return tell(ServiceReplaced{std::move(*before), caller.user}).map([](const auto&) {});
}

Result<void> ControlPort::cancel_pipeline(const api::Caller& caller, std::uint64_t id) {
  auto name = ask<std::string>([id](const PoolState& state, const Books&) -> Result<std::string> {
    const PipelineState* pipeline = pipeline_by_id(state, id);
    if (pipeline == nullptr) return no_pipeline(std::to_string(id));
    if (pipeline->ended != Time::never()) {
      return fail(ErrorCode::conflict, pipeline->name + " has ended already");
    }
    return pipeline->name;
  });
  if (!name) return tl::unexpected(name.error());
  return tell(PipelineCancelRequested{*name, caller.user}).map([](const auto&) {});
}

Result<api::PipelineListing> ControlPort::list_pipelines() {
  return ask<api::PipelineListing>([this](const PoolState& state, const Books&) {
    api::PipelineListing listing{view_status(state, context_), {}};
    for (const PipelineState& pipeline : state.pipelines) {
      listing.pipelines.push_back(view_pipeline(state, pipeline, outside_.artifacts));
    }
    return Result<api::PipelineListing>(std::move(listing));
  });
}

Result<api::PipelineDetail> ControlPort::describe_pipeline(std::uint64_t id) {
  return ask<api::PipelineDetail>(
      [this, id](const PoolState& state, const Books&) -> Result<api::PipelineDetail> {
        const PipelineState* pipeline = pipeline_by_id(state, id);
        if (pipeline == nullptr) return no_pipeline(std::to_string(id));
        return api::PipelineDetail{view_status(state, context_),
                                   view_pipeline(state, *pipeline, outside_.artifacts)};
      });
}

}  // namespace neap::daemon
