// Small loads under real limits: what verify.cpp measures with. A probe is a child process in a
// group of its own that makes system calls only, for the daemon around it has threads.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "backend/local/cgroup.h"
#include "backend/local/fd.h"
#include "core/model/units.h"

namespace neap::local {

struct ProbeEnd {
  std::int64_t result = -1;  // what the work gave back; -1: it did not come so far
  int signal = 0;            // that killed it
};

class Probe {
 public:
  // Work of a child: no memory is allocated, nothing is locked.
  using Work = std::int64_t (*)(const void* argument);

  // The child enters `group` (none: stays where it is), does the work and ends. `argument` must
  // live until then. Of all open files the child keeps 0, 1, 2 and `keep`.
  Probe(const Cgroup* group, Work work, const void* argument, int keep = -1);
  ~Probe();  // kills it, when it has not ended
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Waits for the end, at most so long, then kills.
  [[nodiscard]] ProbeEnd wait(Micros at_most);

 private:
  pid_t pid_ = -1;
  Fd result_;
};

// A throwaway group below neap/, removed at the end with all that runs in it.
class ProbeGroup {
 public:
  ProbeGroup(const CgroupRoot& root, const std::string& name, const CgroupLimits& limits);
  ~ProbeGroup();
  ProbeGroup(const ProbeGroup&) = delete;
  ProbeGroup& operator=(const ProbeGroup&) = delete;

  [[nodiscard]] const Cgroup& group() const { return created_.group; }
  // Why it has not the limits it should have; empty when it has.
  [[nodiscard]] std::string trouble() const;

 private:
  Cgroup::Created created_;
};

// ---- work ------------------------------------------------------------------------------------

struct Spin {
  int cpu = 0;             // pinned to it; below 0: not pinned
  std::int64_t begin = 0;  // CLOCK_MONOTONIC in µs
  std::int64_t end = 0;
};
[[nodiscard]] std::int64_t spin(const void* argument);           // CPU time in µs
[[nodiscard]] std::int64_t escape_to_all(const void* argument);  // how many CPUs it may use
[[nodiscard]] std::int64_t take_memory(const void* argument);    // bytes taken of std::int64_t
[[nodiscard]] std::int64_t fork_crowd(const void* argument);     // children of 16 that it got

struct DirectIo {
  int fd = -1;             // O_DIRECT
  bool write = true;       // else reads what was written
  std::int64_t block = 0;  // bytes at once
  std::int64_t span = 0;   // bytes of the file that are gone over and over
  std::int64_t end = 0;    // CLOCK_MONOTONIC in µs
};
[[nodiscard]] std::int64_t direct_io(const void* argument);  // operations a second, in thousandths

struct SendAll {
  std::uint16_t port = 0;  // on 127.0.0.1
  std::int64_t end = 0;
};
[[nodiscard]] std::int64_t send_all(const void* argument);  // bytes

[[nodiscard]] std::int64_t monotonic_us();

}  // namespace neap::local
