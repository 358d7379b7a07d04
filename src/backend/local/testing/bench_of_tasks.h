// A run directory of its own and a daemon's side that tests can stop, start and question. Waiting
// is for events, with a deadline only for the case that they never come.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/local/supervisors.h"

namespace neap::local::testing {

template <class Body>
bool has(const std::vector<Report>& reports) {
  for (const Report& report : reports) {
    if (std::holds_alternative<Body>(report.body)) return true;
  }
  return false;
}

// The one of the build tree; the variable NEAP_SUPERVISE lets a packaged one be tested.
[[nodiscard]] std::string supervise_executable();

class TaskBench {
 public:
  TaskBench();
  ~TaskBench();  // kills what still runs
  TaskBench(const TaskBench&) = delete;
  TaskBench& operator=(const TaskBench&) = delete;

  [[nodiscard]] SupervisedTask shell(std::uint64_t id, const std::string& script) const;
  // `say(type, **fields)` writes a contract line, `hear()` reads one; argv[1] is the bench's own
  // directory for tasks, argv[2] the directory of the allocation.
  [[nodiscard]] SupervisedTask python(std::uint64_t id, const std::string& script) const;
  void give_group(SupervisedTask& task) const;

  void start(const SupervisedTask& task) { client_->start(task); }
  void send(std::uint64_t id, const ControlCommand& command) {
    client_->send(AllocationId(id), command);
  }
  void forget(std::uint64_t id) { client_->forget(AllocationId(id)); }
  void acknowledge_all(std::uint64_t id);

  void stop_client();
  void start_client();  // forgets the reports seen so far
  void restart_client() { stop_client(), start_client(); }
  // A process with a daemon's side that starts `task` and then waits to be killed.
  pid_t fork_daemon(const SupervisedTask& task) const;
  [[nodiscard]] const std::vector<FoundAllocation>& found() const { return found_; }

  [[nodiscard]] std::vector<Report> reports(std::uint64_t id);
  [[nodiscard]] std::string log(std::uint64_t id) const;
  [[nodiscard]] std::string directory(std::uint64_t id) const;
  [[nodiscard]] const std::string& work() const { return work_; }
  void on_report(std::function<void(const Report&)> also);

  template <class Body>
  Body wait_for(std::uint64_t id) {
    return std::get<Body>(wait_report(id, [](const Report& report) {
                            return std::holds_alternative<Body>(report.body);
                          }).body);
  }
  // Throws when it does not come in time: tests end there with the reports that did come.
  Report wait_report(std::uint64_t id, const std::function<bool(const Report&)>& wanted);
  // For conditions outside the reports (files, processes).
  static void wait_until(const std::function<bool()>& condition);

 private:
  void receive(const Report& report);
  [[nodiscard]] std::string group_name() const;

  std::string root_;
  std::string work_;
  std::unique_ptr<Supervisors> client_;
  std::vector<FoundAllocation> found_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, std::vector<Report>> reports_;  // guarded by mutex_
  std::function<void(const Report&)> also_;               // guarded by mutex_
};

}  // namespace neap::local::testing
