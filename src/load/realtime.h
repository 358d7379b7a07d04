// Real-time priority for the generator, so that other work on the machine does not make it late.
#pragma once

#include "core/model/result.h"

namespace neap::load {

// Of the calling thread: SCHED_FIFO, not inherited by threads and processes that it makes; its
// memory stays in RAM. permission_denied: the user may not.
[[nodiscard]] Result<void> become_realtime();
// As many open files as the user may have.
void raise_open_files();

}  // namespace neap::load
