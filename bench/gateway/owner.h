// Who owns the gateway in measurements: this process, or one beside it that can be killed as a
// daemon is, and told what to do line by line.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <sstream>

#include "bench/gateway/figures.h"
#include "gateway/haproxy/haproxy_gateway.h"
#include "gateway/haproxy/process.h"
#include "gateway/haproxy/runtime.h"

namespace neap::bench {

class Folder {
 public:
  Folder() {
    char pattern[] = "/tmp/neap-bench-XXXXXX";
    if (mkdtemp(pattern) == nullptr) fail_bench("no folder");
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Owner {
 public:
  explicit Owner(const std::string& folder) {
    auto opened = gateway::HaproxyGateway::open({.folder = folder, .program = "haproxy"}, {});
    if (!opened) fail_bench(to_string(opened.error()));
    gateway_ = std::move(*opened);
    // As the daemon does: what is taken over opens no more until keys and certificate are named.
    must([&](gateway::Gateway::Done done) { gateway_->set_front({}, std::move(done)); });
  }

  void ensure(const gateway::Endpoint& endpoint) {
    must([&](gateway::Gateway::Done done) { gateway_->ensure_service(endpoint, std::move(done)); });
  }
  void add(const gateway::Replica& replica) {
    must([&](gateway::Gateway::Done done) { gateway_->add_replica(replica, std::move(done)); });
  }
  void leave(std::uint64_t id, Micros within) {
    gateway_->remove_replica({"chat", AllocationId(id)}, within, [](const auto&) {});
  }
  void forget_unclaimed() {
    must([&](gateway::Gateway::Done done) { gateway_->forget_unclaimed(std::move(done)); });
  }
  gateway::ServiceSample sample() {
    std::promise<gateway::ServiceSample> promise;
    gateway_->sample("chat", [&](Result<gateway::ServiceSample> result) {
      promise.set_value(result.value_or(gateway::ServiceSample{}));
    });
    return promise.get_future().get();
  }
  void stop() {
    must([&](gateway::Gateway::Done done) { gateway_->stop(std::move(done)); });
  }

 private:
  template <class Call>
  static void must(Call call) {
    std::promise<std::string> promise;
    call([&](Result<void> result) {
      promise.set_value(result ? std::string() : to_string(result.error()));
    });
    if (const std::string fault = promise.get_future().get(); !fault.empty()) fail_bench(fault);
  }

  std::unique_ptr<gateway::Gateway> gateway_;
};

[[nodiscard]] inline std::uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::abort();
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

// `gateway_bench owner FOLDER`: reads "ensure NAME PORT", "add ID PORT", "leave ID MS", "forget"
// and "stop", and answers each with a line.
inline int run_owner(const std::string& folder) {
  Owner owner(folder);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "ensure") {
      gateway::Endpoint endpoint;
      words >> endpoint.service >> endpoint.port;
      owner.ensure(endpoint);
    } else if (what == "add") {
      gateway::Replica replica{.service = "chat", .allocation = {}, .max_concurrency = 16};
      std::uint64_t id = 0;
      words >> id >> replica.port;
      replica.allocation = AllocationId(id);
      owner.add(replica);
    } else if (what == "leave") {
      std::uint64_t id = 0;
      std::int64_t ms = 0;
      words >> id >> ms;
      owner.leave(id, milliseconds(ms));
    } else if (what == "forget") {
      owner.forget_unclaimed();
    } else if (what == "stop") {
      owner.stop();
    }
    std::cout << "done" << std::endl;
  }
  return 0;
}

// The owner as a process.
class Daemon {
 public:
  explicit Daemon(std::string folder) : folder_(std::move(folder)) { start(); }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon() { kill_now(); }

  void tell(const std::string& line) {
    const std::string text = line + "\n";
    if (write(in_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      fail_bench("the owner is gone");
    }
    char c = 0;
    while (c != '\n') {
      if (read(out_, &c, 1) != 1) fail_bench("the owner ended at: " + line);
    }
  }
  void kill_now() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(in_);
    close(out_);
    pid_ = 0;
  }
  void start() {
    int to[2];
    int from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) fail_bench("pipe");
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, to[0], 0);
    posix_spawn_file_actions_adddup2(&files, from[1], 1);
    std::string self = "/proc/self/exe";
    std::string mode = "owner";
    char* argv[] = {self.data(), mode.data(), folder_.data(), nullptr};
    if (posix_spawn(&pid_, self.c_str(), &files, nullptr, argv, environ) != 0) fail_bench("spawn");
    posix_spawn_file_actions_destroy(&files);
    close(to[0]);
    close(from[1]);
    in_ = to[1];
    out_ = from[0];
  }

 private:
  std::string folder_;
  pid_t pid_ = 0;
  int in_ = -1;
  int out_ = -1;
};

}  // namespace neap::bench
