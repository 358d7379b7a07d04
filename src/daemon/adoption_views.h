// Stages of adoption, presets and profiles as the API shows them.
#pragma once

#include "api/view.h"
#include "core/model/state.h"
#include "daemon/views.h"

namespace neap::daemon {

[[nodiscard]] api::PoolDetail view_pool(const PoolState& state, Time now,
                                        const ViewContext& context);
[[nodiscard]] api::ProfileListing view_profiles(const PoolState& state, const ViewContext& context);

// The seven days from `from`.
[[nodiscard]] api::ReviewReport view_review(const PoolState& state, const Books& books, Time from,
                                            const ViewContext& context);

}  // namespace neap::daemon
