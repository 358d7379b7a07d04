// What switches cost, as the API shows it.
#pragma once

#include <vector>

#include "api/view.h"
#include "core/model/state.h"
#include "ledger/ledger.h"

namespace neap::daemon {

[[nodiscard]] api::SwitchRow view_switches(const PoolState& state, const ledger::Ledger& ledger,
                                           const ServiceState& service, Time now);
// Of all services that were not removed.
[[nodiscard]] std::vector<api::SwitchRow> view_switches(const PoolState& state,
                                                        const ledger::Ledger& ledger, Time now);

}  // namespace neap::daemon
