#include "cli/demo_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "api/client.h"

extern char** environ;

namespace neap::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

posix::Fd open_process(pid_t pid) {
  return posix::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
}

bool ended_within(int pid_fd, Micros patience) {
  pollfd entry{.fd = pid_fd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(patience.value / 1000)) > 0;
}

enum class Session : std::uint8_t { same, own };

Result<pid_t> spawn(std::vector<std::string> words, const std::string& output, Session session) {
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  const int own = session == Session::own ? POSIX_SPAWN_SETSID : 0;
  posix_spawnattr_setflags(
      &attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | own));
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return fail(ErrorCode::unavailable, std::string("cannot start: ") + std::strerror(error),
                words[0]);
  }
  return pid;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

}  // namespace

Result<int> run_to_end(std::vector<std::string> words) {
  const Result<pid_t> child = spawn(std::move(words), "/dev/null", Session::same);
  if (!child) return tl::unexpected(child.error());
  int status = 0;
  while (::waitpid(*child, &status, 0) < 0) {
    if (errno != EINTR) return fail(ErrorCode::internal, "the exit status is lost");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<void> DemoDaemon::start() {
  const Result<pid_t> child =
      spawn({files_.program, "serve", files_.pool_file}, files_.daemon_log, Session::own);
  if (!child) return tl::unexpected(child.error());
  pid_ = *child;
  pid_fd_ = open_process(pid_);
  return {};
}

bool DemoDaemon::alive() { return pid_ != 0 && !ended_within(pid_fd_.get(), Micros(0)); }

Result<void> DemoDaemon::wait_ready(Micros patience) {
  api::Client client({.socket = files_.socket, .url = {}, .token = {}});
  const auto deadline = Clock::now() + std::chrono::microseconds(patience.value);
  while (Clock::now() < deadline) {
    if (!alive()) {
      return fail(ErrorCode::unavailable, "the daemon ended: " + tail_of(files_.daemon_log));
    }
    if (client.get("/v1/status")) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return fail(ErrorCode::unavailable, "the daemon does not answer: " + tail_of(files_.daemon_log));
}

void DemoDaemon::stop(Micros patience) {
  if (pid_ == 0) return;
  ::kill(pid_, SIGTERM);
  if (!ended_within(pid_fd_.get(), patience)) ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

std::string tail_of(const std::string& path) {
  constexpr std::size_t most = 1000;
  const std::string text = read_file(path);
  return text.size() <= most ? text : text.substr(text.size() - most);
}

std::vector<pid_t> processes_of(const std::string& folder) {
  const std::string mark = "NEAP_CHECKPOINT_DIR=" + folder + "/";
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::stol(name));
    if (pid == ::getpid() || pid == ::getppid()) continue;
    const std::string words = read_file(entry.path() / "cmdline");
    const std::string program = fs::path(words.c_str()).filename().string();
    const bool ours = program == "neap" || program == "neap-supervise" || program == "haproxy";
    // A task is known by what the pool put into its environment, not by its folder: a person's
    // shell may be there as well.
    const bool named = (ours && words.find(folder) != std::string::npos) ||
                       read_file(entry.path() / "environ").find(mark) != std::string::npos;
    if (named) found.push_back(pid);
  }
  return found;
}

void end_processes(const std::vector<pid_t>& processes, Micros patience) {
  std::vector<posix::Fd> handles;
  for (const pid_t pid : processes) {
    handles.push_back(open_process(pid));
    ::kill(pid, SIGTERM);
  }
  const auto deadline = Clock::now() + std::chrono::microseconds(patience.value);
  for (const posix::Fd& handle : handles) {
    const auto left =
        std::chrono::duration_cast<std::chrono::microseconds>(deadline - Clock::now());
    const Micros wait(std::max<std::int64_t>(0, left.count()));
    if (!handle.valid() || ended_within(handle.get(), wait)) continue;
    ::syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0U);
  }
}

}  // namespace neap::cli
