#include "gateway/haproxy/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/model/check.h"

extern char** environ;

namespace neap::gateway {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto start_patience = std::chrono::seconds(10);
constexpr auto leftover_patience = std::chrono::seconds(2);
constexpr auto poll_step = std::chrono::milliseconds(5);
constexpr off_t log_max = 1 << 20;
constexpr int pipe_bytes = 1 << 20;  // some 10,000 records

tl::unexpected<Error> system_error(const std::string& doing, const std::string& path) {
  return fail(ErrorCode::unavailable, doing + ": " + std::strerror(errno), path);
}

posix::Fd open_process(pid_t pid) {
  return posix::Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0U)));
}

bool readable(int fd, int timeout_ms) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, timeout_ms) > 0;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

Result<void> write_file(const std::string& path, const std::string& text) {
  posix::Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) return system_error("cannot write", path);
  const ssize_t written = write(fd.get(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size())) return system_error("cannot write", path);
  return {};
}

Result<void> put_in_place(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return system_error("cannot rename", from);
  return {};
}

// Field 22 of /proc/PID/stat: with the number it names a process for ever. Empty: no process.
std::string start_time_of(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t paren = stat.rfind(')');
  if (paren == std::string::npos) return {};
  std::istringstream rest(stat.substr(paren + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) rest >> field;
  return field;
}

struct SpawnAttributes {
  SpawnAttributes() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  ~SpawnAttributes() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }

  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
};

Result<pid_t> spawn_with(const SpawnAttributes& how, std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &how.files, &how.attributes, argv.data(), environ);
  if (error != 0) {
    return fail(ErrorCode::unavailable, std::string("cannot start: ") + std::strerror(error),
                arguments[0]);
  }
  return pid;
}

}  // namespace

ProxyFiles::ProxyFiles(const std::string& in)
    : folder(in),
      config(in + "/haproxy.cfg"),
      new_config(in + "/haproxy.cfg.new"),
      admin_socket(in + "/admin.sock"),
      master_socket(in + "/master.sock"),
      idle_socket(in + "/idle.sock"),
      records(in + "/records"),
      log(in + "/haproxy.log"),
      pid(in + "/haproxy.pid"),
      admission(in + "/admission.lua") {}

ProxyProcess::ProxyProcess(ProxyFiles files, std::string program)
    : files_(std::move(files)), program_(std::move(program)) {}

Result<void> ProxyProcess::find_program() {
  std::vector<std::string> places{program_};
  if (program_.find('/') == std::string::npos) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(std::string(path == nullptr ? "" : path) +
                               ":/usr/local/sbin:/usr/sbin:/sbin");
    places.clear();
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (!folder.empty()) places.push_back(folder + "/" + program_);
    }
  }
  for (const std::string& place : places) {
    if (access(place.c_str(), X_OK) != 0) continue;
    program_ = place;
    return {};
  }
  return fail(ErrorCode::unavailable,
              "HAProxy, which carries requests to services, is not installed: apt-get install "
              "haproxy",
              program_);
}

Result<void> ProxyProcess::prepare() {
  // The proxy binds a socket under a longer, temporary name first.
  if (files_.master_socket.size() + 20 > 107) {
    return fail(ErrorCode::invalid_argument,
                "the folder's path is too long for UNIX sockets: at most 75 characters",
                files_.folder);
  }
  if (mkdir(files_.folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return system_error("cannot make the folder", files_.folder);
  }
  struct stat folder {};
  if (lstat(files_.folder.c_str(), &folder) != 0 || !S_ISDIR(folder.st_mode) ||
      folder.st_uid != geteuid()) {
    return fail(ErrorCode::unavailable, "expected a folder of our own", files_.folder);
  }
  if (chmod(files_.folder.c_str(), 0700) != 0) return system_error("chmod", files_.folder);
  if (mkfifo(files_.records.c_str(), 0600) != 0 && errno != EEXIST) {
    return system_error("cannot make the pipe of records", files_.records);
  }
  records_.reset(open(files_.records.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  struct stat pipe {};
  if (!records_.valid() || fstat(records_.get(), &pipe) != 0 || !S_ISFIFO(pipe.st_mode)) {
    return fail(ErrorCode::unavailable, "expected a pipe", files_.records);
  }
  fcntl(records_.get(), F_SETPIPE_SZ, pipe_bytes);  // refused over the user's limit: smaller then
  return {};
}

bool ProxyProcess::adopt() {
  const auto deadline = Clock::now() + leftover_patience;
  do {
    const Result<pid_t> listener = listener_of(files_.master_socket);
    if (listener && *listener > 0) {
      posix::Fd fd = open_process(*listener);
      // The number could have gone to another process in between: still the same listener?
      const Result<pid_t> again = listener_of(files_.master_socket);
      if (fd.valid() && again && *again == *listener) {
        pid_ = *listener;
        pid_fd_ = std::move(fd);
        write_pid_file();
        return true;
      }
    }
    // One that lives may be in the middle of a reload: it answers soon.
    if (leftover() == 0) return false;
    std::this_thread::sleep_for(poll_step);
  } while (Clock::now() < deadline);
  end_leftover();
  return false;
}

Result<void> ProxyProcess::put_file(const std::string& path, const std::string& text) const {
  const std::string next = path + ".new";
  if (Result<void> written = write_file(next, text); !written) return written;
  return put_in_place(next, path);
}

Result<void> ProxyProcess::check(const std::string& text) {
  if (Result<void> found = find_program(); !found) return found;
  if (Result<void> written = write_file(files_.new_config, text); !written) return written;
  const std::string complaint = files_.new_config + ".log";
  SpawnAttributes how;
  posix_spawn_file_actions_addopen(&how.files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&how.files, 2, complaint.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  const Result<pid_t> child = spawn_with(how, {program_, "-c", "-f", files_.new_config});
  if (!child) return tl::unexpected(child.error());
  int status = 0;
  while (waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(ErrorCode::internal,
                "the proxy refuses its configuration: " + read_file(complaint).substr(0, 2000),
                files_.new_config);
  }
  unlink(complaint.c_str());
  return {};
}

Result<void> ProxyProcess::spawn() {
  struct stat log {};
  if (stat(files_.log.c_str(), &log) == 0 && log.st_size > log_max) {
    rename(files_.log.c_str(), (files_.log + ".1").c_str());
  }
  SpawnAttributes how;
  posix_spawn_file_actions_addopen(&how.files, 1, files_.records.c_str(), O_RDWR, 0);
  posix_spawn_file_actions_addopen(&how.files, 2, files_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0600);
  const Result<pid_t> child = spawn_with(
      how, {program_, "-W", "-S", files_.master_socket + ",mode,600", "-f", files_.config});
  if (!child) return tl::unexpected(child.error());
  pid_ = *child;
  pid_fd_ = open_process(pid_);
  if (!pid_fd_.valid()) return system_error("pidfd_open", files_.folder);
  write_pid_file();
  return {};
}

Result<void> ProxyProcess::start(const std::string& text) {
  NEAP_CHECK(!running());
  if (Result<void> checked = check(text); !checked) return checked;
  if (Result<void> placed = put_in_place(files_.new_config, files_.config); !placed) {
    return placed;
  }
  if (Result<void> spawned = spawn(); !spawned) return spawned;
  Result<void> ready = wait_for_new_worker(0);
  if (!ready) stop(seconds(1));
  return ready;
}

Result<void> ProxyProcess::reload(const std::string& text) {
  NEAP_CHECK(running());
  const Result<WorkerList> before = workers();
  if (!before) return tl::unexpected(before.error());
  if (Result<void> checked = check(text); !checked) return checked;
  const std::string former = read_file(files_.config);
  if (Result<void> placed = put_in_place(files_.new_config, files_.config); !placed) {
    return placed;
  }
  kill(pid_, SIGUSR2);
  Result<void> ready = wait_for_new_worker(before->current);
  if (ready || !running()) return ready;
  // A port that somebody took meanwhile, most likely. Back to what served until now.
  if (write_file(files_.new_config, former) && put_in_place(files_.new_config, files_.config)) {
    kill(pid_, SIGUSR2);
    (void)wait_for_new_worker(before->current);
  }
  return ready;
}

Result<void> ProxyProcess::wait_for_new_worker(pid_t former) {
  const auto deadline = Clock::now() + start_patience;
  while (Clock::now() < deadline) {
    if (readable(pid_fd_.get(), 0)) {
      return fail(ErrorCode::unavailable, "the proxy ended at once: " + log_tail(), files_.log);
    }
    // The master answers all through a reload, the worker once it listens.
    const Result<WorkerList> now = workers();
    if (now && now->current != 0 && now->current != former) {
      const Result<std::string> information = run_command(files_.admin_socket, "show info");
      const std::string wanted = "\nPid: " + std::to_string(now->current) + "\n";
      if (information && information->find(wanted) != std::string::npos) return {};
    }
    // A reload that failed leaves a master without a current worker.
    if (now && now->current == 0 && former != 0) break;
    std::this_thread::sleep_for(poll_step);
  }
  return fail(ErrorCode::unavailable, "the proxy does not take its configuration: " + log_tail(),
              files_.log);
}

void ProxyProcess::stop(Micros patience) {
  if (!running()) return;
  kill(pid_, SIGUSR1);
  if (!readable(pid_fd_.get(), static_cast<int>(patience.value / 1000))) {
    kill(pid_, SIGTERM);
    if (!readable(pid_fd_.get(), 1000)) {
      kill(pid_, SIGKILL);
      readable(pid_fd_.get(), 1000);
    }
  }
  (void)ended();
  unlink(files_.pid.c_str());
}

std::string ProxyProcess::ended() {
  int status = 0;
  waitpid(pid_, &status, WNOHANG);  // fails for one that was adopted: nothing to reap
  pid_ = 0;
  pid_fd_.reset();
  return log_tail();
}

Result<WorkerList> ProxyProcess::workers() const {
  const Result<std::string> text = run_command(files_.master_socket, "show proc");
  if (!text) return tl::unexpected(text.error());
  return read_workers(*text);
}

std::string ProxyProcess::log_tail() const {
  std::ifstream in(files_.log, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - 600));
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

void ProxyProcess::write_pid_file() const {
  const std::string next = files_.pid + ".new";
  const std::string text = std::to_string(pid_) + " " + start_time_of(pid_) + "\n";
  if (write_file(next, text)) (void)put_in_place(next, files_.pid);
}

// The process of the pid file, if it is still that one; 0 otherwise.
pid_t ProxyProcess::leftover() const {
  std::istringstream text(read_file(files_.pid));
  pid_t pid = 0;
  std::string start_time;
  if (!(text >> pid >> start_time) || pid <= 1) return 0;
  return start_time_of(pid) == start_time ? pid : 0;
}

// One that lives but no longer answers would share its ports with the next (SO_REUSEPORT) and
// swallow half of the requests.
void ProxyProcess::end_leftover() const {
  const pid_t pid = leftover();
  if (pid == 0) return;
  const std::string number = std::to_string(pid);
  std::vector<posix::Fd> ending;
  ending.push_back(open_process(pid));
  std::istringstream children(read_file("/proc/" + number + "/task/" + number + "/children"));
  for (pid_t child = 0; children >> child;) ending.push_back(open_process(child));
  for (const posix::Fd& process : ending) {
    if (process.valid()) syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0U);
  }
  for (const posix::Fd& process : ending) {
    if (process.valid()) readable(process.get(), 2000);
  }
  waitpid(pid, nullptr, WNOHANG);  // in case that it was started by this very process
}

}  // namespace neap::gateway
