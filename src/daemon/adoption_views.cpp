#include "daemon/adoption_views.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/rules/adoption.h"
#include "core/rules/profile.h"
#include "ledger/review.h"

namespace neap::daemon {

namespace {

std::vector<api::Attribute> figures_of(const AdoptionFigures& seen) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  return {{"starts", number(seen.starts)},
          {"failures", number(seen.failures)},
          {"faults", number(seen.faults)},
          {"contract_breaches", number(seen.breaches)},
          {"memory_breaches", number(seen.memory_breaches)},
          {"yields", number(seen.yields)},
          {"kept_at_boundaries", number(seen.kept)},
          {"services_measured_us", number(seen.measured.value)},
          {"shortage_us", number(seen.shortage.value)},
          {"lost_work_us", number(seen.lost.value)}};
}

api::ObservedRow observed(const Observed& seen) {
  return {seen.count, p90_of(seen).value_or(api::unknown), most_of(seen).value_or(api::unknown)};
}

}  // namespace

api::PoolDetail view_pool(const PoolState& state, Time now, const ViewContext& context) {
  const AdoptionBook& book = state.adoption;
  api::PoolDetail out;
  out.pool = view_status(state, context);
  if (state.configured) out.stage_since_us = book.since.us;
  if (book.stage != AdoptionStage::time) {
    const int next = static_cast<int>(book.stage) + 1;
    out.next_stage = std::string(name_of(static_cast<AdoptionStage>(next)));
  }
  for (const AdoptionGate& gate : stage_gates(state, std::max(now, state.now))) {
    out.gates.push_back({gate.name, gate.met, gate.detail});
  }
  out.seen = figures_of(book.seen);
  for (const AdoptionChange& change : book.changes) {
    out.changes.push_back({change.at.us, std::string(name_of(change.from)),
                           std::string(name_of(change.to)), change.forced, change.by, change.why,
                           change.missing});
  }
  for (const DerivedValue& value : state.spec.derived) {
    out.derived.push_back({value.key, value.value});
  }
  return out;
}

api::ProfileListing view_profiles(const PoolState& state, const ViewContext& context) {
  api::ProfileListing out{view_status(state, context), {}};
  std::map<std::string, std::set<std::uint32_t>> owners;
  state.tasks.for_each([&](const TaskState& task) {
    const TaskSpec& spec = task.spec;
    if (!spec.profile.empty()) {
      owners[profile_key(spec.team, spec.profile)].insert(spec.owner.uid);
    }
  });
  for (const TaskProfile& profile : state.profiles.known) {
    api::ProfileRow& row = out.profiles.emplace_back();
    row.name = profile.name;
    row.kind = std::string(name_of(profile.purpose));
    row.used_us = profile.used.us;
    row.declared_mib = profile.declared.value;
    row.weights_mib = profile.split.weights.value;
    row.kv_cache_mib = profile.split.kv_cache.value;
    row.activations_mib = profile.split.activations.value;
    row.framework_mib = profile.split.framework.value;
    row.memory_mib = observed(profile.memory);
    row.work_us = observed(profile.work);
    row.save_us = observed(profile.save);
    row.stall_us = observed(profile.stall);
    row.restore_us = observed(profile.restore);
    const std::set<std::uint32_t>& uids = owners[profile.name];
    row.owners.assign(uids.begin(), uids.end());
  }
  return out;
}

api::ReviewReport view_review(const PoolState& state, const Books& books, Time from,
                              const ViewContext& context) {
  const Time to = from + hours(7 * 24);
  const ledger::WeekFigures week = ledger::figures_of(books.weeks(), from, to);
  const ledger::Review found = ledger::review(week, state.spec);
  api::ReviewReport out;
  out.pool = view_status(state, context);
  out.from_us = from.us;
  out.to_us = to.us;
  out.verdict = std::string(name_of(found.verdict));
  out.why = found.why;
  const bool proposes = found.verdict == ledger::Verdict::more_for_inference ||
                        found.verdict == ledger::Verdict::more_for_training;
  if (proposes && found.preset_next != Preset::none) {
    out.preset_next = std::string(name_of(found.preset_next));
  } else if (proposes) {
    out.guard_next = found.guard_next;
    out.buffer_next = found.buffer_next;
  }
  out.evidence = found.evidence;
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  out.figures = {{"minutes", number(week.minutes)},
                 {"devices", number(week.devices)},
                 {"needed_milli", number(week.needed_milli)},
                 {"needed_p95", number(week.needed_p95)},
                 {"needed_peak", number(week.needed_peak)},
                 {"trained_milli", number(week.trained_milli)},
                 {"guard_idle_ppm", number(week.guard_idle_ppm)},
                 {"short_minutes", number(week.short_minutes)},
                 {"waiting_milli", number(week.waiting_milli)},
                 {"yields", number(week.yields)},
                 {"kept", number(week.kept)}};
  return out;
}

}  // namespace neap::daemon
