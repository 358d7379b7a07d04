#include "daemon/health_checks.h"

#include <unistd.h>

#include <filesystem>

#include "core/rules/adoption.h"

namespace neap::daemon {

api::DoctorCheck preset_check(const config::PoolFile& file) {
  std::string gave;
  for (const DerivedValue& value : file.spec.derived) {
    gave += (gave.empty() ? "" : ", ") + value.key + ": " + value.value;
  }
  return {"preset", "ok",
          std::string(name_of(file.spec.preset)) + ", by " +
              std::string(name_of(file.spec.isolation)) + ": " +
              (gave.empty() ? "all is stated in the file" : gave),
          ""};
}

api::DoctorCheck proxy_check(const std::string& trouble) {
  if (trouble.empty()) return {"proxy", "ok", "HAProxy answers or is not needed yet", ""};
  return {"proxy", "failed", trouble,
          "see the log; is haproxy installed, the certificate good, the port free?"};
}

api::DoctorCheck submitters_check() {
  const bool owner_only = ::geteuid() != 0;
  return {"submitters", owner_only ? "warning" : "ok",
          owner_only ? "the daemon is not root: it runs tasks of its own user alone"
                     : "tasks run as their submitters",
          owner_only ? "run the daemon as root to serve several users" : ""};
}

api::DoctorCheck disk_check(const std::string& state_dir) {
  std::error_code error;
  const auto space = std::filesystem::space(state_dir, error);
  const bool low = !error && space.available < (1U << 30);
  return {"disk", low ? "warning" : "ok",
          std::to_string(space.available >> 20) + " MiB free in " + state_dir,
          low ? "free some space: a journal that cannot be written stops the pool" : ""};
}

}  // namespace neap::daemon
