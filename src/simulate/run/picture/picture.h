// The runs of a study as one HTML page that needs nothing else: use over time, fragmentation,
// queue and waits, drawn as SVG.
#pragma once

#include <string>

#include "simulate/run/study.h"

namespace neap::whatif {

[[nodiscard]] std::string picture_of(const Study& study, const StudyOutcome& outcome);

}  // namespace neap::whatif
