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

}  // namespace
}  // namespace neap::load
