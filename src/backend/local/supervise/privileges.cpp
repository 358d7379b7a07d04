#include "backend/local/supervise/privileges.h"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace neap::local {

const char* become_submitter(const SupervisedTask& task) {
  if (::geteuid() == 0) {
    const std::vector<gid_t> groups(task.groups.begin(), task.groups.end());
    if (::setgroups(groups.size(), groups.data()) != 0) return "setgroups";
    if (::setresgid(task.gid, task.gid, task.gid) != 0) return "setresgid";
    if (::setresuid(task.uid, task.uid, task.uid) != 0) return "setresuid";
    // A way back would be a hole, whatever the reason.
    if (task.uid != 0 && ::setuid(0) == 0) {
      errno = EPERM;
      return "dropping root";
    }
  } else if (::geteuid() != task.uid) {
    errno = EPERM;
    return "running as another user needs root: setresuid";
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "no_new_privs";
  ::umask(static_cast<mode_t>(task.umask));
  return nullptr;
}

bool die_with_parent() { return ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0; }

void reset_signals() {
  // The system call itself: the library keeps two signals to itself and would leave them ignored.
  const std::array<unsigned long, 8> as_default{};
  for (int number = 1; number < NSIG; ++number) {
    (void)::syscall(SYS_rt_sigaction, number, as_default.data(), nullptr, sizeof(unsigned long));
  }
  sigset_t none;
  ::sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace neap::local
