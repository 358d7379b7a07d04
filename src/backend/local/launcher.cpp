#include "backend/local/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "backend/local/durable_file.h"
#include "backend/local/json.h"
#include "backend/local/unix_socket.h"

namespace neap::local {
namespace {

constexpr int starter_fd = 3;
constexpr std::size_t small_file_limit = 4096;

Result<pid_t> spawn(const std::string& executable, const std::string& directory, int word) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, word, starter_fd);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, starter_fd + 1);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  std::string program = executable;
  std::string argument = directory;
  char* argv[] = {program.data(), argument.data(), nullptr};
  char* environment[] = {nullptr};
  pid_t pid = 0;
  errno = ::posix_spawn(&pid, executable.c_str(), &actions, &attributes, argv, environment);
  const int error = errno;
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  errno = error;
  if (error != 0) return tl::unexpected(system_error("start", executable));
  return pid;
}

std::optional<Json> read_json_file(const std::string& path) {
  const auto text = read_bounded(path, small_file_limit);
  if (!text) return std::nullopt;
  auto json = parse_json(*text);
  if (!json || json->kind != Json::Kind::object) return std::nullopt;
  return std::move(*json);
}

}  // namespace

Result<Launch> launch_supervisor(const std::string& executable, const std::string& directory,
                                 const SupervisedTask& task) {
  if (contract_path(directory).size() > socket_path_limit) {
    return fail(ErrorCode::invalid_argument, contract_path(directory) +
                                                 ": a socket's path has at most 107 bytes; "
                                                 "use a shorter run directory");
  }
  // Before anything is written: what a supervisor cannot read back must not lie there.
  const std::string spec = spec_text(task);
  if (spec.size() > spec_size_limit) {
    return fail(ErrorCode::too_large, "its command and environment are over the limit of " +
                                          std::to_string(spec_size_limit) + " bytes");
  }
  if (auto readable = parse_spec(spec); !readable) return tl::unexpected(readable.error());
  // Others may pass through, to the contract socket, and see nothing else.
  if (auto made = make_directory(directory, 0711); !made) return tl::unexpected(made.error());
  auto kept = write_durably(spec_path(directory), spec, 0600);
  if (!kept) return tl::unexpected(kept.error());
  kept = sync_directory(directory.substr(0, directory.rfind('/')));
  if (!kept) return tl::unexpected(kept.error());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(system_error("pipe", ""));
  Launch launch;
  launch.word.reset(ends[0]);
  const Fd writing(ends[1]);
  const auto pid = spawn(executable, directory, writing.get());
  if (!pid) return tl::unexpected(pid.error());
  launch.starter = *pid;
  (void)::fcntl(launch.word.get(), F_SETFL, O_NONBLOCK);
  return launch;
}

std::optional<pid_t> supervisor_of(const std::string& directory) {
  const Fd fd(::open(lock_path(directory).c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(fd.get(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return lock.l_pid;
}

bool was_started(const std::string& directory) {
  return ::access(started_path(directory).c_str(), F_OK) == 0;
}

Leftover read_leftover(const std::string& directory, const std::optional<SupervisedTask>& task) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  Leftover out;
  out.marks.environment = "NEAP_SOCKET=" + contract_path(directory);
  if (const auto json = read_json_file(started_path(directory))) {
    const JsonFields fields(*json, "");
    out.marks.session =
        static_cast<pid_t>(fields.integer("pid", 0, std::numeric_limits<pid_t>::max()).value_or(0));
    out.marks.start_ticks =
        static_cast<std::uint64_t>(fields.integer("start_ticks", 0, most).value_or(0));
  }
  if (task && task->cgroup) {
    out.marks.cgroup = Cgroup::existing(detect_cgroups(task->cgroup->root), task->cgroup->name);
  }
  if (const auto json = read_json_file(exit_path(directory))) {
    const JsonFields fields(*json, "");
    Exited exit;
    exit.code = static_cast<std::int32_t>(fields.integer("code", 0, 255).value_or(0));
    exit.signal = static_cast<std::int32_t>(fields.integer("signal", 0, 127).value_or(0));
    exit.ended = Time(fields.integer("ended_us", 0, most).value_or(0));
    out.exit = exit;
  }
  return out;
}

}  // namespace neap::local
