#include "backend/local/probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace neap::local {
namespace {

constexpr std::int64_t crowd = 16;

std::int64_t clock_us(clockid_t clock) {
  timespec now{};
  (void)::clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1'000;
}

void close_between(int first, int last) {
  if (first <= last) {
    (void)::close_range(static_cast<unsigned>(first), static_cast<unsigned>(last), 0);
  }
}

// A child that never executes another program keeps what its parent had open, close-on-exec or
// not: the journal's lock among it, which would then outlive a killed daemon.
void close_all_but(int a, int b) {
  const auto [low, high] = std::minmax(a, b);
  close_between(STDERR_FILENO + 1, low - 1);
  close_between(std::max(low, STDERR_FILENO) + 1, high - 1);
  close_between(std::max(high, STDERR_FILENO) + 1, std::numeric_limits<int>::max());
}

}  // namespace

std::int64_t monotonic_us() { return clock_us(CLOCK_MONOTONIC); }

Probe::Probe(const Cgroup* group, Work work, const void* argument, int keep) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  result_.reset(ends[0]);
  const Fd writing(ends[1]);
  pid_ = ::fork();
  if (pid_ != 0) return;
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  close_all_but(writing.get(), keep);
  if (group != nullptr && !group->enter(0)) ::_exit(1);
  const std::int64_t result = work(argument);
  (void)!::write(writing.get(), &result, sizeof result);
  ::_exit(0);
}

Probe::~Probe() {
  if (pid_ <= 0) return;
  (void)::kill(pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, 0);
}

ProbeEnd Probe::wait(Micros at_most) {
  ProbeEnd out;
  if (pid_ <= 0) return out;
  pollfd ready{result_.get(), POLLIN, 0};
  (void)::poll(&ready, 1, static_cast<int>(at_most.value / 1'000));
  if ((ready.revents & POLLIN) != 0) {
    std::int64_t result = -1;
    if (::read(result_.get(), &result, sizeof result) == sizeof result) out.result = result;
  }
  if (out.result < 0 && ready.revents == 0) (void)::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) out.signal = WTERMSIG(status);
  pid_ = -1;
  return out;
}

ProbeGroup::ProbeGroup(const CgroupRoot& root, const std::string& name, const CgroupLimits& limits)
    : created_(
          Cgroup::create(root, "neap/check-" + std::to_string(::getpid()) + "-" + name, limits)) {}

ProbeGroup::~ProbeGroup() {
  created_.group.kill();
  for (int i = 0; i < 60 && !created_.group.processes().empty(); ++i) ::usleep(5'000);
  created_.group.remove();
}

std::string ProbeGroup::trouble() const {
  if (!created_.not_enforced.empty()) return created_.not_enforced.front();
  return created_.group.empty_handed() ? "no control group can be made" : "";
}

std::int64_t spin(const void* argument) {
  const Spin& how = *static_cast<const Spin*>(argument);
  if (how.cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(how.cpu), &set);
    (void)::sched_setaffinity(0, sizeof set, &set);
  }
  while (monotonic_us() < how.begin) ::usleep(500);
  const std::int64_t before = clock_us(CLOCK_THREAD_CPUTIME_ID);
  while (monotonic_us() < how.end) {
  }
  return clock_us(CLOCK_THREAD_CPUTIME_ID) - before;
}

std::int64_t escape_to_all(const void*) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (unsigned i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &set);
  (void)::sched_setaffinity(0, sizeof set, &set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return -1;
  return CPU_COUNT(&set);
}

std::int64_t take_memory(const void* argument) {
  const auto bytes = static_cast<std::size_t>(*static_cast<const std::int64_t*>(argument));
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  auto* at = static_cast<volatile char*>(memory);
  constexpr std::size_t step = 1U << 20U;
  std::int64_t taken = 0;
  for (std::size_t begin = 0; begin < bytes; begin += step) {
    for (std::size_t i = begin; i < begin + step && i < bytes; i += 4096) at[i] = 1;
    // Swapped out it would not count.
    (void)::mlock(static_cast<char*>(memory) + begin, step);
    taken += static_cast<std::int64_t>(step);
  }
  return taken;
}

std::int64_t fork_crowd(const void*) {
  std::int64_t made = 0;
  for (std::int64_t i = 0; i < crowd; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) break;
    if (pid == 0) {
      ::usleep(300'000);
      ::_exit(0);
    }
    ++made;
  }
  return made;
}

std::int64_t direct_io(const void* argument) {
  const DirectIo& how = *static_cast<const DirectIo*>(argument);
  const auto size = static_cast<std::size_t>(how.block);
  void* buffer = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (buffer == MAP_FAILED) return -1;
  const std::int64_t begin = monotonic_us();
  std::int64_t done = 0;
  std::int64_t now = begin;
  for (off_t at = 0; now < how.end; now = monotonic_us()) {
    const ssize_t n =
        how.write ? ::pwrite(how.fd, buffer, size, at) : ::pread(how.fd, buffer, size, at);
    if (n != static_cast<ssize_t>(size)) return -1;
    ++done;
    at = at + how.block >= how.span ? 0 : at + how.block;
  }
  return now > begin ? done * 1'000'000'000 / (now - begin) : -1;
}

std::int64_t send_all(const void* argument) {
  const SendAll& how = *static_cast<const SendAll*>(argument);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(how.port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return -1;
  timeval patience{0, 200'000};
  (void)::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  static const char block[65'536] = {};
  std::int64_t sent = 0;
  while (monotonic_us() < how.end) {
    const ssize_t n = ::send(fd, block, sizeof block, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) break;
    if (n > 0) sent += n;
  }
  return sent;
}

}  // namespace neap::local
