#include "daemon/switch_views.h"

#include "core/rules/switching.h"
#include "core/rules/tide.h"

namespace neap::daemon {

api::SwitchRow view_switches(const PoolState& state, const ledger::Ledger& ledger,
                             const ServiceState& service, Time now) {
  const SwitchPrice price = price_of(state, service);
  api::SwitchRow row;
  row.service = service.spec.name;
  row.owner_uid = service.spec.owner.uid;
  row.leave_us = price.leave.value;
  row.load_us = price.load.value;
  row.warm_up_us = price.warm_up.value;
  row.leaves_seen = price.left;
  row.loads_seen = price.loaded;
  row.warm_ups_seen = price.warmed;
  row.cost_us = price.all().value;
  row.useful_ppm = useful_lent(state).value;
  row.break_even_us = break_even(state, service).value;
  const ScaleSpec& scale = scale_of(state, service);
  if (scale.mode == ScaleMode::tidal) row.dwell_us = dwell_of(state, service).value;
  row.given_of_day = switches_of_day(service, now);
  if (const auto allowed = switches_allowed(state, service)) row.allowed_of_day = *allowed;
  const Time again = switches_again_at(state, service, now);
  if (again > now && again != Time::never()) row.again_us = again.us;
  const auto seen = ledger.switches(service.id).value_or(ledger::Switches());
  row.given = seen.given;
  row.taken = seen.taken;
  row.device_time = seen.time.to_string();
  row.share_ppm = ledger::ppm_of(seen.time, ledger.pool(now).provisioned);
  return row;
}

std::vector<api::SwitchRow> view_switches(const PoolState& state, const ledger::Ledger& ledger,
                                          Time now) {
  std::vector<api::SwitchRow> rows;
  for (const ServiceState& service : state.services) {
    if (!service.removed) rows.push_back(view_switches(state, ledger, service, now));
  }
  return rows;
}

}  // namespace neap::daemon
