#include "backend/local/verify.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "backend/local/block_device.h"
#include "backend/local/durable_file.h"
#include "backend/local/probe.h"

namespace neap::local {
namespace {

constexpr std::int64_t mib = 1 << 20;

MethodCheck held(std::string evidence) { return {MethodState::held, std::move(evidence)}; }
MethodCheck failed(std::string evidence) { return {MethodState::failed, std::move(evidence)}; }

std::string tenth(std::int64_t amount, std::int64_t unit) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", static_cast<double>(amount) / static_cast<double>(unit));
  return text;
}

std::vector<int> own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> out;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return out;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<unsigned>(i), &set)) out.push_back(i);
  }
  return out;
}

// ---- processors ------------------------------------------------------------------------------

MethodCheck check_cpu_weight(const CgroupRoot& root) {
  CgroupLimits heavy;
  CgroupLimits light;
  heavy.cpu_weight = 1000;
  light.cpu_weight = 100;
  const ProbeGroup first(root, "heavy", heavy);
  const ProbeGroup second(root, "light", light);
  for (const ProbeGroup* one : {&first, &second}) {
    if (!one->trouble().empty()) return failed(one->trouble());
  }
  const std::vector<int> cpus = own_cpus();
  if (cpus.empty()) return failed("no processor is known");
  const std::int64_t now = monotonic_us();
  const Spin how{cpus.front(), now + 20'000, now + 520'000};
  Probe a(&first.group(), spin, &how);
  Probe b(&second.group(), spin, &how);
  const std::int64_t got = a.wait(seconds(3)).result;
  const std::int64_t other = b.wait(seconds(3)).result;
  if (got < 0 || other < 0) return failed("two busy processes did not run");
  const std::string evidence = "two busy processes at 1000 and 100 on one processor got " +
                               std::to_string(got / 1000) + " and " + std::to_string(other / 1000) +
                               " ms";
  return got >= 3 * other ? held(evidence) : failed(evidence);
}

std::int64_t throttled(const Cgroup& group) {
  const std::string text =
      read_bounded(group.directory_of("cpu") + "/cpu.stat", 64 * 1024).value_or(std::string());
  const std::size_t at = text.find("nr_throttled ");
  return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + 13);
}

MethodCheck check_cpu_quota(const CgroupRoot& root) {
  CgroupLimits limits;
  limits.cpu_quota_milli = 200;
  const ProbeGroup place(root, "quota", limits);
  if (!place.trouble().empty()) return failed(place.trouble());
  const std::int64_t now = monotonic_us();
  const Spin how{-1, now, now + 600'000};
  Probe one(&place.group(), spin, &how);
  const std::int64_t got = one.wait(seconds(3)).result;
  const std::string evidence =
      "a busy process with 0.2 of a processor got " + std::to_string(got / 1000) + " of 600 ms";
  // Held back by the quota, and not only by others who wanted the processors too.
  const bool by_quota = throttled(place.group()) > 0;
  return got > 0 && got <= 180'000 && by_quota ? held(evidence) : failed(evidence);
}

MethodCheck check_cpu_set(const CgroupRoot& root) {
  const std::vector<int> cpus = own_cpus();
  if (cpus.size() < 2) return failed("there is one processor to choose from");
  CgroupLimits limits;
  limits.cpus = std::to_string(cpus.back());
  const ProbeGroup place(root, "cpus", limits);
  if (!place.trouble().empty()) return failed(place.trouble());
  Probe one(&place.group(), escape_to_all, nullptr);
  const std::int64_t got = one.wait(seconds(2)).result;
  const std::string evidence = "a process held to 1 of " + std::to_string(cpus.size()) +
                               " processors that asked for all got " + std::to_string(got);
  return got == 1 ? held(evidence) : failed(evidence);
}

// ---- memory and processes ----------------------------------------------------------------------

constexpr std::int64_t memory_taken = 64 * mib;
constexpr std::int64_t memory_limit = 24 * mib;

MethodCheck check_memory_max(const CgroupRoot& root) {
  CgroupLimits limits;
  limits.memory_max_bytes = memory_limit;
  const ProbeGroup place(root, "memory", limits);
  if (!place.trouble().empty()) return failed(place.trouble());
  Probe one(&place.group(), take_memory, &memory_taken);
  const ProbeEnd end = one.wait(seconds(3));
  if (end.signal == SIGKILL && place.group().oom_kills() > 0) {
    return held("a process that took 64 MiB of 24 MiB was ended");
  }
  return failed("a process took 64 MiB where 24 MiB were allowed");
}

MethodCheck check_memory_high(const CgroupRoot& root) {
  CgroupLimits limits;
  limits.memory_high_bytes = memory_limit;
  const ProbeGroup place(root, "high", limits);
  if (!place.trouble().empty()) return failed(place.trouble());
  Probe one(&place.group(), take_memory, &memory_taken);
  (void)one.wait(milliseconds(500));
  const std::string text =
      read_bounded(place.group().directory_of("memory") + "/memory.events", 64 * 1024)
          .value_or(std::string());
  const std::size_t at = text.find("high ");
  const std::int64_t times = at == std::string::npos ? 0 : std::atoll(text.c_str() + at + 5);
  if (times > 0) {
    return held("a process above 24 MiB was slowed down " + std::to_string(times) + " times");
  }
  return failed("a process above 24 MiB was not slowed down");
}

MethodCheck check_processes(const CgroupRoot& root) {
  CgroupLimits limits;
  limits.processes_max = 4;
  const ProbeGroup place(root, "processes", limits);
  if (!place.trouble().empty()) return failed(place.trouble());
  Probe one(&place.group(), fork_crowd, nullptr);
  const std::int64_t got = one.wait(seconds(2)).result;
  const std::string evidence =
      "a process held to 4 with itself got " + std::to_string(got) + " of 16 children";
  return got == 3 ? held(evidence) : failed(evidence);
}

// ---- storage -----------------------------------------------------------------------------------

constexpr std::int64_t file_span = 32 * mib;

// A file that goes with its descriptor.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& folder) {
    std::string name = folder + "/.neap-check-XXXXXX";
    const Fd made(::mkostemp(name.data(), O_CLOEXEC));
    if (!made.valid()) {
      trouble_ = system_error("make a file in", folder).message;
      return;
    }
    fd_.reset(::open(name.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
    if (!fd_.valid()) trouble_ = system_error("open without cache", folder).message;
    (void)::unlink(name.c_str());
  }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  Fd fd_;
  std::string trouble_;
};

struct IoRun {
  const Cgroup* group = nullptr;
  bool write = true;
  std::int64_t block = 0;
  std::int64_t length_us = 0;
};

// Operations a second, in thousandths; below 0 when it failed.
std::int64_t measure_io(const ScratchFile& file, const IoRun& run) {
  const DirectIo how{file.fd(), run.write, run.block, file_span, monotonic_us() + run.length_us};
  Probe one(run.group, direct_io, &how, file.fd());
  return one.wait(seconds(6)).result;
}

std::string seen_by_v1(const CgroupRoot& root) {
  return root.version == CgroupVersion::v1 ? "; writes through the cache are not seen by cgroup v1"
                                           : "";
}

MethodCheck check_io_bandwidth(const CgroupRoot& root, const std::string& folder,
                               const std::string& disk) {
  const ScratchFile file(folder);
  if (!file.trouble().empty()) return failed(file.trouble());
  const std::int64_t block = mib / 4;
  const std::int64_t alone = measure_io(file, {nullptr, true, block, 150'000}) * block / 1000;
  if (alone <= 0) return failed("writes without cache do not work in " + folder);
  const std::int64_t cap = std::min(8 * mib, alone / 3);
  CgroupLimits limits;
  limits.io = {{disk, {}, cap, {}, {}}};
  const ProbeGroup place(root, "bandwidth", limits);
  if (!place.trouble().empty()) return failed(place.trouble());
  const std::int64_t got =
      measure_io(file, {&place.group(), true, block, 1'000'000}) * block / 1000;
  const std::string evidence = "wrote " + tenth(got, mib) + " MiB/s of a limit of " +
                               tenth(cap, mib) + " (" + tenth(alone, mib) + " without)" +
                               seen_by_v1(root);
  return got >= cap / 2 && got <= cap * 115 / 100 ? held(evidence) : failed(evidence);
}

MethodCheck check_io_operations(const CgroupRoot& root, const std::string& folder,
                                const std::string& disk) {
  const ScratchFile file(folder);
  if (!file.trouble().empty()) return failed(file.trouble());
  if (measure_io(file, {nullptr, true, mib, 100'000}) < 0 ||
      ::ftruncate(file.fd(), file_span) != 0) {
    return failed("writes without cache do not work in " + folder);
  }
  const std::int64_t block = 4096;
  const std::int64_t alone = measure_io(file, {nullptr, false, block, 100'000}) / 1000;
  if (alone <= 0) return failed("reads without cache do not work in " + folder);
  const std::int64_t cap = std::clamp<std::int64_t>(alone / 3, 1, 100);
  CgroupLimits limits;
  limits.io = {{disk, {}, {}, cap, {}}};
  const ProbeGroup place(root, "operations", limits);
  if (!place.trouble().empty()) return failed(place.trouble());
  const std::int64_t got = measure_io(file, {&place.group(), false, block, 1'000'000}) / 1000;
  const std::string evidence = "made " + std::to_string(got) + " reads/s of a limit of " +
                               std::to_string(cap) + " (" + std::to_string(alone) + " without)";
  return got >= cap / 2 && got <= cap * 115 / 100 + 1 ? held(evidence) : failed(evidence);
}

MethodCheck check_io_weight(const CgroupRoot& root, const std::string& folder) {
  CgroupLimits heavy;
  CgroupLimits light;
  heavy.io_weight = 1000;
  light.io_weight = 100;
  const ProbeGroup first(root, "io-heavy", heavy);
  const ProbeGroup second(root, "io-light", light);
  for (const ProbeGroup* one : {&first, &second}) {
    if (!one->trouble().empty()) return failed(one->trouble());
  }
  const ScratchFile file(folder);
  const ScratchFile other_file(folder);
  if (!file.trouble().empty()) return failed(file.trouble());
  const std::int64_t end = monotonic_us() + 500'000;
  const DirectIo how{file.fd(), true, mib / 4, file_span, end};
  const DirectIo other_how{other_file.fd(), true, mib / 4, file_span, end};
  Probe a(&first.group(), direct_io, &how, file.fd());
  Probe b(&second.group(), direct_io, &other_how, other_file.fd());
  const std::int64_t got = a.wait(seconds(3)).result;
  const std::int64_t other = b.wait(seconds(3)).result;
  const std::string evidence = "two writers at 1000 and 100 wrote " + tenth(got, 4000) + " and " +
                               tenth(other, 4000) + " MiB/s";
  return got > 0 && other > 0 && got >= 2 * other ? held(evidence) : failed(evidence);
}

// ---- network -----------------------------------------------------------------------------------

bool bring_up_loopback() {
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  return fd.valid() && ::ioctl(fd.get(), SIOCSIFFLAGS, &request) == 0;
}

// Bytes a second that arrive from a sender in `group`; below 0 when it failed.
std::int64_t measure_sending(const Cgroup* group, std::int64_t length_us) {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  if (::bind(listener.get(), address, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), address, &size) != 0) {
    return -1;
  }
  const SendAll how{ntohs(at.sin_port), monotonic_us() + length_us};
  Probe sender(group, send_all, &how);
  timeval patience{2, 0};
  (void)::setsockopt(listener.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const Fd receiver(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!receiver.valid()) return -1;
  (void)::setsockopt(receiver.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::vector<char> buffer(1 << 20);
  const std::int64_t begin = monotonic_us();
  std::int64_t last = begin;
  std::int64_t bytes = 0;
  for (ssize_t n = 0; (n = ::recv(receiver.get(), buffer.data(), buffer.size(), 0)) > 0;) {
    bytes += n;
    last = monotonic_us();
  }
  return last > begin ? bytes * 1'000'000 / (last - begin) : -1;
}

// On a thread whose network is its own: nothing of the machine's is touched.
MethodCheck check_in_own_network(const CgroupRoot& root) {
  if (::unshare(CLONE_NEWNET) != 0) {
    return failed(system_error("make", "a network to try it in").message);
  }
  if (!bring_up_loopback()) return failed("loopback does not come up in a network of its own");
  const TrafficShaper shaper({"lo"});
  if (const auto ready = shaper.prepare(); !ready) return failed(to_string(ready.error()));
  const std::int64_t cap = 10 * mib;
  const auto claimed = shaper.claim(cap);
  if (!claimed) return failed(to_string(claimed.error()));
  const ProbeGroup place(root, "network", {});
  const auto marked = classify_traffic(place.group().unified_directory(), *claimed);
  if (!marked) return failed(marked.error().message);
  const std::int64_t alone = measure_sending(nullptr, 100'000);
  const std::int64_t got = measure_sending(&place.group(), 600'000);
  const std::string evidence = "sent " + tenth(got, mib) + " MiB/s of a limit of " +
                               tenth(cap, mib) + " (" + tenth(alone, mib) + " without)";
  const bool contended = alone > 2 * cap;
  return contended && got >= cap / 2 && got <= cap * 115 / 100 ? held(evidence) : failed(evidence);
}

MethodCheck check_network(const CgroupRoot& root, const VerifyPlace& place) {
  const TrafficShaper shaper(place.interfaces);
  if (const auto ready = shaper.prepare(); !ready) return failed(to_string(ready.error()));
  MethodCheck out;
  std::thread([&] { out = check_in_own_network(root); }).join();
  return out;
}

MethodCheck check_one(Method method, const CgroupRoot& root, const VerifyPlace& place,
                      const Result<std::string>& disk) {
  switch (method) {
    case Method::cpu_weight:
      return check_cpu_weight(root);
    case Method::cpu_quota:
      return check_cpu_quota(root);
    case Method::cpu_set:
      return check_cpu_set(root);
    case Method::memory_max:
      return check_memory_max(root);
    case Method::memory_high:
      return check_memory_high(root);
    case Method::processes:
      return check_processes(root);
    case Method::network:
      return check_network(root, place);
    case Method::io_bandwidth:
      return disk ? check_io_bandwidth(root, place.folder, *disk) : failed(to_string(disk.error()));
    case Method::io_operations:
      return disk ? check_io_operations(root, place.folder, *disk)
                  : failed(to_string(disk.error()));
    case Method::io_weight:
      return check_io_weight(root, place.folder);
  }
  return failed("unknown method");
}

}  // namespace

MethodChecks verify_methods(const VerifyPlace& place, const std::vector<Method>& methods,
                            const std::function<bool()>& go_on) {
  MethodChecks out;
  const CgroupRoot root = detect_cgroups(place.cgroup_root);
  const Result<std::string> disk = disk_of(place.folder);
  for (const Method method : methods) {
    if (!go_on()) break;
    out[method] = root.version == CgroupVersion::none
                      ? failed("no control groups are mounted at " + place.cgroup_root)
                      : check_one(method, root, place, disk);
  }
  return out;
}

}  // namespace neap::local
