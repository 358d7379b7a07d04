// Bodies and answers of reports and drills: F10, F11, F12, G5.
#include "api/reports.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/event_hub.h"
#include "api/log_feed.h"
#include "api/routes.h"
#include "api/testing/fake_control.h"

namespace neap::api {
namespace {

using Json = nlohmann::json;

TEST(Reports, F12_ADrillIsReadStrictly) {
  const auto order = decode_drill(
      R"({"service": "chat", "replicas": 6, "for_us": 120000000, "max_preemptions": 2})");
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->service, "chat");
  EXPECT_EQ(order->replicas, 6);
  EXPECT_EQ(order->max_preemptions, 2);
  EXPECT_EQ(order->max_lost_us, 0);
  EXPECT_EQ(order->pause_us, unknown) << "the pool's";
  const auto field = [](const char* body) {
    const auto refused = decode_drill(body);
    EXPECT_FALSE(refused.has_value()) << body;
    return refused ? "" : refused.error().context;
  };
  EXPECT_EQ(field("{}"), "service");
  EXPECT_EQ(field(R"({"service": "chat", "for_us": 1})"), "replicas");
  EXPECT_EQ(field(R"({"service": "chat", "replicas": 2})"), "for_us");
  EXPECT_EQ(field(R"({"service": "chat", "replicas": 20000, "for_us": 1})"), "replicas");
  EXPECT_EQ(field(R"({"service": "chat", "replicas": 2, "for_us": -1})"), "for_us");
  EXPECT_EQ(field(R"({"service": "chat", "replicas": 2, "for_us": 1, "pause_us": 1.5})"),
            "pause_us");
  EXPECT_EQ(field(R"({"service": "chat", "replicas": 2, "for_us": 1, "loss": 1})"), "loss");
}

TEST(Reports, F12_ACheckThatIsOpenIsNeitherKeptNorBroken) {
  DrillReport report;
  report.checks = {{"served", "0 of 2", "all", false, true}, {"lost", "0 s", "0 s", true, false}};
  const Json json = Json::parse(encode(report));
  EXPECT_TRUE(json.at("checks").at(0).at("kept").is_null());
  EXPECT_EQ(json.at("checks").at(1).at("kept"), true);
}

TEST(Reports, F11_AQueueThatIsAlwaysPreemptedIsNone) {
  ledger::PreemptionReport report;
  ledger::QueueCapacity queue;
  queue.team = "red";
  queue.tier = "normal";
  queue.cut = queue.stays = 3;
  queue.none = true;
  report.queues = {queue};
  report.by_team["red"].done = 3;
  report.by_team["red"].failed = 1;
  const Json json = Json::parse(encode(report));
  EXPECT_EQ(json.at("capacity").at(0).at("effective"), "none");
  EXPECT_EQ(json.at("teams").at("red").at("success_ppm"), 750'000);
  EXPECT_EQ(json.at("all").at("success_ppm"), 1'000'000) << "none was tried";
}

class ReportRoutes : public ::testing::Test {
 protected:
  http::Response ask(std::uint32_t uid, const std::string& method, const std::string& path,
                     const std::string& body = {}) {
    http::Request request;
    request.method = method;
    const std::size_t mark = path.find('?');
    request.path = path.substr(0, mark);
    if (mark != std::string::npos) {
      const std::size_t equals = path.find('=');
      request.query[path.substr(mark + 1, equals - mark - 1)] = path.substr(equals + 1);
    }
    request.body = body;
    request.peer.uid = uid;
    return router_.route(request);
  }

  static constexpr std::uint32_t stranger = 4243;
  static constexpr std::uint32_t daemon_user = 99;

  testing::FakeControl control_;
  EventHub hub_;
  Authority authority_{daemon_user};
  EventFeed events_{control_, hub_, authority_};
  LogFeed logs_{control_};
  http::Router router_ =
      make_router({control_, events_, logs_, authority_, daemon_user, daemon_user});
};

TEST_F(ReportRoutes, F12_WhoAdministersMayDrill) {
  const char* order = R"({"service": "chat", "replicas": 6, "for_us": 120000000})";
  EXPECT_EQ(ask(stranger, "POST", "/v1/drill", order).status, 403);
  EXPECT_EQ(ask(stranger, "DELETE", "/v1/drill").status, 403);
  EXPECT_EQ(ask(daemon_user, "POST", "/v1/drill", order).status, 200);
  EXPECT_EQ(control_.asked().back().find("drill of chat to 6"), 0U);
  EXPECT_EQ(ask(daemon_user, "DELETE", "/v1/drill").status, 200);
}

TEST_F(ReportRoutes, G5_WhoseTaskYieldedIsNotForEverybody) {
  const auto shown = ask(stranger, "GET", "/v1/drill").body;
  EXPECT_EQ(Json::parse(shown).at("victims").at(0).at("name"), "(another user's)");
  EXPECT_EQ(shown.find("theirs"), std::string::npos);
  const auto full = ask(daemon_user, "GET", "/v1/drill").body;
  EXPECT_EQ(Json::parse(full).at("victims").at(0).at("name"), "theirs");
}

TEST_F(ReportRoutes, F10_TheWindowIsALengthOfTime) {
  EXPECT_EQ(ask(daemon_user, "GET", "/v1/preemptions?since_us=0").status, 400);
  EXPECT_EQ(ask(daemon_user, "GET", "/v1/preemptions?since_us=soon").status, 400);
  const auto week = ask(daemon_user, "GET", "/v1/preemptions");
  EXPECT_EQ(week.status, 200);
  EXPECT_EQ(Json::parse(week.body).at("until_us"), 7 * 24 * 3'600 * 1'000'000LL);
}

}  // namespace
}  // namespace neap::api
