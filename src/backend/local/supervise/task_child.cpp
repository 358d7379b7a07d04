#include "backend/local/supervise/task_child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "backend/local/durable_file.h"
#include "backend/local/processes.h"
#include "backend/local/supervise/privileges.h"

namespace neap::local {
namespace {

struct ChildEnds {
  int output;
  int failure;
  int gate;
};

[[noreturn]] void give_up(int failure, std::string_view step) {
  std::string message(step);
  message.append(": ").append(std::strerror(errno));
  (void)write_all(failure, message);
  ::_exit(127);
}

// Descriptors of the supervisor close at exec; 0, 1 and 2 become the task's own.
void arrange_descriptors(const ChildEnds& ends) {
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) give_up(ends.failure, "open /dev/null");
  if (::dup2(null, 0) < 0 || ::dup2(ends.output, 1) < 0 || ::dup2(ends.output, 2) < 0) {
    give_up(ends.failure, "dup2");
  }
  (void)::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
}

[[noreturn]] void run_child(const SupervisedTask& task, const std::string& socket,
                            const Cgroup* group, const ChildEnds& ends) {
  const pid_t supervisor = ::getppid();
  (void)::setsid();
  if (group != nullptr && !group->enter(0)) give_up(ends.failure, "enter the cgroup");
  reset_signals();
  arrange_descriptors(ends);
  if (const Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score.valid()) {
    (void)write_all(score.get(), "0");  // the supervisor's own protection is not for the task
  }
  if (const char* step = become_submitter(task)) give_up(ends.failure, step);
  if (!die_with_parent()) give_up(ends.failure, "parent death signal");
  if (::getppid() != supervisor) ::_exit(127);  // it died before it could be watched
  if (::chdir(task.working_directory.c_str()) != 0) {
    give_up(ends.failure, "working directory " + task.working_directory);
  }
  char released = 0;
  if (::read(ends.gate, &released, 1) != 1) ::_exit(127);
  std::vector<std::string> environment = task.environment;
  environment.push_back("NEAP_SOCKET=" + socket);
  std::vector<char*> argv;
  for (const std::string& word : task.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> variables;
  for (const std::string& entry : environment) {
    variables.push_back(const_cast<char*>(entry.c_str()));
  }
  variables.push_back(nullptr);
  environ = variables.data();  // execvp searches the task's PATH, not the supervisor's
  ::execvp(argv.front(), argv.data());
  give_up(ends.failure, "start " + task.argv.front());
}

struct Pipe {
  Fd reading;
  Fd writing;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(system_error("pipe", ""));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

void do_not_block(int fd) { (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

}  // namespace

void TaskChild::release() {
  (void)write_all(gate.get(), "g");
  gate.reset();
}

Result<TaskChild> fork_task(const SupervisedTask& task, const std::string& socket,
                            const Cgroup* group) {
  auto output = make_pipe();
  auto failure = make_pipe();
  auto gate = make_pipe();
  if (!output) return tl::unexpected(output.error());
  if (!failure) return tl::unexpected(failure.error());
  if (!gate) return tl::unexpected(gate.error());
  const pid_t pid = ::fork();
  if (pid < 0) return tl::unexpected(system_error("fork", ""));
  if (pid == 0) {
    gate->writing.reset();  // else its own copy would keep the gate from closing
    run_child(task, socket, group,
              {output->writing.get(), failure->writing.get(), gate->reading.get()});
  }
  TaskChild child;
  child.pid = pid;
  if (const auto facts = read_process(pid)) child.start_ticks = facts->start_ticks;
  child.output = std::move(output->reading);
  child.failure = std::move(failure->reading);
  child.gate = std::move(gate->writing);
  do_not_block(child.output.get());
  do_not_block(child.failure.get());
  return child;
}

}  // namespace neap::local
