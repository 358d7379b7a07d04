// E1: classes, bounds, refusals and the wait for a service that sleeps, with a real HAProxy.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include "gateway/haproxy/haproxy_gateway.h"
#include "gateway/haproxy/process.h"
#include "posix/testing/tiny_http.h"

namespace neap::gateway {
namespace {

using posix::free_port;
using posix::TinyServer;
using namespace std::chrono_literals;

struct Reply {
  int status = 0;
  std::string text;
  double seconds = 0;

  [[nodiscard]] std::string header(const std::string& name) const {
    const std::size_t at = text.find("\r\n" + name + ": ");
    if (at == std::string::npos) return {};
    const std::size_t from = at + name.size() + 4;
    return text.substr(from, text.find("\r\n", from) - from);
  }
};

struct Question {
  std::string path = "/1/0";
  std::string headers;  // each with its line end
  std::string body;
  std::chrono::milliseconds patience = 30s;
};

Reply ask(std::uint16_t port, const Question& question) {
  const auto begun = std::chrono::steady_clock::now();
  const posix::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = question.patience.count() / 1000,
                         .tv_usec = question.patience.count() % 1000 * 1000};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Reply reply;
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return reply;
  }
  const std::string text = (question.body.empty() ? "GET " : "POST ") + question.path +
                           " HTTP/1.1\r\nHost: t\r\nConnection: close\r\n" + question.headers +
                           "Content-Length: " + std::to_string(question.body.size()) + "\r\n\r\n" +
                           question.body;
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = send(fd.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) break;
    sent += static_cast<std::size_t>(n);
  }
  std::array<char, 4096> chunk{};
  for (ssize_t got = 0; (got = recv(fd.get(), chunk.data(), chunk.size(), 0)) > 0;) {
    reply.text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  if (reply.text.starts_with("HTTP/1.1 ")) reply.status = std::atoi(reply.text.c_str() + 9);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  reply.seconds = took.count();
  return reply;
}

std::string of_class(const std::string& name) { return "X-Priority: " + name + "\r\n"; }

class AdmissionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ProxyProcess probe(ProxyFiles("/nowhere"), "haproxy");
    if (!probe.find_program()) GTEST_SKIP() << "HAProxy is not installed";
    char pattern[] = "/tmp/neap-admission-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    folder_ = pattern;
    service_.service = "chat";
    service_.port = free_port();
    auto opened = HaproxyGateway::open({.folder = folder_}, {});
    ASSERT_TRUE(opened) << to_string(opened.error());
    gateway_ = std::move(*opened);
  }

  void TearDown() override {
    clients_.clear();
    if (gateway_) {
      std::promise<void> stopped;
      gateway_->stop([&](const Result<void>&) { stopped.set_value(); });
      stopped.get_future().wait();
      gateway_.reset();
    }
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  bool done(const std::function<void(Gateway::Done)>& call) {
    std::promise<bool> promise;
    call([&](Result<void> result) { promise.set_value(result.has_value()); });
    return promise.get_future().get();
  }
  bool ensure() {
    return done([&](Gateway::Done d) { gateway_->ensure_service(service_, std::move(d)); });
  }
  bool add(std::uint64_t id, const TinyServer& server, std::int32_t places) {
    const Replica replica{"chat", AllocationId(id), server.port(), places};
    return done([&](Gateway::Done d) { gateway_->add_replica(replica, std::move(d)); });
  }
  ServiceSample sample() {
    std::promise<ServiceSample> promise;
    gateway_->sample("chat", [&](Result<ServiceSample> result) {
      promise.set_value(result.value_or(ServiceSample{}));
    });
    return promise.get_future().get();
  }
  template <class Condition>
  static bool eventually(Condition condition) {
    for (int i = 0; i < 500; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  // In the background; its answer goes to `replies_` in the order in which they come.
  void send(const Question& question, const std::string& name) {
    clients_.push_back(std::async(std::launch::async, [this, question, name] {
      Reply reply = ask(service_.port, question);
      const std::lock_guard lock(mutex_);
      replies_.emplace_back(name, std::move(reply));
    }));
  }
  bool waiting(std::int64_t count) {
    return eventually([&] { return sample().queued == count; });
  }
  void finish() {
    for (std::future<void>& client : clients_) client.wait();
  }
  [[nodiscard]] int count(const std::string& name, int status) const {
    return static_cast<int>(std::ranges::count_if(replies_, [&](const auto& one) {
      return one.first == name && one.second.status == status;
    }));
  }

  // A second service, so a new worker, once one request of the first has waited for a second.
  void reload_while_one_is_held() {
    service_.admission.hold = 3;
    ASSERT_TRUE(ensure());
    send({}, "held");
    ASSERT_TRUE(waiting(1));
    std::this_thread::sleep_for(1s);
    Endpoint other{.service = "other", .port = free_port()};
    ASSERT_TRUE(done([&](Gateway::Done d) { gateway_->ensure_service(other, std::move(d)); }));
  }

  std::string folder_;
  Endpoint service_;
  std::unique_ptr<HaproxyGateway> gateway_;
  std::mutex mutex_;
  std::vector<std::pair<std::string, Reply>> replies_;  // guarded by mutex_ until finish()
  std::vector<std::future<void>> clients_;
};

TEST_F(AdmissionTest, E1_HigherClassesAreServedFirst) {
  const TinyServer server;
  ASSERT_TRUE(ensure());
  ASSERT_TRUE(add(1, server, 1));
  send({.path = "/1/400"}, "first");
  ASSERT_TRUE(eventually([&] { return sample().in_flight == 1; }));
  int queued = 0;
  for (const char* name : {"low", "low", "normal", "high", "normal", "high"}) {
    send({.path = "/1/50", .headers = of_class(name)}, name);
    ASSERT_TRUE(waiting(++queued));
  }
  finish();
  ASSERT_EQ(replies_.size(), 7U);
  std::string order;
  for (const auto& [name, reply] : replies_) {
    EXPECT_EQ(reply.status, 200);
    order += name + " ";
  }
  EXPECT_EQ(order, "first high high normal normal low low ");
}

TEST_F(AdmissionTest, E1_NothingIsRefusedWhileALowerClassWaits) {
  service_.admission.queue = {4, 3, 2};
  TinyServer server;
  ASSERT_TRUE(ensure());
  ASSERT_TRUE(add(1, server, 1));
  send({.path = "/gate"}, "first");
  ASSERT_TRUE(eventually([&] { return sample().in_flight == 1; }));
  for (int i = 1; i <= 2; ++i) {
    send({.headers = of_class("low")}, "low");
    ASSERT_TRUE(waiting(i));
  }
  const Reply refused = ask(service_.port, {.headers = of_class("low")});
  EXPECT_EQ(refused.status, 429);
  EXPECT_LT(refused.seconds, 1);
  EXPECT_GE(std::atoi(refused.header("retry-after").c_str()), 1) << refused.text;
  EXPECT_GE(std::atoi(refused.header("retry-after-ms").c_str()), 1);
  EXPECT_NE(refused.text.find("\"code\":\"rate_limit_exceeded\""), std::string::npos);
  // Four high ones take all places: both that are low give theirs up.
  for (int i = 0; i < 4; ++i) send({.headers = of_class("high")}, "high");
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex_);
    return count("low", 429) == 2;
  }));
  ASSERT_TRUE(waiting(4));
  EXPECT_EQ(ask(service_.port, {.headers = of_class("high")}).status, 429);  // nobody lower is left
  EXPECT_EQ(ask(service_.port, {}).status, 429);
  EXPECT_EQ(sample().refused, (std::array<std::uint64_t, class_count>{1, 1, 3}));
  server.release();
  finish();
  EXPECT_EQ(count("high", 200), 4);
  EXPECT_EQ(count("first", 200), 1);
}

TEST_F(AdmissionTest, E1_AWaitThatIsTooLongEnds) {
  service_.queue_timeout = milliseconds(300);
  TinyServer server;
  ASSERT_TRUE(ensure());
  ASSERT_TRUE(add(1, server, 1));
  send({.path = "/gate"}, "first");
  ASSERT_TRUE(eventually([&] { return sample().in_flight == 1; }));
  for (int i = 0; i < 3; ++i) {
    send({}, "late");
  }
  std::this_thread::sleep_for(1500ms);
  server.release();
  finish();
  EXPECT_EQ(count("late", 429), 3);
  for (const auto& [name, reply] : replies_) {
    if (name != "late") continue;
    EXPECT_NEAR(reply.seconds, 0.3, 0.3);
    EXPECT_NE(reply.header("retry-after"), "");
  }
}

TEST_F(AdmissionTest, E1_RequestsAreHeldUntilTheFirstReplica) {
  service_.admission.hold = 3;
  const TinyServer server;
  ASSERT_TRUE(ensure());
  // Longer than the proxy's buffer: only its beginning is read before there is a replica.
  const std::string large(300'000, 'x');
  send({.body = large}, "held");
  ASSERT_TRUE(waiting(1));
  send({.headers = of_class("low")}, "low");
  ASSERT_TRUE(waiting(2));
  send({}, "held");
  ASSERT_TRUE(waiting(3));
  const Reply over = ask(service_.port, {.headers = of_class("low")});
  EXPECT_EQ(over.status, 503);
  EXPECT_GE(std::atoi(over.header("retry-after").c_str()), 1);
  EXPECT_NE(over.text.find("\"code\":\"service_unavailable\""), std::string::npos);
  EXPECT_EQ(sample().ready_replicas, 0);
  ASSERT_TRUE(add(1, server, 4));
  finish();
  EXPECT_EQ(count("held", 200), 2);
  EXPECT_EQ(count("low", 200), 1);
}

TEST_F(AdmissionTest, E1_AHoldEndsWithItsTime) {
  service_.admission.hold = 3;
  service_.admission.hold_for = milliseconds(400);
  ASSERT_TRUE(ensure());
  const Reply reply = ask(service_.port, {});
  EXPECT_EQ(reply.status, 503);
  EXPECT_NEAR(reply.seconds, 0.4, 0.3);
  EXPECT_NE(reply.header("retry-after"), "");
}

TEST_F(AdmissionTest, E3_WhoIsHeldAcrossAReloadMeetsTheFirstReplicaToo) {
  const TinyServer server;
  reload_while_one_is_held();
  ASSERT_TRUE(waiting(1));  // in the worker of before
  ASSERT_TRUE(add(1, server, 4));
  finish();
  EXPECT_EQ(count("held", 200), 1);
  // It waited since it came, not since it was handed over.
  ASSERT_TRUE(eventually([&] { return sample().first_byte_p95.has_value(); }));
  EXPECT_GE(*sample().first_byte_p95, seconds(1));
}

TEST_F(AdmissionTest, E1_AHoldIsNoLongerForAReload) {
  service_.admission.hold_for = milliseconds(1500);
  reload_while_one_is_held();
  finish();
  ASSERT_EQ(count("held", 503), 1);
  EXPECT_LT(replies_.front().second.seconds, 2.2);
}

TEST_F(AdmissionTest, E1_AClientThatGoesAwayGivesItsPlaceUp) {
  service_.admission.queue = {1, 1, 1};
  TinyServer server;
  ASSERT_TRUE(ensure());
  ASSERT_TRUE(add(1, server, 1));
  send({.path = "/gate"}, "first");
  ASSERT_TRUE(eventually([&] { return sample().in_flight == 1; }));
  send({.headers = of_class("low"), .patience = 200ms}, "impatient");
  ASSERT_TRUE(waiting(1));
  ASSERT_TRUE(waiting(0));
  send({.headers = of_class("low")}, "low");
  ASSERT_TRUE(waiting(1));
  server.release();
  finish();
  EXPECT_EQ(count("low", 200), 1);
}

// SHA-256 of the keys "abc" and "x".
constexpr const char* digest_of_abc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* digest_of_x =
    "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";

TEST_F(AdmissionTest, E1_TeamsOfOneClassTakeTurns) {
  Front front;
  front.keys = Front::Keys::required;
  front.known = {{digest_of_abc, "many", RequestClass::normal},
                 {digest_of_x, "few", RequestClass::normal}};
  ASSERT_TRUE(done([&](Gateway::Done d) { gateway_->set_front(front, std::move(d)); }));
  service_.admission.queue = {8, 8, 8};
  TinyServer server;
  ASSERT_TRUE(ensure());
  ASSERT_TRUE(add(1, server, 1));
  const std::string many = "Authorization: Bearer abc\r\n";
  const std::string few = "X-Api-Key: x\r\n";
  send({.path = "/gate", .headers = many}, "first");
  ASSERT_TRUE(eventually([&] { return sample().in_flight == 1; }));
  for (int i = 1; i <= 8; ++i) {
    // A key's class is the highest that it can have.
    send({.path = "/1/40", .headers = many + of_class("high")}, "many");
    ASSERT_TRUE(waiting(i));
  }
  EXPECT_EQ(ask(service_.port, {.headers = many}).status, 429);
  // Whose team has less is let in, and the team that is furthest ahead gives a place up.
  for (int i = 0; i < 3; ++i) send({.path = "/1/40", .headers = few}, "few");
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex_);
    return count("many", 429) == 3;
  }));
  server.release();
  finish();
  std::string order;
  for (const auto& [name, reply] : replies_) {
    if (reply.status == 200) order += name + " ";
  }
  // None of a slow service is in the proxy's own queue: they take turns from the first on.
  EXPECT_EQ(order, "first many few many few many few many many ");
  EXPECT_EQ(ask(service_.port, {}).status, 401);
  EXPECT_EQ(ask(service_.port, {.headers = "Authorization: Bearer y\r\n"}).status, 401);
}

TEST_F(AdmissionTest, E1_PlacesOfAReplicaRiseWhileItAnswersInTime) {
  service_.slo_first_byte = milliseconds(500);
  service_.admission.adaptive = true;
  const TinyServer server;
  ASSERT_TRUE(ensure());
  ASSERT_TRUE(add(1, server, 8));
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      while (!stop) (void)ask(service_.port, {.path = "/1/50"});
    });
  }
  EXPECT_TRUE(eventually([&] { return server.most_at_once() == 1; }));
  EXPECT_TRUE(eventually([&] { return server.most_at_once() == 8; }));
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace neap::gateway
