// What `neap doctor` says of the pool itself: preset, proxy, who may submit, space on the disk.
#pragma once

#include <string>

#include "api/view.h"
#include "config/pool_file.h"

namespace neap::daemon {

[[nodiscard]] api::DoctorCheck preset_check(const config::PoolFile& file);
// trouble: what the gateway suffers from, "" when well.
[[nodiscard]] api::DoctorCheck proxy_check(const std::string& trouble);
[[nodiscard]] api::DoctorCheck submitters_check();
[[nodiscard]] api::DoctorCheck disk_check(const std::string& state_dir);

}  // namespace neap::daemon
