// The section `scale`, of a pool file and of a service.
#pragma once

#include "config/fields.h"
#include "core/model/spec.h"

namespace neap::config {

// Closes the section.
void read_scale(Fields& scale, ScaleSpec& into);

}  // namespace neap::config
