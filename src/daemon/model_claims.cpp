#include "daemon/model_claims.h"

#include <algorithm>
#include <map>
#include <variant>

#include "config/gateway.h"

namespace neap::daemon {

namespace {

struct Claim {
  const ServiceSpec* service = nullptr;
  std::string of;  // "service chat"
};

std::vector<Claim> claims_in(const PoolState& state) {
  std::vector<Claim> claims;
  for (const ServiceState& service : state.services) {
    if (service.removed && service.replicas.empty()) continue;
    claims.push_back({&service.spec, "service " + service.spec.name});
  }
  for (const PipelineState& pipeline : state.pipelines) {
    for (const StageState& stage : pipeline.stages) {
      if (!stage.deploys || has_ended(stage.phase)) continue;
      claims.push_back({&*stage.deploys,
                        "service " + stage.deploys->name + ", which a pipeline " + "is to deploy"});
    }
  }
  return claims;
}

}  // namespace

std::vector<std::string> models_of(const ServiceSpec& service) {
  const auto gateway = config::gateway_of_launch(service.launch);
  if (gateway && !gateway->models.empty()) return gateway->models;
  return {service.name};
}

Result<void> check_models(const PoolState& state, const config::TaskFile& file) {
  const auto* wanted = std::get_if<ServiceSpec>(&file.spec);
  if (wanted == nullptr) return {};
  const std::vector<std::string> models = models_of(*wanted);
  for (const Claim& claim : claims_in(state)) {
    if (claim.service->name == wanted->name) continue;  // another version of itself
    for (const std::string& taken : models_of(*claim.service)) {
      if (std::find(models.begin(), models.end(), taken) == models.end()) continue;
      return fail(ErrorCode::conflict,
                  "model " + taken + " belongs to " + claim.of +
                      "; expected models that no other service answers for",
                  "gateway.models");
    }
  }
  return {};
}

std::vector<std::string> models_claimed_twice(const PoolState& state) {
  std::map<std::string, std::string> first;
  std::vector<std::string> out;
  for (const ServiceState& service : state.services) {
    if (service.removed) continue;
    for (const std::string& model : models_of(service.spec)) {
      const auto [at, is_new] = first.emplace(model, service.spec.name);
      if (is_new || at->second == service.spec.name) continue;
      out.push_back("model " + model + ": services " + at->second + " and " + service.spec.name +
                    " both claim it; submit one of them anew with other gateway.models");
    }
  }
  return out;
}

}  // namespace neap::daemon
