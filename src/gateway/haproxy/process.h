// The proxy as a process: started in a session of its own, so that it outlives the daemon, and
// taken over by the next one.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "gateway/haproxy/runtime.h"
#include "posix/fd.h"

namespace neap::gateway {

// The files of one proxy, in a folder of mode 0700.
struct ProxyFiles {
  explicit ProxyFiles(const std::string& folder);

  std::string folder, config, new_config, admin_socket, master_socket, idle_socket;
  std::string records, log, pid, admission;
};

class ProxyProcess {
 public:
  ProxyProcess(ProxyFiles files, std::string program);

  // `unavailable` with what to install when the program is not there.
  [[nodiscard]] Result<void> find_program();
  // Makes the folder and the pipe of records.
  [[nodiscard]] Result<void> prepare();

  // Whether one runs already in this folder; then it is ours from here on. One that runs and does
  // not answer is ended.
  [[nodiscard]] bool adopt();
  // Whole or not at all, with mode 0600.
  [[nodiscard]] Result<void> put_file(const std::string& path, const std::string& text) const;
  // Whether the program itself takes `text`.
  [[nodiscard]] Result<void> check(const std::string& text);
  // Checks `text`, puts it in place as the configuration and starts.
  // Returns once the proxy answers.
  [[nodiscard]] Result<void> start(const std::string& text);
  // As start, for the running one. No connection is lost. When it fails the old configuration is
  // served on.
  [[nodiscard]] Result<void> reload(const std::string& text);
  // Ends it: politely, and after `patience` not so.
  void stop(Micros patience);

  [[nodiscard]] bool running() const { return pid_fd_.valid(); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  // Readable when the process has ended; -1 when none runs.
  [[nodiscard]] int pid_fd() const { return pid_fd_.get(); }
  // To be called when pid_fd is readable: reaps, forgets, returns the end of its log.
  [[nodiscard]] std::string ended();
  [[nodiscard]] int records_fd() const { return records_.get(); }
  [[nodiscard]] Result<WorkerList> workers() const;
  [[nodiscard]] const ProxyFiles& files() const { return files_; }

 private:
  [[nodiscard]] Result<void> wait_for_new_worker(pid_t former);
  [[nodiscard]] Result<void> spawn();
  [[nodiscard]] std::string log_tail() const;
  void write_pid_file() const;
  [[nodiscard]] pid_t leftover() const;
  void end_leftover() const;

  ProxyFiles files_;
  std::string program_;
  pid_t pid_ = 0;
  posix::Fd pid_fd_;
  posix::Fd records_;  // both ends: the writer never sees a broken pipe
};

}  // namespace neap::gateway
