#include "daemon/host_limit_checks.h"

#include <string>

namespace neap::daemon {

std::vector<api::DoctorCheck> host_limit_checks(const local::Isolation& isolation,
                                                const config::PoolHost& host) {
  std::vector<api::DoctorCheck> out;
  const local::MethodChecks checks = isolation.checks();
  for (const local::Method method : local::all_methods) {
    api::DoctorCheck one;
    one.name = "host limit: " + std::string(local::name_of(method));
    const auto found = checks.find(method);
    if (found == checks.end()) {
      one.state = "warning";
      one.message = host.verify ? "is being tried" : "was not tried here";
      one.remedy = host.verify ? "ask again in some seconds" : "host.verify: true in the pool file";
    } else if (found->second.state == local::MethodState::held) {
      one.state = "ok";
      one.message = found->second.evidence;
    } else {
      // No fault of the pool: tasks that ask for it are refused.
      one.state = "warning";
      one.message = "not offered: " + found->second.evidence;
      one.remedy = "docs/operators/isolation.md says what each needs";
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace neap::daemon
