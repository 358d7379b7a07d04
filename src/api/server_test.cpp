#include "api/server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/client.h"
#include "api/decode.h"
#include "api/encode.h"
#include "api/event_hub.h"
#include "api/log_feed.h"
#include "api/routes.h"
#include "api/testing/fake_control.h"
#include "api/testing/raw_connection.h"

namespace neap::api {
namespace {

using Json = nlohmann::json;
using testing::FakeControl;
using testing::TemporaryFolder;

const std::string token(48, 't');

// A whole server on a UNIX socket and TCP, and clients of it.
class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_.file("token")) << token << "\n";
    ::chmod(folder_.file("token").c_str(), 0600);
    ServerSettings settings;
    settings.socket_path = folder_.file("s");
    settings.tcp = TcpSettings{"127.0.0.1:0", folder_.file("token")};
    auto server = Server::start(settings, control_, hub_);
    ASSERT_TRUE(server) << to_string(server.error());
    server_ = std::move(*server);
  }

  Client local() { return Client({folder_.file("s"), "", ""}); }
  Client remote(const std::string& secret) {
    return Client({"", "http://127.0.0.1:" + std::to_string(server_->tcp_port()), secret});
  }
  Json get(const std::string& path) {
    const auto body = local().get(path);
    EXPECT_TRUE(body) << to_string(body.error());
    return body ? Json::parse(*body) : Json();
  }
  Error submit_error(const std::string& text) {
    const auto done = local().post("/v1/tasks", submission(text));
    EXPECT_FALSE(done);
    return done ? Error{} : done.error();
  }
  static std::string submission(const std::string& text) {
    return Json{{"file", "job.yaml"}, {"text", text}, {"workdir", "/jobs"}}.dump();
  }

  TemporaryFolder folder_;
  FakeControl control_;
  EventHub hub_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, ListingsBeginWithThePool) {
  for (const char* path : {"/v1/tasks", "/v1/services", "/v1/devices", "/v1/status",
                           "/v1/tasks/mine", "/v1/services/chat", "/v1/tasks/mine/why"}) {
    EXPECT_EQ(get(path).at("pool").at("device_source"), "simulated") << path;
    EXPECT_EQ(get(path).at("pool").at("paused"), false) << path;
  }
  const Json tasks = get("/v1/tasks").at("tasks");
  EXPECT_EQ(tasks.at(0).at("name"), "mine");
  EXPECT_EQ(tasks.at(0).at("devices").size(), 2u);
  EXPECT_TRUE(tasks.at(0).at("exit_code").is_null());
  EXPECT_EQ(get("/v1/tasks/3").at("task").at("exit_code"), 7);
  EXPECT_EQ(get("/v1/version").at("version"), "0.1.0");
  EXPECT_EQ(get("/v1/doctor").at("checks").at(0).at("state"), "ok");
}

TEST_F(ServerTest, ChangesReachTheDaemonWithTheCaller) {
  Client client = local();
  const auto made = client.post(
      "/v1/tasks", submission("task: {name: new, command: [x], workdir: a, gpus: 1}\n"));
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_EQ(Json::parse(*made).at("name"), "new");
  EXPECT_NE(control_.submitted().find("\"workdir\":\"/jobs/a\""), std::string::npos);
  ASSERT_TRUE(client.remove("/v1/tasks/mine"));
  ASSERT_TRUE(client.post("/v1/services/chat/scale", R"({"max": 3})"));
  ASSERT_TRUE(client.remove("/v1/services/chat"));
  ASSERT_TRUE(client.post("/v1/pause", R"({"reason": "incident"})"));
  EXPECT_EQ(get("/v1/tasks").at("pool").at("paused"), true);  // G4: said everywhere
  ASSERT_TRUE(client.post("/v1/resume", ""));
  const std::vector<std::string> asked = control_.asked();
  ASSERT_EQ(asked.size(), 6u);
  const std::string by = asked[0].substr(asked[0].find(" by "));
  EXPECT_EQ(asked[1], "cancel 1" + by);
  EXPECT_EQ(asked[2], "scale 1 -1..3" + by);
  EXPECT_EQ(asked[3], "cancel service 1" + by);
  EXPECT_EQ(asked[4], "pause \"incident\"" + by);
}

// G5: every fault of the file comes back with its place, and nothing was changed.
TEST_F(ServerTest, G5_BadTaskFilesNameFileLineAndField) {
  const Error error = submit_error("task:\n  name: x\n  gpu: {memory: 16GB}\n  comand: [a]\n");
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_EQ(error.context, "job.yaml:3: task.gpu.memory");
  EXPECT_NE(error.message.find("has the unit \"GB\""), std::string::npos);
  EXPECT_NE(error.message.find("job.yaml:4: task.comand: is not a known field; did you mean "
                               "\"command\"?"),
            std::string::npos)
      << error.message;
  EXPECT_TRUE(control_.asked().empty());
}

TEST_F(ServerTest, G5_TheDaemonsFaultsGetTheirLine) {
  const Error many = submit_error("task:\n  name: x\n  command: [a]\n  gpus: 5\n");
  EXPECT_EQ(to_string(many), "job.yaml:4: task.gpus: asks for 5 devices; the pool has 4");
  const Error twice = submit_error("task:\n  name: mine\n  command: [a]\n  gpus: 1\n");
  EXPECT_EQ(twice.code, ErrorCode::conflict);
  EXPECT_EQ(to_string(twice), "job.yaml:2: task.name: a live task is called mine");
  EXPECT_TRUE(control_.asked().empty());
}

// D9: one file, one answer; a fault of a stage is named where it stands in the file.
TEST_F(ServerTest, PipelinesAreSubmittedShownAndCancelledD9) {
  const std::string two =
      "pipeline:\n  name: p\n  stages:\n"
      "    - {name: a, task: {command: [x], gpus: 1}}\n"
      "    - {name: b, after: [a], task: {command: [x], gpus: 1}}\n";
  ASSERT_TRUE(local().post("/v1/tasks", submission(two)));
  EXPECT_NE(local().get("/v1/pipelines").value().find("\"name\":\"b\""), std::string::npos);
  EXPECT_NE(local().get("/v1/pipelines/p").value().find("\"state\":\"waiting\""),
            std::string::npos);
  ASSERT_TRUE(local().remove("/v1/pipelines/p"));
  EXPECT_TRUE(control_.asked().back().starts_with("cancel pipeline 1"));
  EXPECT_EQ(local().get("/v1/pipelines/none").error().code, ErrorCode::not_found);
  const Error error =
      submit_error(two + "    - name: c\n      task:\n        command: [x]\n        gpus: 1\n");
  EXPECT_EQ(to_string(error), "job.yaml:9: pipeline.stages[2].task.gpus: is too much");
}

// C4: a new version is one of the caller's own service.
TEST_F(ServerTest, AServiceIsReplacedWhenAskedForC4) {
  const std::string chat = R"(service: {name: NAME, command: [x], gpus: 1})";
  const auto replace = [&](const std::string& name) {
    std::string text = chat;
    text.replace(text.find("NAME"), 4, name);
    std::string body = submission(text);
    body.insert(body.size() - 1, ",\"replace\":true");
    return local().post("/v1/tasks", body);
  };
  ASSERT_TRUE(replace("chat"));
  EXPECT_TRUE(control_.asked().back().starts_with("replace chat"));
  ASSERT_TRUE(local().remove("/v1/services/chat/version"));
  EXPECT_TRUE(control_.asked().back().starts_with("cancel version 1"));
  if (::getuid() != 0) {
    EXPECT_EQ(replace("other").error().code, ErrorCode::permission_denied);
  }
  std::string task = submission("task: {name: t, command: [x], gpus: 1}");
  task.insert(task.size() - 1, ",\"replace\":true");
  EXPECT_EQ(local().post("/v1/tasks", task).error().code, ErrorCode::invalid_argument);
}

TEST_F(ServerTest, G5_BodiesOverTheLimitAreRefused) {
  const auto done = local().post("/v1/tasks", submission(std::string((1 << 20) + 1, 'a')));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::too_large);
}

TEST_F(ServerTest, UnknownThingsAreNotFound) {
  EXPECT_EQ(local().get("/v1/tasks/none").error().code, ErrorCode::not_found);
  EXPECT_EQ(local().get("/v1/services/none").error().code, ErrorCode::not_found);
  EXPECT_EQ(local().get("/v2").error().code, ErrorCode::not_found);
  EXPECT_EQ(local().get("/v1/tasks/mine/log?offset=x").error().code, ErrorCode::invalid_argument);
}

// G5: over TCP nothing is answered without the token.
TEST_F(ServerTest, G5_TcpNeedsTheToken) {
  EXPECT_TRUE(remote(token).get("/v1/tasks"));
  ASSERT_TRUE(remote(token).post("/v1/pause", ""));
  EXPECT_EQ(control_.asked().back(), "pause \"\" by token");
  for (const std::string& wrong : {std::string(), std::string("x"), std::string(48, 'u')}) {
    const auto answer = remote(wrong).get("/v1/version");
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::unauthenticated);
    EXPECT_FALSE(remote(wrong).post("/v1/resume", ""));
  }
  EXPECT_EQ(control_.asked().size(), 1u);
}

TEST_F(ServerTest, LogIsFollowedToTheEnd) {
  std::string seen;
  std::string end;
  std::thread writer([&] {
    control_.append_log(1, "line 3\n");
    control_.set_state(1, "failed", 3);
  });
  const auto done =
      local().follow("/v1/tasks/mine/log?follow=1&offset=-7", [&](const StreamEvent& e) {
        const Json data = Json::parse(e.data);
        if (e.name == "log") seen += data.at("text").get<std::string>();
        if (e.name == "end")
          end = data.at("state").get<std::string>() + data.at("exit_code").dump();
        return Next::more;
      });
  writer.join();
  EXPECT_TRUE(done);
  EXPECT_TRUE(seen.ends_with("line 3\n")) << seen;
  EXPECT_EQ(end, "failed3");
}

EventRow event(std::uint64_t sequence, std::uint32_t uid, bool about_pool) {
  EventRow row;
  row.sequence = sequence;
  row.kind = "test";
  row.owner_uid = uid;
  row.about_pool = about_pool;
  return row;
}

// What came before is read from the journal, what comes from the hub, each once and in order.
TEST_F(ServerTest, EventsAreFollowedWithoutAGap) {
  for (std::uint64_t i = 1; i <= 10; ++i) control_.add_event(event(i, ::getuid(), true));
  std::vector<std::string> seen;
  std::thread pusher;
  const auto done = local().follow("/v1/events?follow=1&after=4", [&](const StreamEvent& e) {
    seen.push_back(e.id);
    if (e.id == "10") {
      pusher = std::thread([this] {
        for (std::uint64_t i = 10; i <= 12; ++i) {
          const EventRow row = event(i, ::getuid(), false);
          control_.add_event(row);
          hub_.push({&row, 1});
        }
      });
    }
    return e.id == "12" ? Next::stop : Next::more;
  });
  if (pusher.joinable()) pusher.join();
  EXPECT_TRUE(done);
  EXPECT_EQ(seen, (std::vector<std::string>{"5", "6", "7", "8", "9", "10", "11", "12"}));
  const Json page = get("/v1/events?after=2&limit=3");
  EXPECT_EQ(page.at("events").size(), 3u);
  EXPECT_EQ(page.at("last"), 5);
  EXPECT_FALSE(local().get("/v1/events?limit=0"));
  EXPECT_FALSE(local().get("/v1/events?limit=-1"));
}

TEST_F(ServerTest, AFollowerTooFarBehindIsTold) {
  for (std::uint64_t i = 1; i <= 1500; ++i) control_.add_event(event(i, ::getuid(), true));
  std::string last;
  EXPECT_TRUE(local().follow("/v1/events?follow=1&after=0", [&](const StreamEvent& e) {
    last = e.name;
    return Next::more;
  }));
  EXPECT_EQ(last, "behind");
}

TEST_F(ServerTest, StoppingEndsFollowersAndFreesTheSocket) {
  std::thread stopper;
  const auto done = local().follow("/v1/tasks/mine/log?follow=1", [&](const StreamEvent&) {
    if (!stopper.joinable()) stopper = std::thread([this] { server_.reset(); });
    return Next::more;
  });
  stopper.join();
  EXPECT_TRUE(done);
  const auto after = local().get("/v1/version");
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code, ErrorCode::unavailable);
  EXPECT_NE(after.error().message.find("neap serve"), std::string::npos);
}

// The routes with callers that a test cannot be: other users of the machine.
class RoutesTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t stranger = 4242;
  static constexpr std::uint32_t daemon_user = 99;

  http::Response ask(std::uint32_t uid, const std::string& method, const std::string& path,
                     const std::string& body = "") {
    http::Request request;
    request.method = method;
    request.path = path;
    request.body = body;
    request.peer.uid = uid;
    return router_.route(request);
  }

  FakeControl control_;
  EventHub hub_;
  Authority authority_{daemon_user};
  EventFeed events_{control_, hub_, authority_};
  LogFeed logs_{control_};
  http::Router router_ =
      make_router({control_, events_, logs_, authority_, daemon_user, daemon_user});
};

// G5: one's own, and nobody else's.
TEST_F(RoutesTest, G5_UsersManageTheirOwnTasksOnly) {
  const struct {
    const char* method;
    const char* path;
    const char* body;
  } asked[] = {{"DELETE", "/v1/tasks/mine", ""},
               {"GET", "/v1/tasks/mine", ""},
               {"GET", "/v1/tasks/mine/why", ""},
               {"GET", "/v1/tasks/mine/log", ""},
               {"DELETE", "/v1/tasks/1", ""},
               {"GET", "/v1/services/chat", ""},
               {"DELETE", "/v1/services/chat", ""},
               {"POST", "/v1/services/chat/scale", "{\"max\":1}"},
               {"POST", "/v1/pause", ""},
               {"POST", "/v1/resume", ""},
               {"POST", "/v1/stage", "{\"to\":\"memory\"}"}};
  for (const auto& one : asked) {
    const http::Response answer = ask(stranger, one.method, one.path, one.body);
    EXPECT_EQ(answer.status, 403) << one.method << " " << one.path;
    EXPECT_EQ(Json::parse(answer.body).at("error").at("code"), "permission_denied");
    EXPECT_FALSE(answer.stream);
  }
  EXPECT_TRUE(control_.asked().empty());
  EXPECT_EQ(ask(stranger, "DELETE", "/v1/tasks/theirs").status, 200);
  EXPECT_EQ(control_.asked().back(), "cancel 2 by 4242");
}

TEST_F(RoutesTest, G5_ListingsShowOnesOwn) {
  const Json tasks = Json::parse(ask(stranger, "GET", "/v1/tasks").body).at("tasks");
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks.at(0).at("name"), "theirs");
  EXPECT_EQ(Json::parse(ask(stranger, "GET", "/v1/services").body).at("services").size(), 1u);
  const Json switches = Json::parse(ask(stranger, "GET", "/v1/usage").body).at("switches");
  ASSERT_EQ(switches.size(), 1u);
  EXPECT_EQ(switches.at(0).at("service"), "other");
  EXPECT_TRUE(Json::parse(ask(stranger, "GET", "/v1/profiles").body).at("profiles").empty());
  EXPECT_EQ(Json::parse(ask(0, "GET", "/v1/profiles").body).at("profiles").size(), 1u);
  const Json holders =
      Json::parse(ask(stranger, "GET", "/v1/devices").body).at("devices").at(0).at("holders");
  EXPECT_EQ(holders.at(0).at("task"), "(another user's)");
  EXPECT_EQ(holders.at(0).at("compute_milli"), 600);
  EXPECT_EQ(holders.at(1).at("task"), "theirs");
  control_.add_event(event(1, ::getuid(), false));
  control_.add_event(event(2, stranger, false));
  control_.add_event(event(3, 0, true));
  const Json page = Json::parse(ask(stranger, "GET", "/v1/events").body);
  EXPECT_EQ(page.at("events").size(), 2u);
  EXPECT_EQ(page.at("last"), 3);
}

TEST_F(RoutesTest, G5_RootAndTheDaemonsUserAdminister) {
  for (const std::uint32_t uid : {0u, daemon_user}) {
    EXPECT_EQ(Json::parse(ask(uid, "GET", "/v1/tasks").body).at("tasks").size(), 3u);
    EXPECT_EQ(ask(uid, "DELETE", "/v1/tasks/theirs").status, 200);
    EXPECT_EQ(ask(uid, "POST", "/v1/pause").status, 200);
  }
}

TEST(Decode, F8_AChangeOfStage) {
  const auto change = decode_stage_change(R"({"to":"memory","why":"calm","force":true})");
  ASSERT_TRUE(change);
  EXPECT_EQ(change->to, "memory");
  EXPECT_EQ(change->why, "calm");
  EXPECT_TRUE(change->forced);
  EXPECT_FALSE(decode_stage_change(R"({"to":"memory"})")->forced);
  for (const char* body : {"", "{}", R"({"to":1})", R"({"to":"memory","force":"yes"})",
                           R"({"to":"memory","when":"now"})"}) {
    EXPECT_FALSE(decode_stage_change(body)) << body;
  }
}

TEST(Decode, G5_IsStrict) {
  const auto refused = [](std::string_view body) {
    const auto done = decode_submission(body);
    return done ? std::string("accepted") : to_string(done.error());
  };
  EXPECT_EQ(refused(R"({"file": "f", "text": "t", "workdir": "/"})"), "accepted");
  EXPECT_EQ(refused(""), "the body is not valid JSON");
  EXPECT_EQ(refused("{"), "the body is not valid JSON");
  EXPECT_EQ(refused("[]"), "the body is not a JSON object");
  EXPECT_EQ(refused(R"({"file": "f", "text": "t", "workdir": "/", "file": "g"})"),
            "file: is given twice");
  EXPECT_EQ(refused(R"({"file": "f", "txt": "t"})"),
            "txt: \"txt\" is not a known field; did you mean \"text\"?");
  EXPECT_EQ(refused(R"({"file": "f", "text": 7, "workdir": "/"})"), "text: is not a text");
  EXPECT_EQ(refused(R"({"file": "f", "text": "t", "workdir": "a"})"),
            "workdir: is not an absolute path");
  EXPECT_EQ(refused(R"({"file": [[[[[[]]]]]]})"), "the body is nested deeper than 4");
  EXPECT_EQ(refused("{\"file\": " + std::string(100'000, '[')), "the body is not valid JSON");
  EXPECT_EQ(decode_scale(R"({"min": -1})").error().context, "min");
  EXPECT_EQ(decode_scale(R"({"min": 1.5})").error().context, "min");
  EXPECT_EQ(decode_scale(R"({"min": 3, "max": 2})").error().message, "is above max");
  EXPECT_EQ(decode_scale("{}").error().context, "min");
  EXPECT_EQ(decode_pause("").value(), "");
  EXPECT_EQ(decode_pause(R"({"reason": "x"})").value(), "x");
}

TEST(Encode, SendsAnyBytes) {
  LogChunk chunk;
  chunk.bytes = "a\xff\n";
  EXPECT_EQ(Json::parse(encode(chunk)).at("text"), "a\xef\xbf\xbd\n");
  std::string cut = "ab\xc3";
  EXPECT_EQ(drop_broken_end(cut), 1u);
  EXPECT_EQ(cut, "ab");
  std::string whole = "a\xc3\xa4";
  EXPECT_EQ(drop_broken_end(whole), 0u);
}

TEST(EventReader, TakesEventsInAnyPieces) {
  const std::string text = ": hello\n\nid: 1\r\nevent: a\ndata: x\ndata: y\r\n\r\ndata:z\n\n";
  for (std::size_t size = 1; size < text.size(); ++size) {
    std::string seen;
    EventReader reader;
    for (std::size_t at = 0; at < text.size(); at += size) {
      reader.feed(std::string_view(text).substr(at, size), [&](const StreamEvent& e) {
        seen += e.id + "/" + e.name + "/" + e.data + ";";
        return Next::more;
      });
    }
    EXPECT_EQ(seen, "1/a/x\ny;//z;") << size;
  }
}

}  // namespace
}  // namespace neap::api
