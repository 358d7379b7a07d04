// What the daemon shows, as JSON with stable field names. A value not known is null; every
// listing begins with the pool's status.
#pragma once

#include <string>
#include <vector>

#include "api/view.h"

namespace neap::api {

[[nodiscard]] std::string encode(const PoolStatus& status);
[[nodiscard]] std::string encode(const PoolDetail& detail);
[[nodiscard]] std::string encode(const ProfileListing& listing);
[[nodiscard]] std::string encode(const ReviewReport& report);
[[nodiscard]] std::string encode(const TaskListing& listing);
[[nodiscard]] std::string encode(const ServiceListing& listing);
[[nodiscard]] std::string encode(const DeviceListing& listing);
[[nodiscard]] std::string encode(const PipelineListing& listing);
[[nodiscard]] std::string encode(const PipelineDetail& detail);
[[nodiscard]] std::string encode(const TaskDetail& detail);
[[nodiscard]] std::string encode(const ServiceDetail& detail);
[[nodiscard]] std::string encode(const WhyReport& report);
[[nodiscard]] std::string encode(const ForecastReport& report);
[[nodiscard]] std::string encode(const TeamListing& listing);
[[nodiscard]] std::string encode(const EventRow& event);
[[nodiscard]] std::string encode(const EventPage& page);
[[nodiscard]] std::string encode(const LogChunk& chunk);
[[nodiscard]] std::string encode(const UsageReport& report);
[[nodiscard]] std::string encode(const VersionInfo& version);
[[nodiscard]] std::string encode(const std::vector<DoctorCheck>& checks);
[[nodiscard]] std::string encode(const Subject& subject);

}  // namespace neap::api
