#include "backend/local/traffic.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <set>
#include <string_view>

#include "backend/local/durable_file.h"
#include "backend/local/fd.h"

namespace neap::local {
namespace {

constexpr std::size_t output_limit = 4 * 1024 * 1024;
constexpr int claims_tried = 16;
// What segmentation offload sends at once; without it tc warns about a choice of its own.
constexpr const char* quantum = "65536";

long bpf(int command, bpf_attr& attributes) {
  return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// packet->priority = class: HTB takes a priority that is the number of a class for the choice of
// it.
Result<Fd> load_classifier(std::uint32_t traffic_class) {
  const auto priority = static_cast<std::int16_t>(offsetof(__sk_buff, priority));
  const auto number = static_cast<std::int32_t>(traffic_handle << 16 | traffic_class);
  const bpf_insn program[] = {
      {BPF_ALU | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, number},
      {BPF_STX | BPF_MEM | BPF_W, BPF_REG_1, BPF_REG_2, priority, 0},
      {BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1},  // let it pass
      {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
  };
  static constexpr char license[] = "GPL";
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_SKB;
  attributes.expected_attach_type = BPF_CGROUP_INET_EGRESS;
  attributes.insn_cnt = sizeof program / sizeof program[0];
  attributes.insns = address_of(program);
  attributes.license = address_of(license);
  const long fd = bpf(BPF_PROG_LOAD, attributes);
  if (fd < 0) return tl::unexpected(system_error("load", "a program that marks traffic"));
  return Fd(static_cast<int>(fd));
}

std::string hex(std::uint32_t value) {
  char text[16];
  const auto end = std::to_chars(text, text + sizeof text, value, 16).ptr;
  return {text, end};
}

std::string class_id(std::uint32_t traffic_class) {
  return hex(traffic_handle) + ":" + hex(traffic_class);
}

// "class htb 6e70:10 root prio 0 …": the numbers behind "6e70:".
std::set<std::uint32_t> classes_in(std::string_view text) {
  std::set<std::uint32_t> out;
  const std::string before = " " + hex(traffic_handle) + ":";
  for (std::size_t at = 0; (at = text.find(before, at)) != std::string_view::npos;) {
    at += before.size();
    std::uint32_t number = 0;
    std::from_chars(text.data() + at, text.data() + text.size(), number, 16);
    if (number != 0) out.insert(number);
  }
  return out;
}

// Does the root of this interface belong to somebody? The kernel's own choices have the handle 0.
enum class Root { none, ours, others };
Root root_in(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.find(" root ") == std::string_view::npos) continue;
    if (line.find("qdisc htb " + hex(traffic_handle) + ": ") != std::string_view::npos) {
      return Root::ours;
    }
    return line.find(" 0: ") != std::string_view::npos ? Root::none : Root::others;
  }
  return Root::none;
}

}  // namespace

Result<void> classify_traffic(const std::string& unified_directory, std::uint32_t traffic_class) {
  const Fd group(::open(unified_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!group.valid()) return tl::unexpected(system_error("open", unified_directory));
  const auto program = load_classifier(traffic_class);
  if (!program) return tl::unexpected(program.error());
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.target_fd = static_cast<std::uint32_t>(group.get());
  attributes.attach_bpf_fd = static_cast<std::uint32_t>(program->get());
  attributes.attach_type = BPF_CGROUP_INET_EGRESS;
  attributes.attach_flags = BPF_F_ALLOW_MULTI;  // beside what others have there
  if (bpf(BPF_PROG_ATTACH, attributes) != 0) {
    return tl::unexpected(system_error("mark the traffic of", unified_directory));
  }
  return {};
}

TrafficShaper::TrafficShaper(std::vector<std::string> interfaces, Run run)
    : interfaces_(std::move(interfaces)), run_(std::move(run)) {}

Result<void> TrafficShaper::prepare() const {
  if (interfaces_.empty()) {
    return fail(ErrorCode::unavailable, "the pool file names no interface in host.interfaces");
  }
  for (const std::string& name : interfaces_) {
    const auto shown = run_({"qdisc", "show", "dev", name});
    if (!shown) return tl::unexpected(shown.error());
    const Root root = root_in(*shown);
    if (root == Root::ours) continue;
    if (root == Root::others) {
      return fail(ErrorCode::conflict, "has a queue that is not neap's, and is left alone", name);
    }
    const auto made = run_({"qdisc", "add", "dev", name, "root", "handle",
                            hex(traffic_handle) + ":", "htb", "default", "0"});
    if (!made) return tl::unexpected(made.error());
  }
  return {};
}

Result<std::uint32_t> TrafficShaper::claim(std::int64_t bytes_per_second) const {
  std::set<std::uint32_t> taken;
  for (const std::string& name : interfaces_) {
    const auto shown = run_({"class", "show", "dev", name});
    if (!shown) return tl::unexpected(shown.error());
    taken.merge(classes_in(*shown));
  }
  int tries = 0;
  for (std::uint32_t one = traffic_class_min; one <= traffic_class_max; ++one) {
    if (taken.contains(one)) continue;
    // Added, not replaced: another pool may have taken it just now.
    const auto made = put("add", one, bytes_per_second);
    if (made) return one;
    if (++tries == claims_tried) return tl::unexpected(made.error());
  }
  return fail(ErrorCode::exhausted, "all classes of traffic are in use");
}

Result<void> TrafficShaper::set(std::uint32_t traffic_class, std::int64_t bytes_per_second) const {
  return put("replace", traffic_class, bytes_per_second);
}

Result<void> TrafficShaper::put(std::string_view verb, std::uint32_t traffic_class,
                                std::int64_t bytes_per_second) const {
  const std::string rate = std::to_string(bytes_per_second) + "bps";  // bytes, as tc has it
  for (const std::string& name : interfaces_) {
    const auto done = run_({"class", std::string(verb), "dev", name, "parent",
                            hex(traffic_handle) + ":", "classid", class_id(traffic_class), "htb",
                            "rate", rate, "ceil", rate, "quantum", quantum});
    if (!done) return tl::unexpected(done.error());
  }
  return {};
}

void TrafficShaper::remove(std::uint32_t traffic_class) const {
  for (const std::string& name : interfaces_) {
    (void)run_({"class", "del", "dev", name, "classid", class_id(traffic_class)});
  }
}

Result<std::string> TrafficShaper::run_tc(const std::vector<std::string>& arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(system_error("pipe", ""));
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), 2);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  std::vector<std::string> words = {"tc"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  char path[] = "PATH=/usr/sbin:/sbin:/usr/bin:/bin";
  char* environment[] = {path, nullptr};
  pid_t pid = 0;
  int error = ENOENT;
  for (const char* program : {"/usr/sbin/tc", "/sbin/tc", "/usr/bin/tc"}) {
    error = ::posix_spawn(&pid, program, &actions, nullptr, argv.data(), environment);
    if (error == 0) break;
  }
  ::posix_spawn_file_actions_destroy(&actions);
  writing.reset();
  if (error != 0) {
    return fail(ErrorCode::unavailable, std::string("tc cannot be run: ") + std::strerror(error) +
                                            "; it is in the package iproute2");
  }
  std::string output;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(reading.get(), buffer, sizeof buffer)) > 0;) {
    if (output.size() < output_limit) output.append(buffer, static_cast<std::size_t>(n));
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  return fail(ErrorCode::unavailable, "tc: " + output.substr(0, output.find('\n')));
}

}  // namespace neap::local
