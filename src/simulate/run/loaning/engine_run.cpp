#include "simulate/run/loaning/engine_run.h"

#include <memory>
#include <string>
#include <utility>

#include "simulate/run/driver.h"
#include "simulate/run/loaning/stream.h"
#include "simulate/run/loaning/witness.h"
#include "simulate/run/tiers.h"

namespace neap::whatif {

namespace {

constexpr Micros look = seconds(30);
constexpr Micros load = seconds(45);
constexpr Micros drain = seconds(30);

std::string cluster_text(std::int32_t devices) {
  const std::int32_t whole = devices / loaning::devices_per_node;
  const std::int32_t rest = devices % loaning::devices_per_node;
  std::string text;
  if (whole > 0) text = std::to_string(whole) + "x8xA100-80G";
  if (rest == 0) return text;
  if (!text.empty()) text += ",";
  return text + "1x" + std::to_string(rest) + "xA100-80G";
}

}  // namespace

Result<loaning::Outcome> run_loaning(const loaning::Workload& workload, const EngineRun& run) {
  RunSpec spec;
  auto cluster = cluster_of_text(cluster_text(run.devices));
  if (!cluster) return tl::unexpected(cluster.error());
  spec.cluster = std::move(*cluster);
  spec.policy = run.policy;
  // As many devices are lent as inference had in two clusters, where the file does not say it.
  if (run.service == EngineRun::Service::shares && spec.policy.pool.elastic_buffer == 0) {
    spec.policy.pool.elastic_buffer = workload.peak();
  }
  spec.workload.replica.load = look;
  spec.workload.replica.start = load;
  spec.workload.replica.drain = drain;
  const auto tiers = tiers_for(run.policy.pool, "");
  if (!tiers) return tl::unexpected(tiers.error());
  auto stream = std::make_unique<LoaningStream>(workload, *tiers, run);
  Incoming first;
  const auto more = stream->next(first);
  if (!more) return tl::unexpected(more.error());
  if (!*more) return fail(ErrorCode::invalid_argument, "the workload holds no job");

  Witness witness(workload, run);
  Hooks hooks;
  hooks.record = [&witness](Time now, const Event& event, const StepResult& result) {
    witness.note(now, event, result);
  };
  const auto outcome = Driver(spec, hooks, std::move(stream), std::move(first)).run();
  if (!outcome) return tl::unexpected(outcome.error());
  loaning::Outcome scored = witness.outcome();
  scored.lost_device_h = static_cast<double>(outcome->all.lost_device_us) / 3.6e9;
  return scored;
}

}  // namespace neap::whatif
