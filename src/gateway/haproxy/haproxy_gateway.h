// The gateway on HAProxy, in a process of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "gateway/gateway.h"
#include "gateway/haproxy/spool.h"
#include "posix/fd.h"

namespace neap::gateway {

struct HaproxyOptions {
  std::string folder;               // made with mode 0700; at most 75 characters
  std::string program = "haproxy";  // a name in PATH or the sbin folders, or a path
  // The time of samples and slices; the system's clock when empty.
  std::function<Time()> now;
  SpoolLimits log;  // of requests, in the folder requests
};

class HaproxyGateway final : public Gateway {
 public:
  // Takes over a proxy that runs in the folder. None is started before there is a service: where
  // HAProxy is not installed, ensure_service says so.
  [[nodiscard]] static Result<std::unique_ptr<HaproxyGateway>> open(HaproxyOptions options,
                                                                    Observer observer);
  // The proxy goes on. Callbacks that were not made yet are dropped.
  ~HaproxyGateway() override;

  void set_front(Front front, Done done) override;
  void ensure_service(Endpoint endpoint, Done done) override;
  void remove_service(std::string service, Done done) override;
  void add_replica(Replica replica, Done done) override;
  void drain_replica(ReplicaRef replica, Micros within, DrainDone done) override;
  void remove_replica(ReplicaRef replica, Micros within, Done done) override;
  void sample(std::string service, SampleDone done) override;
  void latency(std::string service, LatencyDone done) override;
  void forget_unclaimed(Done done) override;
  void stop(Done done) override;

 private:
  class Worker;
  using Order = std::function<void(Worker&)>;

  explicit HaproxyGateway(std::unique_ptr<Worker> worker);
  void post(Order order);
  void run();

  std::unique_ptr<Worker> worker_;
  posix::Fd wake_;
  std::mutex mutex_;
  std::deque<Order> orders_;  // guarded by mutex_
  bool closing_ = false;      // guarded by mutex_
  std::thread thread_;
};

}  // namespace neap::gateway
