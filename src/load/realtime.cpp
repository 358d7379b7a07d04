#include "load/realtime.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <tuple>

namespace neap::load {

Result<void> become_realtime() {
  constexpr int priority = 10;  // above all that is not real-time, below the kernel's own threads
  sched_param parameters{};
  parameters.sched_priority = priority;
  if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) != 0) {
    return fail(ErrorCode::permission_denied,
                std::string("no real-time priority: ") + std::strerror(errno) +
                    "; it needs root, CAP_SYS_NICE or a limit rtprio of 10");
  }
  // Better with, as good as before without. Under a limit, what is asked for later would fail.
  rlimit locked{};
  const bool unlimited =
      getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur == RLIM_INFINITY;
  if (geteuid() == 0 || unlimited) std::ignore = mlockall(MCL_CURRENT | MCL_FUTURE);
  return {};
}

void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace neap::load
