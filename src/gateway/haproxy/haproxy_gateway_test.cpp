// E3, item "service replicas": membership, drain, restart and takeover with a real HAProxy.
#include "gateway/haproxy/haproxy_gateway.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "gateway/haproxy/process.h"
#include "gateway/haproxy/runtime.h"
#include "posix/testing/tiny_http.h"

namespace neap::gateway {
namespace {

using posix::free_port;
using posix::tiny_get;
using posix::TinyResponse;
using posix::TinyServer;

using namespace std::chrono_literals;

// Runs one asynchronous call and waits for its result.
template <class T, class Call>
Result<T> await(Call call) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  std::future<Result<T>> future = promise->get_future();
  call([promise](Result<T> result) { promise->set_value(std::move(result)); });
  if (future.wait_for(30s) != std::future_status::ready) {
    return fail(ErrorCode::internal, "no callback within 30 s");
  }
  return future.get();
}

class HaproxyGatewayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ProxyProcess probe(ProxyFiles("/nowhere"), "haproxy");
    if (!probe.find_program()) GTEST_SKIP() << "HAProxy is not installed";
    char pattern[] = "/tmp/neap-gateway-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    folder_ = pattern;
    service_.port = free_port();
    reopen();
  }

  void TearDown() override {
    if (gateway_) {
      EXPECT_TRUE(await<void>([&](Gateway::Done done) { gateway_->stop(done); }));
      gateway_.reset();
    }
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // What a restart of the daemon does.
  void reopen() {
    take_over();
    ASSERT_TRUE(set_front(front_));
  }

  // As far as nothing was asked for yet.
  void take_over() {
    gateway_.reset();
    Observer observer;
    observer.requests = [this](const RequestSlice& slice) {
      const std::lock_guard lock(mutex_);
      totals_ += slice.totals;
    };
    observer.trouble = [this](const std::string& detail) {
      if (detail.empty()) ++recoveries_;
      const std::lock_guard lock(mutex_);
      trouble_ = detail;
    };
    auto opened = HaproxyGateway::open({.folder = folder_}, observer);
    ASSERT_TRUE(opened) << to_string(opened.error());
    gateway_ = std::move(*opened);
  }

  Result<void> set_front(const Front& front) {
    return await<void>([&](Gateway::Done done) { gateway_->set_front(front, done); });
  }
  std::string trouble() {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }
  // Keys and a shared endpoint.
  static Front closed_front() {
    Front front;
    front.port = free_port();
    front.keys = Front::Keys::required;
    front.known = {{std::string(64, 'a'), "vision", RequestClass::high}};
    return front;
  }
  void make_certificate(const std::string& path) const {
    const std::string key = folder_ + "/key.pem";
    const std::string made =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
        "/CN=x -keyout " +
        key + " -out " + path + ".new 2>/dev/null && cat " + key + " >>" + path + ".new && mv " +
        path + ".new " + path;
    ASSERT_EQ(std::system(made.c_str()), 0);  // NOLINT(cert-env33-c): a test's own words
  }

  Result<void> ensure(const Endpoint& endpoint) {
    return await<void>([&](Gateway::Done done) { gateway_->ensure_service(endpoint, done); });
  }
  Result<void> add(std::uint64_t id, const TinyServer& server, std::int32_t concurrency = 4) {
    const Replica replica{service_.service, AllocationId(id), server.port(), concurrency};
    return await<void>([&](Gateway::Done done) { gateway_->add_replica(replica, done); });
  }
  Result<Drained> drain(std::uint64_t id, Micros within) {
    return await<Drained>([&](Gateway::DrainDone done) {
      gateway_->drain_replica({service_.service, AllocationId(id)}, within, done);
    });
  }
  Result<void> remove(std::uint64_t id, Micros within) {
    return await<void>([&](Gateway::Done done) {
      gateway_->remove_replica({service_.service, AllocationId(id)}, within, done);
    });
  }
  ServiceSample sample() {
    const Result<ServiceSample> result = await<ServiceSample>(
        [&](Gateway::SampleDone done) { gateway_->sample(service_.service, done); });
    EXPECT_TRUE(result) << to_string(result.error());
    return result.value_or(ServiceSample{});
  }
  template <class Condition>
  bool eventually(Condition condition) {
    for (int i = 0; i < 1000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  TinyResponse get(const std::string& path) const { return tiny_get(service_.port, path); }
  pid_t master() const { return listener_of(ProxyFiles(folder_).master_socket).value_or(0); }
  WorkerList workers() const {
    const auto text = run_command(ProxyFiles(folder_).master_socket, "show proc");
    return text ? read_workers(*text) : WorkerList{};
  }

  std::string folder_;
  Endpoint service_{.service = "chat", .slo_first_byte = milliseconds(500)};
  std::unique_ptr<HaproxyGateway> gateway_;
  Front front_;
  std::mutex mutex_;
  std::string trouble_;
  measure::RequestTotals totals_;
  std::atomic<int> recoveries_ = 0;
};

// Clients that ask without a pause until told to stop.
class Clients {
 public:
  Clients(std::uint16_t port, int count, const std::string& path, int chunks) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, port, path, chunks] {
        while (!stop_) {
          const TinyResponse response = tiny_get(port, path);
          const bool good = response.status == 200 && response.whole && response.chunks == chunks;
          ++(good ? good_ : bad_);
        }
      });
    }
  }
  ~Clients() { stop(); }
  void stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  [[nodiscard]] int good() const { return good_; }
  [[nodiscard]] int bad() const { return bad_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> good_ = 0;
  std::atomic<int> bad_ = 0;
  std::vector<std::thread> threads_;
};

TEST_F(HaproxyGatewayTest, E1_RequestsReachAReplicaAndAreCounted) {
  const TinyServer server;
  ASSERT_TRUE(ensure(service_));
  EXPECT_EQ(get("/1/0").status, 503);  // no replica yet
  ASSERT_TRUE(add(1, server));
  EXPECT_EQ(get("/3/1").chunks, 3);
  EXPECT_EQ(get("/1/900").status, 200);  // later than the SLO
  EXPECT_TRUE(eventually([&] { return sample().requests == 3; }));
  EXPECT_EQ(sample().failures, 1U);
  EXPECT_EQ(sample().ready_replicas, 1);
  reopen();  // closing tells what was counted
  EXPECT_EQ(totals_.responses, 2U);
  EXPECT_EQ(totals_.within_slo, 1U);
  EXPECT_EQ(totals_.failures, 1U);
  EXPECT_GE(totals_.busy, milliseconds(900));
  EXPECT_LT(totals_.busy_within_slo, milliseconds(500));
}

TEST_F(HaproxyGatewayTest, E1_ConcurrencyIsBoundedAndTheRestQueues) {
  const TinyServer server;
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(add(1, server, 1));
  Clients clients(service_.port, 3, "/1/100", 1);
  EXPECT_TRUE(eventually([&] { return sample().queued == 2 && sample().in_flight == 1; }));
  clients.stop();
  EXPECT_EQ(clients.bad(), 0);
  EXPECT_EQ(server.most_at_once(), 1);
}

TEST_F(HaproxyGatewayTest, E3_ReplicasAndServicesComeAndGoWithoutALostRequest) {
  std::vector<std::unique_ptr<TinyServer>> servers;
  for (int i = 0; i < 3; ++i) servers.push_back(std::make_unique<TinyServer>());
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(add(1, *servers[0]));
  Clients clients(service_.port, 4, "/4/5", 4);
  ASSERT_TRUE(add(2, *servers[1]));
  EXPECT_TRUE(eventually([&] { return servers[1]->served() > 5; }));
  const Result<Drained> drained = drain(1, seconds(20));
  ASSERT_TRUE(drained);
  EXPECT_EQ(drained->still_in_flight, 0);
  ASSERT_TRUE(remove(1, seconds(5)));
  servers[0].reset();  // its process is gone
  Endpoint other{.service = "other", .port = free_port()};
  ASSERT_TRUE(ensure(other));  // a reload in the middle
  ASSERT_TRUE(add(3, *servers[2]));
  ASSERT_TRUE(drain(2, seconds(20)));
  ASSERT_TRUE(remove(2, seconds(5)));
  servers[1].reset();
  EXPECT_TRUE(eventually([&] { return servers[2]->served() > 5; }));
  ASSERT_TRUE(
      await<void>([&](Gateway::Done done) { gateway_->remove_service(other.service, done); }));
  clients.stop();
  EXPECT_EQ(clients.bad(), 0);
  EXPECT_GT(clients.good(), 20);
  // Every request has its record, across both reloads.
  EXPECT_TRUE(
      eventually([&] { return sample().requests == static_cast<std::uint64_t>(clients.good()); }));
}

TEST_F(HaproxyGatewayTest, E3_ADeadReplicaCostsNoRequest) {
  auto dies = std::make_unique<TinyServer>();
  const TinyServer lives;
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(add(1, *dies));
  ASSERT_TRUE(add(2, lives));
  dies.reset();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(get("/1/0").status, 200);
  EXPECT_TRUE(eventually([&] { return lives.served() == 6; }));
}

TEST_F(HaproxyGatewayTest, E3_DrainWaitsForStreamsAcrossAReload) {
  TinyServer server;
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(add(1, server));
  std::future<TinyResponse> stream = std::async(std::launch::async, [&] { return get("/gate"); });
  ASSERT_TRUE(eventually([&] { return sample().in_flight == 1; }));
  ASSERT_TRUE(ensure({.service = "other", .port = free_port()}));
  EXPECT_EQ(sample().in_flight, 1);  // in the old worker
  const Result<Drained> impatient = drain(1, milliseconds(50));
  ASSERT_TRUE(impatient);
  EXPECT_EQ(impatient->still_in_flight, 1);
  server.release();
  const Result<Drained> patient = drain(1, seconds(20));
  ASSERT_TRUE(patient);
  EXPECT_EQ(patient->still_in_flight, 0);
  EXPECT_EQ(stream.get().chunks, 2);
  EXPECT_EQ(get("/1/0").status, 503);  // drained: takes nothing new
  ASSERT_TRUE(add(1, server));         // taken back
  EXPECT_EQ(get("/1/0").status, 200);
}

TEST_F(HaproxyGatewayTest, E3_RemoveCutsWhatOutlastsItsTime) {
  const TinyServer server;
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(add(1, server));
  std::future<TinyResponse> stream = std::async(std::launch::async, [&] { return get("/gate"); });
  ASSERT_TRUE(eventually([&] { return sample().in_flight == 1; }));
  ASSERT_TRUE(remove(1, milliseconds(100)));
  EXPECT_FALSE(stream.get().whole);
  EXPECT_TRUE(eventually([&] { return sample().ready_replicas == 0; }));
}

TEST_F(HaproxyGatewayTest, G3_AKilledProxyComesBackWithItsMembers) {
  const TinyServer server;
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(add(1, server));
  const pid_t first = master();
  ASSERT_GT(first, 0);
  kill(first, SIGKILL);
  EXPECT_TRUE(eventually([&] { return recoveries_ == 1; }));
  EXPECT_NE(master(), first);
  EXPECT_EQ(get("/1/0").status, 200);
  // The worker alone: its master gives up, and both are started again.
  kill(workers().current, SIGKILL);
  EXPECT_TRUE(eventually([&] { return recoveries_ == 2; }));
  EXPECT_EQ(get("/1/0").status, 200);
  EXPECT_EQ(sample().ready_replicas, 1);
}

TEST_F(HaproxyGatewayTest, G3_ARestartedDaemonTakesOver) {
  TinyServer kept;
  TinyServer stray;
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(ensure({.service = "stray", .port = free_port()}));
  ASSERT_TRUE(add(1, kept));
  ASSERT_TRUE(add(2, stray));
  std::future<TinyResponse> stream = std::async(std::launch::async, [&] { return get("/gate"); });
  ASSERT_TRUE(eventually([&] { return sample().in_flight == 1; }));
  const pid_t before = master();
  const pid_t worker = workers().current;
  gateway_.reset();
  EXPECT_EQ(get("/1/0").status, 200);  // served while no daemon is there
  reopen();
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(add(1, kept));
  EXPECT_EQ(master(), before);
  EXPECT_EQ(workers().current, worker);  // not even reloaded
  ASSERT_TRUE(await<void>([&](Gateway::Done done) { gateway_->forget_unclaimed(done); }));
  EXPECT_TRUE(eventually([&] { return sample().ready_replicas == 1; }));
  kept.release();
  stray.release();
  EXPECT_EQ(stream.get().chunks, 2);
  ASSERT_TRUE(eventually([&] { return kept.served() + stray.served() == 2; }));
  const int served = stray.served();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(get("/1/0").status, 200);
  EXPECT_EQ(stray.served(), served);
  // The record of the request that nobody was there to read was kept.
  EXPECT_TRUE(eventually([&] { return sample().requests == 6; }));
}

TEST_F(HaproxyGatewayTest, G5_ARestartedDaemonKeepsKeysTlsAndTheSharedEndpoint) {
  const TinyServer server;
  front_ = closed_front();
  ASSERT_TRUE(set_front(front_));
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(add(1, server));
  EXPECT_EQ(get("/1/0").status, 401);
  EXPECT_EQ(tiny_get(front_.port, "/v1/models").status, 401);
  const pid_t before = master();
  reopen();
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(add(1, server));
  EXPECT_EQ(master(), before);
  EXPECT_EQ(get("/1/0").status, 401);
  EXPECT_EQ(tiny_get(front_.port, "/v1/models").status, 401);
  // With a certificate from now on, at the same port.
  front_.certificate = folder_ + "/tls.pem";
  front_.certificate_version = "1";
  make_certificate(front_.certificate);
  for (int restart = 0; restart < 2; ++restart) {
    reopen();
    ASSERT_TRUE(ensure(service_));
    EXPECT_EQ(master(), before);
    EXPECT_EQ(get("/1/0").status, 0);  // not in clear text
    EXPECT_EQ(tiny_get(front_.port, "/v1/models").status, 0);
    EXPECT_EQ(trouble(), "");
  }
}

TEST_F(HaproxyGatewayTest, G5_AFrontThatCannotBeHadOpensNothing) {
  const TinyServer server;
  front_ = closed_front();
  ASSERT_TRUE(set_front(front_));
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(add(1, server));
  Front wanted = front_;
  wanted.certificate = folder_ + "/tls.pem";  // there is none
  take_over();
  EXPECT_FALSE(set_front(wanted));
  EXPECT_FALSE(ensure(service_));
  (void)add(1, server);
  EXPECT_EQ(get("/1/0").status, 401);  // as before
  EXPECT_NE(trouble().find("tls.pem"), std::string::npos) << trouble();
  make_certificate(wanted.certificate);
  EXPECT_TRUE(eventually([&] { return trouble().empty(); }));
  EXPECT_EQ(get("/1/0").status, 0);
  EXPECT_EQ(tiny_get(wanted.port, "/v1/models").status, 0);
  EXPECT_EQ(sample().ready_replicas, 1);
  // One that is refused for its form does not open anything, either.
  wanted.certificate = folder_ + "/with blank.pem";
  take_over();
  EXPECT_FALSE(set_front(wanted));
  EXPECT_FALSE(ensure({.service = "other", .port = free_port()}));
  EXPECT_EQ(get("/1/0").status, 0);
  EXPECT_NE(trouble(), "");
}

TEST_F(HaproxyGatewayTest, G5_ASharedPortThatIsTakenLeavesTheRestClosed) {
  const TinyServer server;
  auto stranger = std::make_unique<TinyServer>();
  front_ = closed_front();
  ASSERT_TRUE(set_front(front_));
  ASSERT_TRUE(ensure(service_));
  front_.port = stranger->port();
  take_over();
  EXPECT_FALSE(set_front(front_));
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(add(1, server));
  EXPECT_EQ(get("/1/0").status, 401);
  EXPECT_NE(trouble().find("shared endpoint"), std::string::npos) << trouble();
  stranger.reset();
  EXPECT_TRUE(eventually([&] { return trouble().empty(); }));
  EXPECT_EQ(tiny_get(front_.port, "/v1/models").status, 401);
}

TEST_F(HaproxyGatewayTest, G5_AProxyThatEndsBeforeItsFrontIsNamedIsNotStartedOpen) {
  front_ = closed_front();
  ASSERT_TRUE(set_front(front_));
  ASSERT_TRUE(ensure(service_));
  const pid_t before = master();
  take_over();
  kill(before, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !trouble().empty(); }));
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(get("/1/0").status, 0);
  ASSERT_TRUE(set_front(front_));
  EXPECT_TRUE(eventually([&] { return get("/1/0").status == 401; }));
}

TEST_F(HaproxyGatewayTest, E3_ACertificateThatIsMendedLateServesWhatWaitedForIt) {
  const TinyServer server;
  front_.certificate = folder_ + "/tls.pem";
  ASSERT_TRUE(set_front(front_));  // nothing is served yet
  EXPECT_FALSE(ensure(service_));
  auto added = std::make_shared<std::promise<void>>();
  std::future<void> joined = added->get_future();
  gateway_->add_replica({service_.service, AllocationId(1), server.port(), 4},
                        [added](const Result<void>&) { added->set_value(); });
  EXPECT_TRUE(eventually([&] { return trouble().find("tls.pem") != std::string::npos; }));
  EXPECT_EQ(joined.wait_for(0s), std::future_status::timeout);
  make_certificate(front_.certificate);
  EXPECT_EQ(joined.wait_for(10s), std::future_status::ready);
  EXPECT_TRUE(eventually([&] { return trouble().empty(); }));
  EXPECT_EQ(sample().ready_replicas, 1);
}

TEST_F(HaproxyGatewayTest, AProxyThatHangsIsReplaced) {
  const TinyServer server;
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(add(1, server));
  const pid_t hung = master();
  gateway_.reset();
  // As after a crash of the master's control socket: alive, and not to be talked to.
  std::filesystem::remove(ProxyFiles(folder_).master_socket);
  reopen();
  // Left alone it would share the port with the new one, and take half of the requests.
  EXPECT_NE(kill(hung, 0), 0);
  ASSERT_TRUE(ensure(service_));
  ASSERT_TRUE(add(1, server));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(get("/1/0").status, 200);
}

TEST_F(HaproxyGatewayTest, ClearErrors) {
  const TinyServer server;
  Endpoint taken = service_;
  taken.port = server.port();
  const Result<void> refused = ensure(taken);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  EXPECT_NE(refused.error().message.find("in use"), std::string::npos);
  ASSERT_TRUE(ensure(service_));
  Endpoint twin = service_;
  twin.service = "twin";
  EXPECT_EQ(ensure(twin).error().message,
            "port " + std::to_string(twin.port) + " belongs to service 'chat'");
  Endpoint injected = service_;
  injected.service = "x\n    server evil 10.0.0.1:80";
  EXPECT_EQ(ensure(injected).error().code, ErrorCode::invalid_argument);
  injected = service_;
  injected.bind = "127.0.0.1:80 ssl";
  EXPECT_EQ(ensure(injected).error().context, "bind");
  const auto unknown =
      await<ServiceSample>([&](Gateway::SampleDone done) { gateway_->sample("nobody", done); });
  EXPECT_EQ(unknown.error().code, ErrorCode::not_found);
  EXPECT_TRUE(remove(77, seconds(1)));  // gone already: as wished
  struct stat mode {};
  ASSERT_EQ(stat(folder_.c_str(), &mode), 0);
  EXPECT_EQ(mode.st_mode & 0777U, 0700U);
}

TEST(HaproxyMissing, SaysWhatToInstall) {
  char pattern[] = "/tmp/neap-gateway-XXXXXX";
  ASSERT_NE(mkdtemp(pattern), nullptr);
  auto gateway = HaproxyGateway::open({.folder = pattern, .program = "/nowhere/haproxy"}, {});
  ASSERT_TRUE(gateway) << to_string(gateway.error());
  const Result<void> ensured = await<void>([&](Gateway::Done done) {
    (*gateway)->ensure_service({.service = "chat", .port = free_port()}, done);
  });
  ASSERT_FALSE(ensured);
  EXPECT_EQ(ensured.error().code, ErrorCode::unavailable);
  EXPECT_NE(ensured.error().message.find("apt-get install haproxy"), std::string::npos);
  gateway->reset();
  std::filesystem::remove_all(pattern);
}

TEST(HaproxyFolder, ALongPathIsRefused) {
  const auto gateway = HaproxyGateway::open({.folder = "/tmp/" + std::string(90, 'x')}, {});
  ASSERT_FALSE(gateway);
  EXPECT_EQ(gateway.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace neap::gateway
