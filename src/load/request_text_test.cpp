// E2: the bytes of requests; nothing that is given can break one apart.
#include "load/request_text.h"

#include <gtest/gtest.h>

namespace neap::load {
namespace {

LoadOptions options() {
  LoadOptions made{.curve = *RateCurve::constant(1, seconds(1))};
  made.target.port = 80;
  return made;
}

TEST(RequestText, WhatDiffersFromOneToTheNext) {
  LoadOptions o = options();
  o.target.body = R"({"n": {n}, "in": "{input_text}", "max": {output_tokens}})";
  o.target.headers = {"Authorization: Bearer k"};
  o.classes = {{"high", 1}, {"low", 1}};
  o.request_ids = "run";
  const auto text = RequestText::make(o);
  ASSERT_TRUE(text) << to_string(text.error());
  const std::string body = R"({"n": 7, "in": "tide tide tide", "max": 5})";
  EXPECT_EQ(text->of(7, 1, {.input_tokens = 3, .output_tokens = 5}),
            "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            "Accept: text/event-stream\r\nContent-Type: application/json\r\n"
            "Authorization: Bearer k\r\nX-Priority: low\r\nX-Request-Id: run-7\r\n"
            "Content-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
}

TEST(RequestText, OwnHeadersComeInsteadOfUsualOnes) {
  LoadOptions o = options();
  o.keep_idle = seconds(1);
  o.target.headers = {"accept: */*"};
  EXPECT_EQ(RequestText::make(o)->of(1, 0, {}),
            "GET /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\naccept: */*\r\n\r\n");
}

TEST(RequestText, G5_NothingBreaksARequestApart) {
  const auto refused = [](const std::function<void(LoadOptions&)>& spoil) {
    LoadOptions o = options();
    spoil(o);
    const auto made = RequestText::make(o);
    return made ? std::string("made") : made.error().context;
  };
  EXPECT_EQ(refused([](auto& o) { o.target.path = "/a b"; }), "path");
  EXPECT_EQ(refused([](auto& o) { o.target.path = "a"; }), "path");
  EXPECT_EQ(refused([](auto& o) { o.target.headers = {"A: b\r\nEvil: c"}; }), "header");
  EXPECT_EQ(refused([](auto& o) { o.target.headers = {"no colon"}; }), "header");
  EXPECT_EQ(refused([](auto& o) { o.target.body.assign((1U << 20) + 1, 'x'); }), "body");
  EXPECT_EQ(refused([](auto& o) { o.classes = {{"a b", 1}}; }), "classes");
  EXPECT_EQ(refused([](auto& o) { o.classes = {{"a", 0}}; }), "classes");
  EXPECT_EQ(refused([](auto& o) {
              o.classes = {{"a", 1}};
              o.class_header = "X:";
            }),
            "class_header");
  EXPECT_EQ(refused([](auto& o) { o.request_ids = "a\n"; }), "request_ids");
}

}  // namespace
}  // namespace neap::load
