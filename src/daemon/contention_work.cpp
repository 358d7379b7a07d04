#include <chrono>
#include <future>
#include <memory>

#include "backend/local/local_backend.h"
#include "daemon/contention.h"
#include "daemon/engine_watch.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/service_router.h"

namespace neap::daemon {
namespace {

constexpr auto view_patience = std::chrono::seconds(5);

std::vector<Workload> work_of(const PoolState& state) {
  std::vector<Workload> out;
  for (const ServiceState& service : state.services) {
    if (service.removed) continue;
    Workload one{api::WorkKind::service,
                 service.spec.name,
                 {},
                 service.spec.slo_first_byte.value_or(Micros(0))};
    for (const TaskId id : service.replicas) {
      const TaskState* replica = state.tasks.find(id);
      if (replica != nullptr && replica->phase == Phase::running) {
        one.allocations.push_back(replica->allocation);
      }
    }
    out.push_back(std::move(one));
  }
  state.tasks.for_each([&](const TaskState& task) {
    if (task.service.valid() || task.phase != Phase::running) return;
    out.push_back({api::WorkKind::task, task.spec.name, {task.allocation}, Micros(0)});
  });
  return out;
}

// What runs now, by the loop; nothing when it does not answer within 5 s.
std::vector<Workload> running_work(Loop& loop) {
  auto promise = std::make_shared<std::promise<std::vector<Workload>>>();
  auto answer = promise->get_future();
  loop.query(
      [promise](const PoolState& state, const Books&) { promise->set_value(work_of(state)); });
  if (answer.wait_for(view_patience) != std::future_status::ready) return {};
  return answer.get();
}

// Of the last minute, from the proxy's records.
void speed_of_requests(const gateway::ServiceLatency& latency, measure::Speed& speed) {
  constexpr std::uint64_t requests_min = 10;
  for (const measure::SeriesReport& series : latency.series) {
    if (series.dimension != measure::Dimension::whole) continue;
    const measure::WindowTotals& minute = series.windows[0];
    speed.requests_milli_per_s = static_cast<std::int64_t>(minute.requests) * 1'000 / 60;
    if (minute.requests < requests_min) return;
    speed.failures = Ppm(static_cast<std::int64_t>(minute.failed * 1'000'000 / minute.requests));
    if (minute.first_byte.empty()) return;
    const measure::Percentiles p = minute.first_byte.percentiles();
    speed.first_byte_p50 = p.p50;
    speed.first_byte_p99 = p.p99;
    return;
  }
}

}  // namespace

ContentionWatch::Ports contention_ports(Loop& loop, local::LocalBackend& backend,
                                        const EngineWatch& engines, ServiceRouter& router) {
  ContentionWatch::Ports ports;
  ports.workloads = [&loop] { return running_work(loop); };
  ports.groups = [&backend] { return backend.isolation().groups(); };
  ports.limits_of = [&backend](AllocationId id) { return backend.isolation().limits_of(id); };
  ports.change = [&backend](AllocationId id, const local::CgroupLimits& limits) {
    return backend.isolation().change(id, limits);
  };
  ports.speed_of = [&engines, &router](const std::string& service, measure::Speed& speed) {
    const EngineWatch::Gaps gaps = engines.gaps(service, seconds(15));
    speed.inter_token_p50 = gaps.p50;
    speed.inter_token_p99 = gaps.p99;
    const auto latency = router.latency_of(service);
    if (latency) speed_of_requests(*latency, speed);
  };
  ports.say = [](const std::string& line) { log_info(line); };
  return ports;
}

}  // namespace neap::daemon
