// One allocation as the daemon sees it: launching, connected, or clearing up after a supervisor
// that died. Lives on the thread of Supervisors.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "backend/local/control.h"
#include "backend/local/event_loop.h"
#include "backend/local/launcher.h"
#include "backend/local/report.h"
#include "backend/local/spec.h"
#include "backend/local/unix_socket.h"

namespace neap::local {

class Attachment {
 public:
  using OnReport = std::function<void(const Report&)>;

  Attachment(EventLoop& loop, AllocationId allocation, std::string directory, OnReport on_report);
  ~Attachment();
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  // Launches the task, unless it was started before: then this is adopt().
  void start(const std::string& executable, const SupervisedTask& task);
  // Connects to the supervisor, or finds out what became of the task without one.
  void adopt(std::optional<SupervisedTask> task);

  void send(const ControlCommand& command);
  void acknowledge(std::uint64_t sequence);
  void forget();
  // Forgotten, and nothing of it is left in files.
  [[nodiscard]] bool removed() const { return removed_; }

 private:
  enum class Phase { idle, launching, connecting, connected, clearing, ended };

  void on_word();
  void connect();
  void on_socket(std::uint32_t events);
  void on_line(std::string_view line);
  void flush();
  void disconnected();
  void supervisor_gone();
  void clear_remains();
  void deliver(const Report& report);
  // A report that no supervisor can give any more.
  void conclude(ReportBody body);
  void later(Micros delay, void (Attachment::*step)());
  void remove_files();

  EventLoop& loop_;
  AllocationId allocation_;
  std::string directory_;
  OnReport on_report_;
  std::optional<SupervisedTask> task_;
  Phase phase_ = Phase::idle;
  Launch launch_;
  std::string word_;
  Fd socket_;
  LineSplitter lines_{report_line_limit};
  Outbox outbox_;
  std::deque<ControlCommand> waiting_;  // for the connection
  std::uint64_t delivered_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::optional<EventLoop::TimerId> timer_;
  bool seemed_clear_ = false;  // at the last look nothing of the task was left
  bool forgotten_ = false;
  bool removed_ = false;
};

}  // namespace neap::local
