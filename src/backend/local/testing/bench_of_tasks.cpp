#include "backend/local/testing/bench_of_tasks.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "backend/local/clock.h"
#include "backend/local/launcher.h"
#include "backend/local/task_log.h"

namespace neap::local::testing {
namespace {

constexpr Micros longest = seconds(60);

constexpr const char* python_prelude =
    "import json,os,signal,socket,sys,time\n"
    "_s=socket.socket(socket.AF_UNIX); _s.connect(os.environ['NEAP_SOCKET'])\n"
    "_f=_s.makefile('r')\n"
    "def say(kind,**fields): _s.sendall((json.dumps({'type':kind,**fields})+'\\n').encode())\n"
    "def raw(data): _s.sendall(data)\n"
    "def hear(): return json.loads(_f.readline())\n";

}  // namespace

std::string supervise_executable() {
  if (const char* given = std::getenv("NEAP_SUPERVISE")) return given;
  return std::filesystem::canonical("/proc/self/exe").parent_path().parent_path() /
         "neap-supervise";
}

TaskBench::TaskBench() {
  std::string name = "/tmp/neap-local-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  (void)::chmod(name.c_str(), 0711);
  root_ = name;
  work_ = root_ + "/work";
  (void)::mkdir(work_.c_str(), 0777);
  (void)::chmod(work_.c_str(), 0777);
  start_client();
}

TaskBench::~TaskBench() {
  stop_client();
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root_ + "/run/tasks", ignored)) {
    const std::string directory = entry.path();
    while (const auto supervisor = supervisor_of(directory)) {
      (void)::kill(*supervisor, SIGKILL);
      ::usleep(1'000);
    }
    const auto text_task = [&]() -> std::optional<SupervisedTask> {
      std::string text;
      if (FILE* file = std::fopen(spec_path(directory).c_str(), "r")) {
        char chunk[4096];
        for (std::size_t n = 0; (n = std::fread(chunk, 1, sizeof chunk, file)) > 0;) {
          text.append(chunk, n);
        }
        (void)std::fclose(file);
      }
      auto task = parse_spec(text);
      if (!task) return std::nullopt;
      return *task;
    }();
    const TaskMarks marks = read_leftover(directory, text_task).marks;
    for (std::vector<pid_t> left; !(left = remains_of(marks)).empty();) {
      for (const pid_t pid : left) (void)::kill(pid, SIGKILL);
      ::usleep(1'000);
    }
    if (marks.cgroup) marks.cgroup->remove();
  }
  Cgroup::existing(detect_cgroups(), group_name()).remove();
  std::filesystem::remove_all(root_, ignored);
}

SupervisedTask TaskBench::shell(std::uint64_t id, const std::string& script) const {
  SupervisedTask task;
  task.allocation = AllocationId(id);
  task.argv = {"/bin/sh", "-c", script};
  task.environment = {"PATH=/usr/bin:/bin"};
  task.working_directory = work_;
  task.uid = ::geteuid();
  task.gid = ::getegid();
  task.steps_every = milliseconds(50);
  return task;
}

SupervisedTask TaskBench::python(std::uint64_t id, const std::string& script) const {
  SupervisedTask task = shell(id, "");
  task.argv = {"/usr/bin/python3",   "-S",         "-c", python_prelude + script,
               root_ + "/run/tasks", directory(id)};
  return task;
}

std::string TaskBench::group_name() const {
  return "neap/test-" + root_.substr(root_.rfind('-') + 1);
}

void TaskBench::give_group(SupervisedTask& task) const {
  const std::string name = group_name() + "/" + std::to_string(task.allocation.value);
  task.cgroup = SupervisedGroup{"/sys/fs/cgroup", name, {}};
}

void TaskBench::acknowledge_all(std::uint64_t id) {
  const std::vector<Report> seen = reports(id);
  if (!seen.empty()) client_->acknowledge(AllocationId(id), seen.back().sequence);
}

void TaskBench::stop_client() { client_.reset(); }

void TaskBench::start_client() {
  {
    const std::lock_guard lock(mutex_);
    reports_.clear();
  }
  auto client = Supervisors::open({root_ + "/run", supervise_executable()},
                                  [this](const Report& report) { receive(report); });
  if (!client) throw std::runtime_error(to_string(client.error()));
  client_ = std::move(*client);
  const auto adopted = client_->adopt([this](const auto& found) { found_ = found; });
  if (!adopted) throw std::runtime_error(to_string(adopted.error()));
}

pid_t TaskBench::fork_daemon(const SupervisedTask& task) const {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  auto client = Supervisors::open({root_ + "/run", supervise_executable()}, [](const Report&) {});
  (*client)->start(task);
  for (;;) ::pause();
}

void TaskBench::receive(const Report& report) {
  const std::lock_guard lock(mutex_);
  reports_[report.allocation.value].push_back(report);
  if (also_) also_(report);
  changed_.notify_all();
}

void TaskBench::on_report(std::function<void(const Report&)> also) {
  const std::lock_guard lock(mutex_);
  also_ = std::move(also);
}

std::vector<Report> TaskBench::reports(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  return reports_[id];
}

Report TaskBench::wait_report(std::uint64_t id, const std::function<bool(const Report&)>& wanted) {
  std::unique_lock lock(mutex_);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(longest.value);
  for (;;) {
    for (const Report& report : reports_[id]) {
      if (wanted(report)) return report;
    }
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) break;
  }
  std::string came;
  for (const Report& report : reports_[id]) came += "\n  " + report_line(report);
  throw std::runtime_error("the report did not come; these did:" + came);
}

void TaskBench::wait_until(const std::function<bool()>& condition) {
  const Time deadline = steady_now() + longest;
  while (!condition()) {
    if (steady_now() > deadline) throw std::runtime_error("the condition never became true");
    (void)::poll(nullptr, 0, 2);  // files and processes of others send no event
  }
}

std::string TaskBench::log(std::uint64_t id) const {
  const auto part = read_log(directory(id), 0, 1 << 20);
  return part ? part->bytes : "";
}

std::string TaskBench::directory(std::uint64_t id) const {
  return root_ + "/run/tasks/" + std::to_string(id);
}

}  // namespace neap::local::testing
