// Runs of the published experiment beside what was published. Without NEAP_TRACES they skip.
#pragma once

#include <cstdint>
#include <string>

#include "simulate/openb/policy.h"
#include "simulate/testing/published.h"

namespace neap::simulate {

// Expects the published curves of all policies for the seeds from first to last.
void expect_published(const std::string& trace, std::int64_t first, std::int64_t last);

// Percent that neap's own policy leaves when as much has arrived as the cluster holds: the mean of
// the seeds from 42 to last.
[[nodiscard]] double mean_unallocated(const Published& published, const std::string& trace,
                                      Ties ties, std::int64_t last);

}  // namespace neap::simulate
