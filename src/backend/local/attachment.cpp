#include "backend/local/attachment.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "backend/local/clock.h"
#include "backend/local/spool.h"

namespace neap::local {
namespace {

constexpr Micros connect_again = milliseconds(20);
constexpr Micros clear_again = milliseconds(50);
constexpr std::size_t waiting_limit = 256;

}  // namespace

Attachment::Attachment(EventLoop& loop, AllocationId allocation, std::string directory,
                       OnReport on_report)
    : loop_(loop),
      allocation_(allocation),
      directory_(std::move(directory)),
      on_report_(std::move(on_report)) {}

Attachment::~Attachment() {
  if (timer_) loop_.cancel(*timer_);
  if (socket_.valid()) loop_.forget(socket_.get());
  if (launch_.word.valid()) loop_.forget(launch_.word.get());
}

void Attachment::later(Micros delay, void (Attachment::*step)()) {
  if (timer_) loop_.cancel(*timer_);
  timer_ = loop_.after(delay, [this, step] {
    timer_.reset();
    (this->*step)();
  });
}

// ---- start -----------------------------------------------------------------------------------

void Attachment::start(const std::string& executable, const SupervisedTask& task) {
  if (phase_ != Phase::idle) return;
  if (was_started(directory_) || supervisor_of(directory_)) return adopt(task);
  task_ = task;
  auto launch = launch_supervisor(executable, directory_, task);
  if (!launch) return conclude(StartFailed{launch.error().message});
  launch_ = std::move(*launch);
  phase_ = Phase::launching;
  loop_.watch(launch_.word.get(), EPOLLIN, [this](std::uint32_t) { on_word(); });
}

void Attachment::on_word() {
  char text[1024];
  const ssize_t n = ::read(launch_.word.get(), text, sizeof text);
  if (n < 0) return;
  if (n > 0) {
    word_.append(text, static_cast<std::size_t>(n));
    return;
  }
  loop_.forget(launch_.word.get());
  launch_.word.reset();
  (void)::waitpid(launch_.starter, nullptr, 0);
  while (!word_.empty() && word_.back() == '\n') word_.pop_back();
  if (word_ == "ready" || word_ == "running") return connect();
  conclude(StartFailed{word_.empty() ? "its supervisor died at the start" : word_});
}

void Attachment::adopt(std::optional<SupervisedTask> task) {
  if (phase_ != Phase::idle) return;
  task_ = std::move(task);
  connect();
}

// ---- connection ------------------------------------------------------------------------------

void Attachment::connect() {
  phase_ = Phase::connecting;
  // Asked before connecting: one that dies in between is noticed at the end of the connection.
  if (!supervisor_of(directory_)) return supervisor_gone();
  auto socket = connect_to(control_path(directory_));
  if (!socket) return later(connect_again, &Attachment::connect);
  socket_ = std::move(*socket);
  phase_ = Phase::connected;
  lines_ = LineSplitter(report_line_limit);
  outbox_ = Outbox();
  outbox_.push(control_line(ResumeAfter{delivered_}));
  if (acknowledged_ > 0) outbox_.push(control_line(Acknowledge{acknowledged_}));
  for (const ControlCommand& command : waiting_) outbox_.push(control_line(command));
  waiting_.clear();
  loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t events) { on_socket(events); });
  flush();
}

void Attachment::flush() {
  const bool waits = outbox_.flush(socket_.get()) == Outbox::State::waiting;
  loop_.change(socket_.get(), waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void Attachment::on_socket(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0U) flush();
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0U) return;
  const auto bytes = receive_some(socket_.get());
  if (!bytes) return disconnected();
  lines_.feed(*bytes);
  while (const auto line = lines_.next()) on_line(line->text);
}

void Attachment::on_line(std::string_view line) {
  if (!sequence_of(line)) return;  // the greeting, or an error about a command
  const auto report = parse_report_line(line);
  if (report && report->allocation == allocation_) deliver(*report);
}

void Attachment::deliver(const Report& report) {
  if (report.sequence <= delivered_) return;
  delivered_ = report.sequence;
  on_report_(report);
}

void Attachment::disconnected() {
  loop_.forget(socket_.get());
  socket_.reset();
  later(Micros(0), &Attachment::connect);
}

// ---- commands --------------------------------------------------------------------------------

void Attachment::send(const ControlCommand& command) {
  if (phase_ == Phase::ended || phase_ == Phase::clearing) return;
  if (phase_ != Phase::connected) {
    if (waiting_.size() < waiting_limit) waiting_.push_back(command);
    return;
  }
  outbox_.push(control_line(command));
  flush();
}

void Attachment::acknowledge(std::uint64_t sequence) {
  if (sequence <= acknowledged_) return;
  acknowledged_ = sequence;
  if (phase_ == Phase::connected) send(Acknowledge{sequence});
  if (forgotten_) forget();
}

void Attachment::forget() {
  forgotten_ = true;
  if (phase_ == Phase::ended && acknowledged_ >= delivered_ && !removed_) remove_files();
}

void Attachment::remove_files() {
  std::error_code error;
  std::filesystem::remove_all(directory_, error);
  removed_ = !error;
}

// ---- without a supervisor --------------------------------------------------------------------

void Attachment::supervisor_gone() {
  auto reports = read_spool(directory_, 0);
  bool ended = false;
  if (reports) {
    for (const Report& report : *reports) {
      ended = ended || report.terminal();
      // Old ones count too: the newest sequence must be known to go on from it.
      deliver(report);
    }
  }
  if (ended) {
    phase_ = Phase::ended;
    if (forgotten_) forget();
    return;
  }
  if (!was_started(directory_)) {
    return conclude(StartFailed{"its supervisor died before the task was started"});
  }
  phase_ = Phase::clearing;
  clear_remains();
}

void Attachment::clear_remains() {
  const Leftover leftover = read_leftover(directory_, task_);
  if (leftover.marks.cgroup) leftover.marks.cgroup->kill();
  const std::vector<pid_t> remains = remains_of(leftover.marks);
  for (const pid_t pid : remains) (void)::kill(pid, SIGKILL);
  // The capacity is free only when nothing is left, however long that takes.
  // One look may miss a process that forks or is between two programs, whose environment is empty.
  const bool once_more = !remains.empty() || !seemed_clear_;
  seemed_clear_ = remains.empty();
  if (once_more) return later(clear_again, &Attachment::clear_remains);
  if (leftover.marks.cgroup) leftover.marks.cgroup->remove();
  if (leftover.exit) {
    Exited exit = *leftover.exit;
    exit.detail = "its supervisor died after it had ended";
    return conclude(exit);
  }
  conclude(Lost{"supervisor died"});
}

void Attachment::conclude(ReportBody body) {
  phase_ = Phase::ended;
  const std::uint32_t epoch = task_ ? task_->epoch : 1;
  deliver({allocation_, epoch, delivered_ + 1, wall_now(), std::move(body)});
}

}  // namespace neap::local
