// The section `fairness` of a pool file: the lane of forced starts, and deadlines.
#pragma once

#include "config/fields.h"
#include "core/model/spec.h"

namespace neap::config {

// After the tiers, the pool and preemption have been read.
void read_fairness(Fields fairness, PoolSpec& pool);
// The section `envelope` of a tier.
void read_envelope(Fields envelope, Envelope& into);

}  // namespace neap::config
