// neap-supervise <directory>: runs the task that <directory>/spec.json describes, and outlives
// the daemon that started it. On descriptor 3, when it is open, one line tells the starter how it
// went: "ready", "running" (another supervisor has this allocation) or what failed.
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "backend/local/durable_file.h"
#include "backend/local/fd.h"
#include "backend/local/spec.h"
#include "backend/local/supervise/supervisor.h"

namespace {

using neap::local::Fd;

constexpr int starter_fd = 3;

void tell_starter(const std::string& line) {
  (void)neap::local::write_all(starter_fd, line + "\n");
  ::close(starter_fd);
}

int give_up(const std::string& reason) {
  std::fprintf(stderr, "neap-supervise: %s\n", reason.c_str());
  tell_starter(reason);
  return 1;
}

// Descriptor 2 becomes a file of the allocation, for the rare word; nothing holds the daemon's.
void detach(const std::string& directory) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const std::string path = directory + "/supervisor.log";
  const int log = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  (void)::dup2(null, 0);
  (void)::dup2(null, 1);
  (void)::dup2(log >= 0 ? log : null, 2);
  if (null > 2) ::close(null);
  if (log > 2) ::close(log);
}

// A record lock: it goes with this process, is not inherited, and others can ask who holds it.
bool take_lock(int fd) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd, F_SETLK, &lock) == 0;
}

Fd block_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT}) ::sigaddset(&set, number);
  (void)::sigprocmask(SIG_SETMASK, &set, nullptr);
  (void)::signal(SIGPIPE, SIG_IGN);
  (void)::signal(SIGHUP, SIG_IGN);
  return Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
}

int supervise(const std::string& directory) {
  (void)::fcntl(starter_fd, F_SETFD, FD_CLOEXEC);
  const std::string lock_file = neap::local::lock_path(directory);
  const Fd lock(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return give_up(neap::local::system_error("open", lock_file).message);
  if (!take_lock(lock.get())) return tell_starter("running"), 0;
  if (::access(neap::local::started_path(directory).c_str(), F_OK) == 0) {
    return give_up("this allocation was started before, and is never started twice");
  }
  const std::string spec_file = neap::local::spec_path(directory);
  const auto text = neap::local::read_bounded(spec_file, neap::local::spec_size_limit);
  if (!text) return give_up(text.error().message);
  auto task = neap::local::parse_spec(*text);
  if (!task) return give_up(spec_file + ": " + task.error().message);
  // Of all processes this one goes last when memory is short.
  if (const Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score.valid()) {
    (void)neap::local::write_all(score.get(), "-500");
  }
  auto supervisor = neap::local::Supervisor::open(directory, std::move(*task), block_signals());
  if (!supervisor) return give_up(supervisor.error().message);
  tell_starter("ready");
  (*supervisor)->run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] != '/') {
    std::fprintf(stderr, "usage: neap-supervise <absolute directory>\n");
    return 2;
  }
  ::umask(077);
  if (::fcntl(starter_fd, F_GETFD) < 0) (void)::dup2(STDERR_FILENO, starter_fd);
  // The starter must not be the parent: it may die, and it waits for this first process only.
  const pid_t pid = ::fork();
  if (pid < 0) return give_up("fork failed");
  if (pid > 0) return 0;
  (void)::setsid();
  if (::chdir("/") != 0) return give_up("chdir / failed");
  detach(argv[1]);
  return supervise(argv[1]);
}
