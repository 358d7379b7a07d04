#include "backend/local/contract.h"

#include <gtest/gtest.h>

namespace neap::local {
namespace {

template <class Message>
Message parsed(std::string_view line) {
  auto message = parse_contract_line(line);
  if (!message) throw std::runtime_error(message.error().message);
  return std::get<Message>(*message);
}

TEST(Contract, ReadsWhatTheSdkWrites) {
  const auto hello = parsed<HelloMessage>(
      R"({"type":"hello","version":1,"capabilities":["on_demand","boundary"]})");
  EXPECT_EQ(hello.capabilities, (std::vector<std::string>{"on_demand", "boundary"}));
  const auto step = parsed<StepMessage>(R"({"type":"step","n":7,"count":3,"seconds":0.25})");
  EXPECT_EQ(step.n, 7);
  EXPECT_EQ(step.count, 3);
  EXPECT_EQ(step.busy, milliseconds(250));
  const auto checkpoint = parsed<CheckpointMessage>(
      R"({"type":"checkpoint","step":7,"path":"/c/7","bytes":10,"seconds":1.5,)"
      R"("captured_us":123,"stall_seconds":0.1})");
  EXPECT_EQ(checkpoint.path, "/c/7");
  EXPECT_EQ(checkpoint.save, milliseconds(1'500));
  EXPECT_EQ(checkpoint.captured, Time(123));
  EXPECT_EQ(checkpoint.stall, milliseconds(100));
  EXPECT_EQ(parsed<YieldingMessage>(R"({"type":"yielding","step":8})").step, 8);
}

TEST(Contract, FieldsOfTheDesignAloneAreEnough) {
  EXPECT_EQ(parsed<StepMessage>(R"({"type":"step","n":1,"seconds":1})").count, 1);
  const auto checkpoint = parsed<CheckpointMessage>(
      R"({"type":"checkpoint","step":1,"path":"/c","bytes":0,"seconds":0,"of a newer sdk":[]})");
  EXPECT_FALSE(checkpoint.captured.has_value());
}

TEST(Contract, FaultsSayWhatWasExpected) {
  const struct {
    std::string line;
    std::string message;
  } cases[] = {
      {"garbage", "column 1: expected a value"},
      {"[]", "expected a JSON object"},
      {"{}", "type is missing: expected a string of at most 64 bytes"},
      {R"({"type":"stop"})", "type: expected hello, step, checkpoint or yielding, not 'stop'"},
      {R"({"type":"step","n":-1,"seconds":1})", "n: expected an integer from 0 to 1000000000000"},
      {R"({"type":"step","n":1,"seconds":-1})",
       "seconds: expected seconds, a number from 0 to 1000000000"},
      {R"({"type":"step","n":1,"count":0,"seconds":1})",
       "count: expected an integer from 1 to 1000000"},
      {R"({"type":"checkpoint","step":1,"path":"","bytes":0,"seconds":0})",
       "path: expected an absolute path"},
      {R"({"type":"checkpoint","step":1,"path":"c/1","bytes":0,"seconds":0})",
       "path: expected an absolute path"},
      {R"({"type":"checkpoint","step":1,"path":"/c\u0000/1","bytes":0,"seconds":0})",
       "path: expected an absolute path"},
      {std::string(65'537, 'x'), "longer than 65536 bytes"},
  };
  for (const auto& one : cases) {
    const auto message = parse_contract_line(one.line);
    ASSERT_FALSE(message) << one.line;
    EXPECT_EQ(message.error().message, one.message);
  }
}

TEST(Contract, RequestsAreAsTheSdkReadsThem) {
  EXPECT_EQ(yield_request(YieldAt::boundary, Time(5)),
            "{\"type\":\"yield\",\"at\":\"boundary\",\"by\":5}\n");
  EXPECT_EQ(yield_request(YieldAt::now, Time::never()), "{\"type\":\"yield\",\"at\":\"now\"}\n");
  EXPECT_EQ(checkpoint_request(Time(6)), "{\"type\":\"checkpoint\",\"by\":6}\n");
  EXPECT_EQ(cancel_request(), "{\"type\":\"cancel\"}\n");
}

std::vector<std::string> split(const std::string& bytes, std::size_t chunk, std::size_t limit) {
  LineSplitter splitter(limit);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < bytes.size(); at += chunk) {
    splitter.feed(std::string_view(bytes).substr(at, chunk));
    while (const auto line = splitter.next()) {
      lines.push_back(std::to_string(line->number) + ":" +
                      (line->too_long ? "TOO LONG" : std::string(line->text)));
    }
  }
  return lines;
}

TEST(LineSplitter, SameLinesHoweverTheyArrive) {
  const std::string bytes = "a\n\n12345\n123456\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\nlast\nopen";
  const std::vector<std::string> expected{"1:a",        "2:",         "3:12345",
                                          "4:TOO LONG", "5:TOO LONG", "6:last"};
  for (std::size_t chunk = 1; chunk <= bytes.size(); ++chunk) {
    EXPECT_EQ(split(bytes, chunk, 5), expected) << chunk;
  }
}

}  // namespace
}  // namespace neap::local
