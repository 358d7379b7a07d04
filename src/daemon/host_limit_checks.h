// What `neap doctor` says of the limits of the host: which hold here, which are not offered.
#pragma once

#include <vector>

#include "api/view.h"
#include "backend/local/isolation.h"
#include "config/host.h"

namespace neap::daemon {

[[nodiscard]] std::vector<api::DoctorCheck> host_limit_checks(const local::Isolation& isolation,
                                                              const config::PoolHost& host);

}  // namespace neap::daemon
