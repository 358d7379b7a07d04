// A server on the loopback interface that answers as it is told, byte by byte, and keeps what it
// was asked.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "posix/fd.h"

namespace neap::engine {

class ScriptedEngine {
 public:
  ScriptedEngine();
  ~ScriptedEngine();
  ScriptedEngine(const ScriptedEngine&) = delete;
  ScriptedEngine& operator=(const ScriptedEngine&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

  // To "POST /sleep?level=1", say. What has no answer gets 404.
  void answers(const std::string& request, int status, const std::string& body);
  void answers_raw(const std::string& request, const std::string& bytes);
  void hangs(const std::string& request);
  // The next connections are closed unread.
  void refuses(int connections) { refused_ = connections; }

  // "POST /kv_cache {...}": each request with its body, in order.
  [[nodiscard]] std::vector<std::string> asked() const;

 private:
  void serve();
  void serve_one(int fd);

  posix::Fd listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> closing_ = false;
  std::atomic<int> refused_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> answers_;  // guarded by mutex_; "": hangs
  std::vector<std::string> asked_;              // guarded by mutex_
  std::thread thread_;
};

}  // namespace neap::engine
