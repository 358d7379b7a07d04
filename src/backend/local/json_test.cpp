#include "backend/local/json.h"

#include <gtest/gtest.h>

namespace neap::local {
namespace {

TEST(LocalJson, ReadsWhatItWrites) {
  const std::string line = JsonObject()
                               .add("text", std::string_view("a\"\\\n\x01\xc3\xa9"))
                               .add("least", INT64_MIN)
                               .add("list", std::vector<std::string>{"x", ""})
                               .add_integers("numbers", {1, -2})
                               .line();
  const auto json = parse_json(line);
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->find("text")->text, "a\"\\\n\x01\xc3\xa9");
  EXPECT_EQ(json->find("least")->integer, INT64_MIN);
  EXPECT_EQ(json->find("list")->items.size(), 2U);
  EXPECT_EQ(json->find("numbers")->items[1].integer, -2);
}

TEST(LocalJson, BytesThatAreNotUtf8AreReplacedWhenWritten) {
  const auto json = parse_json(JsonObject().add("path", std::string_view("a\xff/b")).line());
  ASSERT_TRUE(json);
  EXPECT_EQ(json->find("path")->text, "a\xef\xbf\xbd/b");
}

TEST(LocalJson, RefusesWithTheColumn) {
  const struct {
    std::string text;
    std::string message;
  } cases[] = {
      {"", "column 1: expected a value, found the end of the line"},
      {"{\"a\":1} x", "column 9: expected the end of the line"},
      {"{\"a\":1,\"a\":2}", "column 11: a field stands twice"},
      {"{\"a\":01}", "column 7: expected ',' or '}'"},
      {"{\"a\":1.}", "column 8: expected a digit after the point"},
      {"{\"a\":1e999}", "column 11: a number out of range"},
      {"{\"a\":9223372036854775808}", "column 25: an integer beyond 64 bits"},
      {"{\"a\":NaN}", "column 6: expected a value"},
      {"{\"a\":\"\xff\"}", "column 7: invalid UTF-8"},
      {"{\"a\":\"\\ud800\"}", "column 13: a lone surrogate"},
      {"{\"a\":\"\\x\"}", "column 8: unknown escape"},
      {"{\"a\":\"b", "column 8: a string without its closing quote"},
      {"{a:1}", "column 2: expected a field name in quotes"},
      {"[[[[[[[[[1]]]]]]]]]", "column 9: nested too deeply"},
      {std::string("{\"a\":\"\0\"}", 9), "column 7: control character in a string"},
  };
  for (const auto& one : cases) {
    const auto json = parse_json(one.text);
    ASSERT_FALSE(json) << one.text;
    EXPECT_EQ(json.error().message, one.message) << one.text;
  }
}

TEST(LocalJson, SurrogatePairsAndEscapes) {
  const auto json = parse_json(R"("\u00e9\ud83d\ude00\/\t")");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->text, "\xc3\xa9\xf0\x9f\x98\x80/\t");
}

TEST(LocalJson, FieldErrorsNameTheFieldAndWhatWasExpected) {
  const auto json = parse_json(R"({"n":"1","s":-1,"list":[1]})");
  ASSERT_TRUE(json);
  const JsonFields fields(*json, "service.");
  EXPECT_EQ(fields.integer("n", 1, 9).error().message,
            "service.n: expected an integer from 1 to 9");
  EXPECT_EQ(fields.integer("m", 1, 9).error().message,
            "service.m is missing: expected an integer from 1 to 9");
  EXPECT_FALSE(fields.seconds_us("s"));
  EXPECT_FALSE(fields.strings("list", 4, 4));
  EXPECT_EQ(fields.unknown({"n", "s"}), "service.list");
}

}  // namespace
}  // namespace neap::local
