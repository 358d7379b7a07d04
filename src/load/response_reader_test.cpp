#include "load/response_reader.h"

#include <gtest/gtest.h>

namespace neap::load {
namespace {

using State = ResponseReader::State;

const std::string stream =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    "transfer-encoding: chunked\r\n\r\n"
    "9\r\ndata: a\n\n\r\n"
    "f;x=y\r\n: hi\n\ndata: b\n\n\r\n"
    "8\r\ndata: c\n\r\n1\r\n\n\r\n"
    "7\r\ndata:\n\n\r\n"
    "e\r\ndata: [DONE]\n\n\r\n"
    "0\r\nX-Trailer: 1\r\n\r\n";

TEST(ResponseReader, CountsEventsHoweverTheyAreCut) {
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    ResponseReader reader;
    std::int32_t events = 0;
    int firsts = 0;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      ASSERT_EQ(reader.state(), State::reading);
      const auto progress = reader.feed(std::string_view(stream).substr(at, piece));
      events += progress.events;
      firsts += progress.first_body_byte ? 1 : 0;
      EXPECT_EQ(firsts > 0, events > 0);
    }
    EXPECT_EQ(reader.state(), State::complete) << "pieces of " << piece;
    EXPECT_EQ(reader.status(), 200);
    EXPECT_EQ(events, 3);
    EXPECT_EQ(firsts, 1);
  }
}

TEST(ResponseReader, OtherBodies) {
  ResponseReader sized;
  EXPECT_FALSE(sized.feed("HTTP/1.1 503 Busy\r\nContent-Length: 3\r\n\r\n").first_body_byte);
  EXPECT_TRUE(sized.feed("ab").first_body_byte);
  EXPECT_EQ(sized.state(), State::reading);
  EXPECT_FALSE(sized.feed("c").first_body_byte);
  EXPECT_EQ(sized.state(), State::complete);
  EXPECT_EQ(sized.status(), 503);

  ResponseReader to_end;
  EXPECT_TRUE(to_end.feed("HTTP/1.0 200 OK\r\n\r\nabc").first_body_byte);
  EXPECT_EQ(to_end.state(), State::reading);
  to_end.end();
  EXPECT_EQ(to_end.state(), State::complete);

  ResponseReader none;
  (void)none.feed("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(none.state(), State::complete);
  EXPECT_EQ(none.status(), 204);
}

TEST(ResponseReader, ACutResponseIsNotComplete) {
  for (std::size_t size = 0; size < stream.size(); ++size) {
    ResponseReader reader;
    (void)reader.feed(std::string_view(stream).substr(0, size));
    reader.end();
    EXPECT_EQ(reader.state(), State::malformed) << size;
  }
}

TEST(ResponseReader, GarbageIsMalformed) {
  for (const char* text :
       {"\n", "garbage\r\n", "HTTP/1.1 abc OK\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"}) {
    ResponseReader reader;
    (void)reader.feed(text);
    EXPECT_EQ(reader.state(), State::malformed) << text;
  }
  ResponseReader endless;
  for (int i = 0; i < 20; ++i) (void)endless.feed("HTTP/1.1 200 " + std::string(10'000, 'x'));
  EXPECT_EQ(endless.state(), State::malformed);
}

TEST(ResponseReader, WhetherTheConnectionIsOfMoreUse) {
  const auto reusable = [](std::string_view text) {
    ResponseReader reader;
    static_cast<void>(reader.feed(text));
    reader.end();
    return reader.reusable();
  };
  EXPECT_TRUE(reusable("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  EXPECT_TRUE(reusable("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
  EXPECT_FALSE(reusable("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok!"));
  EXPECT_FALSE(reusable("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_FALSE(reusable("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_FALSE(reusable("HTTP/1.1 200 OK\r\n\r\nto the end"));
}

TEST(ResponseReader, RetryAfterAndTokens) {
  ResponseReader reader;
  static_cast<void>(
      reader.feed("HTTP/1.1 429 Busy\r\nretry-after: 12\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(reader.retry_after(), 12);
  ResponseReader date;
  static_cast<void>(
      date.feed("HTTP/1.1 429 Busy\r\nRetry-After: Fri, 31 Dec\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_FALSE(date.retry_after());
  ResponseReader tokens;
  static_cast<void>(tokens.feed("HTTP/1.1 200 OK\r\n\r\n" + std::string(20000, 'x')));
  EXPECT_FALSE(tokens.completion_tokens());
  static_cast<void>(tokens.feed("{\"usage\": {\"completion_tokens\": 4"));
  EXPECT_FALSE(tokens.completion_tokens());  // it may go on
  static_cast<void>(tokens.feed("2}}"));
  EXPECT_EQ(tokens.completion_tokens(), 42);
}

}  // namespace
}  // namespace neap::load
