// What the contention watch knows, as the API shows it and as its files keep it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "api/contention.h"
#include "backend/local/cgroup_limits.h"
#include "core/model/result.h"
#include "measure/diagnosis.h"
#include "measure/ladder.h"

namespace neap::daemon {

[[nodiscard]] api::SpeedRow row_of(const measure::Speed& speed);
[[nodiscard]] api::UseRow row_of(const std::string& name, const measure::Use& use);
[[nodiscard]] api::LadderMoveRow row_of(const measure::LadderMove& move, const std::string& fault);
void fill_diagnosis(const measure::Diagnosis& verdict, api::ContentionReport& into);
[[nodiscard]] measure::Alone alone_of(const api::BaselineReport& report);

// {"service": "chat", "at_us": ..., ...} without the line feed.
[[nodiscard]] std::string line_of(const std::string& service, const api::LadderMoveRow& row);
// Beyond `bytes_max` the file becomes <path>.1, in the place of the one before it. What cannot be
// written is lost: it is a log.
void append_bounded(const std::string& path, std::uintmax_t bytes_max, const std::string& line);

// Limits that a task had without the ladder, kept for a daemon that comes after a crash.
void keep_limits(const std::string& path, const local::CgroupLimits& limits);
[[nodiscard]] Result<local::CgroupLimits> kept_limits(const std::string& path);

// Whom a baseline has frozen, for likewise: ids, one a line. None: the file goes.
[[nodiscard]] Result<void> keep_frozen(const std::string& path,
                                       const std::set<AllocationId>& frozen);
[[nodiscard]] std::set<AllocationId> kept_frozen(const std::string& path);

}  // namespace neap::daemon
