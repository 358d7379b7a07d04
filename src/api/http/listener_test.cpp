#include "api/http/listener.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "api/http/router.h"
#include "api/testing/raw_connection.h"

namespace neap::api::http {
namespace {

using testing::RawConnection;
using testing::TemporaryFolder;

// A listener whose handler echoes the request, and opens a stream on /stream.
class ListenerTest : public ::testing::Test {
 protected:
  void begin(ListenerSettings settings = {}) {
    path_ = folder_.file("s");
    auto socket = listen_unix(path_, "");
    ASSERT_TRUE(socket) << to_string(socket.error());
    auto listener = Listener::start(std::move(*socket), std::move(settings),
                                    [this](const Request& request) { return answer(request); });
    ASSERT_TRUE(listener);
    listener_ = std::move(*listener);
  }

  Response answer(const Request& request) {
    if (request.path == "/stream") {
      Response response;
      response.stream = [this](std::shared_ptr<Stream> stream) {
        const std::lock_guard lock(mutex_);
        streams_.push_back(std::move(stream));
        came_.notify_all();
      };
      return response;
    }
    std::string text = request.method + " " + request.path + " [" + request.body + "]";
    for (const auto& [key, value] : request.query) text += " " + key + "=" + value;
    text += " uid=" + std::to_string(request.peer.uid) + " pid=" + std::to_string(request.peer.pid);
    return {200, text + "\n"};
  }

  std::shared_ptr<Stream> stream_number(std::size_t index) {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, std::chrono::seconds(5), [&] { return streams_.size() > index; });
    return index < streams_.size() ? streams_[index] : nullptr;
  }

  std::string ask(std::string_view bytes) {
    RawConnection connection(path_);
    EXPECT_TRUE(connection.send(bytes));
    return connection.read_to_end();
  }

  TemporaryFolder folder_;
  std::string path_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::unique_ptr<Listener> listener_;
};

std::string get(const std::string& target, const std::string& headers = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: neap\r\nConnection: close\r\n" + headers + "\r\n";
}

std::string post(const std::string& headers, const std::string& body) {
  return "POST /p HTTP/1.1\r\nHost: neap\r\nConnection: close\r\n" + headers + "\r\n" + body;
}

// G5: only the owner may open the socket, and the kernel says who asks.
TEST_F(ListenerTest, G5_SocketIsPrivateAndPeersAreKnown) {
  begin();
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const std::string answer = ask(get("/a%20b?x=1&y=%26"));
  EXPECT_NE(answer.find("HTTP/1.1 200"), std::string::npos) << answer;
  EXPECT_NE(answer.find("GET /a b [] x=1 y=& uid=" + std::to_string(::getuid()) +
                        " pid=" + std::to_string(::getpid())),
            std::string::npos)
      << answer;
}

TEST_F(ListenerTest, BodiesByLengthAndInChunks) {
  begin();
  EXPECT_NE(ask(post("Content-Length: 3\r\n", "abc")).find("POST /p [abc]"), std::string::npos);
  EXPECT_NE(ask(post("Transfer-Encoding: chunked\r\n", "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"))
                .find("POST /p [abc]"),
            std::string::npos);
}

TEST_F(ListenerTest, G5_RefusesDoubtfulFraming) {
  begin();
  const std::string both =
      ask(post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"));
  EXPECT_NE(both.find("HTTP/1.1 400"), std::string::npos) << both;
  EXPECT_EQ(both.find("[abc]"), std::string::npos);
  EXPECT_NE(ask(post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc")).find("HTTP/1.1 400"),
            std::string::npos);
  EXPECT_NE(ask(post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")).find("HTTP/1.1 400"),
            std::string::npos);
}

TEST_F(ListenerTest, G5_BoundsBodiesAndHeaders) {
  ListenerSettings settings;
  settings.body_max = 100;
  settings.header_max = 4096;
  begin(std::move(settings));
  EXPECT_NE(ask(post("Content-Length: 101\r\n", std::string(101, 'a'))).find("HTTP/1.1 413"),
            std::string::npos);
  EXPECT_NE(ask(post("Content-Length: 99999999999999\r\n", "")).find("HTTP/1.1 413"),
            std::string::npos);
  const std::string chunk = "78\r\n" + std::string(120, 'a') + "\r\n";
  EXPECT_NE(ask(post("Transfer-Encoding: chunked\r\n", chunk + "0\r\n\r\n")).find("HTTP/1.1 413"),
            std::string::npos);
  RawConnection endless(path_);
  endless.send(post("Transfer-Encoding: chunked\r\n", chunk + chunk + chunk + chunk));
  EXPECT_TRUE(endless.closed());
  const std::string long_header = ask(get("/", "X: " + std::string(8000, 'a') + "\r\n"));
  EXPECT_EQ(long_header.find("HTTP/1.1 200"), std::string::npos);
  EXPECT_NE(ask(get("/")).find("HTTP/1.1 200"), std::string::npos);
}

// Two readers of one connection must agree where a body ends (request smuggling).
TEST_F(ListenerTest, G5_RefusesLengthsThatOthersReadInAnotherWay) {
  begin();
  for (const char* headers :
       {"Content-Length : 2\r\n", "Content-Length\t: 2\r\n", "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\nContent-Length: 2\r\n",
        "Content-Length: 2\r\nTransfer-Encoding: chu\r\n nked\r\n", "Content-Length: 2, 2\r\n",
        "Content-Length: +2\r\n", "Content-Length: 0x2\r\n", "Transfer-Encoding: xchunked\r\n"}) {
    const std::string answer = ask(post(headers, "{}"));
    EXPECT_NE(answer.find("HTTP/1.1 400"), std::string::npos) << headers << answer;
    EXPECT_EQ(answer.find("HTTP/1.1 200"), std::string::npos) << headers << answer;
  }
}

TEST_F(ListenerTest, G5_HeadersThatTrickleInAreNotWaitedForForEver) {
  ListenerSettings settings;
  settings.idle_timeout = std::chrono::seconds(1);
  settings.upload_timeout = std::chrono::seconds(0);
  begin(std::move(settings));
  RawConnection slow(path_);
  ASSERT_TRUE(slow.send("GET / HTTP/1.1\r\nX: "));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  bool open = true;
  while (open && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the pace of a slow sender
    open = slow.send("x");
  }
  EXPECT_FALSE(open);
}

TEST_F(ListenerTest, StreamsFlowAndEnd) {
  begin();
  RawConnection reader(path_);
  reader.send(get("/stream"));
  const auto stream = stream_number(0);
  ASSERT_TRUE(stream);
  EXPECT_TRUE(stream->send(event_text("1", "state", "{}")));
  const std::string first = reader.read_until("data: {}\n\n");
  EXPECT_NE(first.find("Content-Type: text/event-stream"), std::string::npos) << first;
  EXPECT_NE(first.find("id: 1\nevent: state\ndata: {}\n\n"), std::string::npos) << first;
  stream->send(event_text("2", "", "x"));
  EXPECT_NE(reader.read_until("data: x").find("id: 2"), std::string::npos);
  stream->finish();
  EXPECT_TRUE(reader.closed());
  EXPECT_FALSE(stream->send("late"));
}

TEST_F(ListenerTest, HeartbeatReachesIdleStreams) {
  ListenerSettings settings;
  settings.heartbeat = std::chrono::milliseconds(20);
  begin(std::move(settings));
  RawConnection reader(path_);
  reader.send(get("/stream"));
  const std::string seen = reader.read_until(": still here\n\n");
  EXPECT_NE(seen.find(": still here"), std::string::npos);
}

TEST_F(ListenerTest, SlowReaderIsCutOff) {
  ListenerSettings settings;
  settings.stream_pending_max = 64 * 1024;
  begin(std::move(settings));
  RawConnection reader(path_);
  reader.send(get("/stream"));
  const auto stream = stream_number(0);
  ASSERT_TRUE(stream);
  const std::string block(16 * 1024, 'x');
  bool refused = false;
  for (int i = 0; i < 10'000 && !refused; ++i) refused = !stream->send(block);
  EXPECT_TRUE(refused);
  EXPECT_LE(stream->pending(), 64u * 1024);
  EXPECT_TRUE(reader.closed());
}

TEST_F(ListenerTest, StreamsAreBoundedAndGivenBack) {
  ListenerSettings settings;
  settings.streams_max = 2;
  settings.heartbeat = std::chrono::milliseconds(20);
  begin(std::move(settings));
  {
    RawConnection a(path_);
    RawConnection b(path_);
    a.send(get("/stream"));
    b.send(get("/stream"));
    ASSERT_TRUE(stream_number(1));
    EXPECT_NE(ask(get("/stream")).find("HTTP/1.1 429"), std::string::npos);
  }
  // Readers that have gone are found by the next heartbeat.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (listener_->streams() > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(listener_->streams(), 0u);
}

// Idle streams cost no thread, and stopping ends all of them.
TEST_F(ListenerTest, ManyIdleStreamsEndWithTheListener) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  // Both ends are in this process.
  const std::size_t count = files.rlim_cur >= 4096 ? 1000 : 200;
  begin();
  std::vector<std::unique_ptr<RawConnection>> readers;
  for (std::size_t i = 0; i < count; ++i) {
    readers.push_back(std::make_unique<RawConnection>(path_));
    ASSERT_TRUE(readers.back()->connected());
    readers.back()->send(get("/stream"));
    ASSERT_TRUE(stream_number(i));
  }
  for (const auto& stream : streams_) EXPECT_TRUE(stream->send(event_text("", "", "hello")));
  for (const auto& reader : readers) {
    EXPECT_NE(reader->read_until("hello").find("hello"), std::string::npos);
  }
  listener_.reset();
  for (const auto& reader : readers) EXPECT_TRUE(reader->closed());
  for (const auto& stream : streams_) EXPECT_FALSE(stream->send("late"));
}

TEST_F(ListenerTest, SecondDaemonIsRefusedAndAStaleSocketReplaced) {
  begin();
  const auto second = listen_unix(path_, "");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
  listener_.reset();  // the file stays, nobody answers
  EXPECT_TRUE(listen_unix(path_, ""));
  std::ofstream(folder_.file("plain")) << "x";
  EXPECT_EQ(listen_unix(folder_.file("plain"), "").error().code, ErrorCode::conflict);
  EXPECT_EQ(listen_unix(folder_.file(std::string(200, 'a')), "").error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(listen_unix(folder_.file("g"), "no-such-group-here").error().code,
            ErrorCode::not_found);
}

class TokenTest : public ::testing::Test {
 protected:
  Result<Token> read(const std::string& text, mode_t mode) {
    const std::string path = folder_.file("token");
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return Token::read(path);
  }
  TemporaryFolder folder_;
};

TEST_F(TokenTest, G5_OpensOnlyWithTheWholeToken) {
  const std::string secret(40, 's');
  const auto token = read(secret + "\n", 0600);
  ASSERT_TRUE(token);
  EXPECT_TRUE(token->opens("Bearer " + secret));
  for (const std::string& wrong : std::vector<std::string>{
           "", secret, "Bearer ", "Bearer " + secret + "s", "Bearer " + secret.substr(1),
           "bearer " + secret, "Bearer " + std::string(39, 's') + "t"}) {
    EXPECT_FALSE(token->opens(wrong)) << wrong;
  }
}

TEST_F(TokenTest, G5_RefusesOpenOrShortFilesWithoutShowingThem) {
  const std::string secret(40, 's');
  const auto readable = read(secret, 0640);
  ASSERT_FALSE(readable);
  EXPECT_EQ(readable.error().code, ErrorCode::permission_denied);
  const auto too_short = read("tiny", 0600);
  ASSERT_FALSE(too_short);
  EXPECT_EQ(too_short.error().message.find("tiny"), std::string::npos);
  EXPECT_FALSE(read(secret + " " + secret, 0600));
  EXPECT_EQ(Token::read(folder_.file("none")).error().code, ErrorCode::unavailable);
}

TEST(Router, NamesPartsAndTellsPathsFromMethods) {
  Router router;
  router.add("GET", "/v1/tasks/{task}/log", [](const Request& r) {
    return Response{200, r.parameters.at("task")};
  });
  router.add("POST", "/v1/pause", [](const Request&) { return Response{200, "paused"}; });
  const auto ask = [&](std::string method, std::string path) {
    Request request;
    request.method = std::move(method);
    request.path = std::move(path);
    return router.route(request);
  };
  EXPECT_EQ(ask("GET", "/v1/tasks/a-b.1/log").body, "a-b.1");
  EXPECT_EQ(ask("GET", "/v1/tasks//log").status, 404);
  EXPECT_EQ(ask("GET", "/v1/tasks/a/log/x").status, 404);
  EXPECT_EQ(ask("GET", "/v1/pause").status, 405);
  EXPECT_EQ(ask("GET", "").status, 404);
}

TEST(EventText, IsOneEvent) {
  EXPECT_EQ(event_text("7", "log", "{}"), "id: 7\nevent: log\ndata: {}\n\n");
  EXPECT_EQ(event_text("", "", "x"), "data: x\n\n");
}

}  // namespace
}  // namespace neap::api::http
