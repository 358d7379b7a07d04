#include "backend/local/supervise/watcher.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "backend/local/clock.h"
#include "backend/local/durable_file.h"
#include "backend/local/json.h"
#include "backend/local/supervise/privileges.h"
#include "backend/local/unix_socket.h"

namespace neap::local {
namespace {

constexpr int baseline_wait_ms = 30'000;

void say(int socket, const JsonObject& message) {
  if (!write_all(socket, message.line() + "\n")) ::_exit(0);  // the supervisor is gone
}

void say_found(int socket, CheckpointWatch& watch, WatchPass pass) {
  for (const WatchedCheckpoint& found : watch.scan(steady_now(), pass)) {
    JsonObject message;
    message.add("type", "checkpoint").add("step", found.step).add("path", found.path);
    say(socket, message.add("bytes", found.bytes).add("written_us", found.written.us));
  }
}

[[noreturn]] void watch_until_told(const SupervisedTask& task, int socket) {
  reset_signals();
  // Only the socket stays: the files and locks of the supervisor are not this process's.
  if (::dup2(socket, 3) < 0) ::_exit(1);
  (void)::syscall(SYS_close_range, 4U, ~0U, 0U);
  const auto fail_with = [](const std::string& reason) {
    say(3, JsonObject().add("type", "failed").add("reason", reason));
    ::_exit(1);
  };
  if (const char* step = become_submitter(task)) fail_with(system_error(step, "").message);
  // The parent is init by now: what tells of the supervisor's end is the socket.
  auto watch = CheckpointWatch::open(task.working_directory, task.watch, task.watch_settle);
  if (!watch) fail_with(watch.error().message);
  say(3, JsonObject().add("type", "ready"));
  const auto pause_ms =
      static_cast<int>(std::max<std::int64_t>(task.watch_interval.value / 1'000, 10));
  for (;;) {
    pollfd wait{3, POLLIN, 0};
    const int n = ::poll(&wait, 1, pause_ms);
    if (n == 0) {
      say_found(3, *watch, WatchPass::settling);
      continue;
    }
    char order = 0;
    if (::read(3, &order, 1) != 1) ::_exit(0);
    say_found(3, *watch, WatchPass::final);
    say(3, JsonObject().add("type", "done"));
    ::_exit(0);
  }
}

}  // namespace

Result<std::unique_ptr<Watcher>> Watcher::start(EventLoop& loop, const SupervisedTask& task,
                                                Handlers handlers) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return tl::unexpected(system_error("socketpair", ""));
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  const pid_t between = ::fork();
  if (between < 0) return tl::unexpected(system_error("fork", ""));
  if (between == 0) {
    const pid_t watcher = ::fork();
    if (watcher != 0) ::_exit(watcher < 0 ? 1 : 0);
    watch_until_told(task, theirs.get());
  }
  int status = 0;
  (void)::waitpid(between, &status, 0);
  // The task must not start before what lies there already has been seen.
  pollfd wait{ours.get(), POLLIN, 0};
  if (::poll(&wait, 1, baseline_wait_ms) <= 0) {
    return fail(ErrorCode::unavailable,
                "checkpoint.watch: looking at the working directory of "
                "the task took longer than 30 s");
  }
  (void)::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  return std::unique_ptr<Watcher>(new Watcher(loop, std::move(ours), std::move(handlers)));
}

Watcher::Watcher(EventLoop& loop, Fd socket, Handlers handlers)
    : loop_(loop), socket_(std::move(socket)), handlers_(std::move(handlers)) {
  loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { on_socket(); });
}

Watcher::~Watcher() {
  if (socket_.valid()) loop_.forget(socket_.get());
}

void Watcher::finish() {
  if (!socket_.valid() || !write_all(socket_.get(), "f")) handlers_.done();
}

void Watcher::on_socket() {
  const auto bytes = receive_some(socket_.get());
  if (!bytes) {
    loop_.forget(socket_.get());
    socket_.reset();
    handlers_.done();
    return;
  }
  lines_.feed(*bytes);
  while (const auto line = lines_.next()) on_line(line->text);
}

void Watcher::on_line(std::string_view line) {
  const auto json = parse_json(line);
  if (!json) return;
  const JsonFields fields(*json, "");
  const std::string type = fields.string("type", 64).value_or("");
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (type == "checkpoint") {
    handlers_.checkpoint({fields.integer("step", 0, most).value_or(0),
                          fields.string("path", 32 * 1024).value_or(""),
                          fields.integer("bytes", 0, most).value_or(0),
                          Time(fields.integer("written_us", 0, most).value_or(0))});
  } else if (type == "failed") {
    handlers_.failed(fields.string("reason", 32 * 1024).value_or(""));
  }
}

}  // namespace neap::local
