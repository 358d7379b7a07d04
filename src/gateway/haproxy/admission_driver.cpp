#include "gateway/haproxy/admission_driver.h"

#include <algorithm>

namespace neap::gateway {
namespace {

constexpr Micros slice = seconds(2);
constexpr std::size_t slices_kept = 16;
constexpr Micros rate_span = seconds(10);
constexpr Micros evidence_span = seconds(5);  // of a replica that answers rarely
constexpr std::uint64_t answers_for_rate = 3;
constexpr std::uint64_t evidence_enough = 5;
constexpr Micros least_wait = milliseconds(20);

}  // namespace

AdmissionDriver::ServiceState::ServiceState()
    : busy(slice, slices_kept), first_bytes(slice, slices_kept) {}

void AdmissionDriver::note(const RequestRecord& record, Time now) {
  if (!record.allocation.valid() || !record.complete || record.status >= 400) return;
  ServiceState& service = services_[record.service];
  service.busy.record(now, std::max(Micros(1), record.total - record.queued));
  if (!record.first_byte) return;
  const Micros from_dispatch = std::max(Micros(0), *record.first_byte - record.queued);
  service.first_bytes.record(now, from_dispatch);
  service.replicas[record.allocation].first_bytes.record(from_dispatch);
}

void AdmissionDriver::tick(Time now) {
  const Result<std::vector<ServiceView>> views = members_.look();
  if (!views) return;
  for (const ServiceView& view : *views) look_at(view, services_[view.endpoint.service], now);
  std::erase_if(services_, [&](const auto& one) {
    return std::ranges::none_of(
        *views, [&](const ServiceView& view) { return view.endpoint.service == one.first; });
  });
}

void AdmissionDriver::look_at(const ServiceView& view, ServiceState& service, Time now) {
  const AdmissionCounts& counts = view.counts;
  std::int64_t waiting = view.queued;
  for (const std::int64_t n : counts.waiting) waiting += n;
  service.queue_seen =
      waiting > 0 || counts.passed != service.counts.passed || counts.shed != service.counts.shed;
  if (counts.passed > service.counts.passed && counts.passed_cost > service.counts.passed_cost) {
    service.mean_cost = (counts.passed_cost - service.counts.passed_cost) /
                        static_cast<double>(counts.passed - service.counts.passed);
  }
  service.counts = counts;
  std::erase_if(service.replicas, [&](const auto& one) {
    return std::ranges::none_of(
        view.members, [&](const MemberView& member) { return member.allocation == one.first; });
  });
  for (const MemberView& member : view.members) {
    look_at_replica(view, member, service, now);
  }
  double places = 0;
  for (const MemberView& member : view.members) {
    if (member.serving) places += service.replicas[member.allocation].control->limit();
  }
  const measure::Histogram busy = service.busy.over(now, rate_span);
  std::optional<Micros> mean;
  if (busy.count() >= answers_for_rate) mean = busy.mean();
  service.rate.measure(now, places, mean);
  members_.set_figures(view.endpoint.service, figures_of(view.endpoint, service, now));
}

ConcurrencyEvidence AdmissionDriver::evidence_of(const MemberView& member,
                                                 const ServiceState& service,
                                                 const ReplicaState& replica, Time now) {
  ConcurrencyEvidence evidence{.at = now,
                               .queue = service.queue_seen,
                               .full = service.queue_seen || member.in_flight >= member.limit,
                               .answers = static_cast<std::int64_t>(replica.first_bytes.count())};
  if (!replica.first_bytes.empty()) {
    evidence.first_byte_p95 = replica.first_bytes.quantile(Ppm(950'000));
  }
  return evidence;
}

void AdmissionDriver::look_at_replica(const ServiceView& view, const MemberView& member,
                                      ServiceState& service, Time now) {
  ReplicaState& replica = service.replicas[member.allocation];
  const Admission& admission = view.endpoint.admission;
  ConcurrencyBounds bounds{.least = std::min(admission.least, member.most), .most = member.most};
  // The other half of what is promised is for waiting.
  if (admission.adaptive) bounds.target = view.endpoint.slo_first_byte / 2;
  if (!replica.control) {
    replica.control.emplace(bounds);
    if (member.taken_over) replica.control->resume(member.limit);
  }
  replica.control->rebound(bounds);
  const bool due =
      replica.first_bytes.count() >= evidence_enough || now - replica.looked >= evidence_span;
  if (due) {
    replica.control->look(evidence_of(member, service, replica, now));
    replica.first_bytes.clear();
    replica.looked = now;
  }
  members_.set_limit({view.endpoint.service, member.allocation}, replica.control->limit());
}

AdmissionFigures AdmissionDriver::figures_of(const Endpoint& endpoint, const ServiceState& service,
                                             Time now) {
  AdmissionFigures figures;
  figures.requests_per_second = service.rate.per_second();
  figures.cost_per_second = figures.requests_per_second * service.mean_cost;
  figures.longest_wait = endpoint.queue_timeout;
  const measure::Histogram first_bytes = service.first_bytes.over(now, latency_span);
  if (endpoint.admission.within_slo && endpoint.slo_first_byte > Micros(0)) {
    const Micros own =
        first_bytes.empty() ? endpoint.slo_first_byte / 2 : first_bytes.quantile(Ppm(990'000));
    // 5 % for what happens between the last look and the dispatch.
    const Micros promised = endpoint.slo_first_byte * 19 / 20;
    figures.longest_wait = std::min(endpoint.queue_timeout, std::max(least_wait, promised - own));
  }
  return figures;
}

}  // namespace neap::gateway
