#include "engine/engine.h"

#include <gtest/gtest.h>

#include <chrono>

#include "engine/ladder.h"
#include "engine/testing/scripted_engine.h"

namespace neap::engine {
namespace {

using std::chrono::milliseconds;
using Asked = std::vector<std::string>;

constexpr Patience short_patience{milliseconds(200), milliseconds(200), milliseconds(200),
                                  milliseconds(200)};

TEST(EngineKind, NamesThereAndBack) {
  for (const Kind kind : kinds) EXPECT_EQ(kind_named(name_of(kind)), kind);
  EXPECT_FALSE(kind_named("tgi").has_value());
  EXPECT_EQ(kind_of_launch(R"({"command": ["a"], "engine": "vllm"})"), Kind::vllm);
  for (const char* text : {"", "[]", "{}", R"({"engine": 3})", R"({"engine": "tgi"})"}) {
    EXPECT_EQ(kind_of_launch(text), Kind::none) << text;
  }
}

TEST(EngineKind, WhatIsUnsupportedIsSaidAndNeverAskedC3) {
  ScriptedEngine server;
  for (const Kind kind : kinds) {
    const Engine engine(kind, server.port(), short_patience);
    const auto refused = [&](Call call, const auto& result) {
      const Support support = support_of(kind, call);
      EXPECT_FALSE(support.how.empty());
      if (support.there) return;
      ASSERT_FALSE(result) << name_of(kind) << " " << name_of(call);
      EXPECT_EQ(result.error().code, ErrorCode::refused);
      EXPECT_EQ(result.error().message.find("unsupported: "), 0U) << result.error().message;
    };
    const std::size_t before = server.asked().size();
    int there = 0;
    for (const Call call : calls) there += support_of(kind, call).there ? 1 : 0;
    refused(Call::sleep, engine.sleep(SleepLevel::offload));
    refused(Call::wake, engine.wake(SleepLevel::offload));
    refused(Call::shrink_kv, engine.shrink_kv(0));
    refused(Call::offload_kv, engine.offload_kv(0));
    refused(Call::drop_kv, engine.drop_kv(0));
    refused(Call::load_adapter, engine.load_adapter("a", "/a"));
    refused(Call::load_model, engine.load_model("a"));
    EXPECT_EQ(server.asked().size() - before, static_cast<std::size_t>(there)) << name_of(kind);
  }
}

TEST(EngineVllm, SleepsAndWakesAtBothLevelsC3) {
  ScriptedEngine server;
  const Engine engine(Kind::vllm, server.port(), short_patience);
  for (const char* path :
       {"POST /sleep?level=1", "POST /sleep?level=2", "POST /wake_up", "POST /wake_up?tags=weights",
        "POST /wake_up?tags=kv_cache", "POST /collective_rpc"}) {
    server.answers(path, 200, "");
  }
  EXPECT_TRUE(engine.sleep(SleepLevel::offload));
  EXPECT_TRUE(engine.wake(SleepLevel::offload));
  EXPECT_TRUE(engine.sleep(SleepLevel::discard));
  EXPECT_TRUE(engine.wake(SleepLevel::discard));
  EXPECT_EQ(server.asked(), (Asked{"POST /sleep?level=1", "POST /wake_up", "POST /sleep?level=2",
                                   "POST /wake_up?tags=weights",
                                   R"(POST /collective_rpc {"method": "reload_weights"})",
                                   "POST /wake_up?tags=kv_cache"}));
}

TEST(EngineVllm, WithoutItsOptionsItIsRefusedNotEmulatedC3) {
  ScriptedEngine server;
  const Engine engine(Kind::vllm, server.port(), short_patience);
  const auto slept = engine.sleep(SleepLevel::offload);
  ASSERT_FALSE(slept);
  EXPECT_EQ(slept.error().code, ErrorCode::refused);
  EXPECT_EQ(slept.error().message,
            "vllm: POST /sleep?level=1: status 404; it was started without this call");
}

TEST(EngineVllm, HealthNamesTheModelsAndSleep) {
  ScriptedEngine server;
  const Engine engine(Kind::vllm, server.port(), short_patience);
  server.answers("GET /health", 200, "");
  server.answers("GET /v1/models", 200, R"({"data": [{"id": "llama-3"}, {"id": "adapter"}]})");
  server.answers("GET /is_sleeping", 200, R"({"is_sleeping": false})");
  auto health = engine.health();
  ASSERT_TRUE(health);
  EXPECT_TRUE(health->ready);
  EXPECT_EQ(health->models, (Asked{"llama-3", "adapter"}));
  EXPECT_EQ(health->sleeping, false);
  server.answers("GET /is_sleeping", 200, R"({"is_sleeping": true})");
  EXPECT_FALSE(engine.health()->ready);
  server.answers("GET /health", 503, "");
  EXPECT_FALSE(engine.health()->ready);
  server.refuses(2);
  EXPECT_EQ(engine.health().error().code, ErrorCode::unavailable);
}

TEST(EngineVllm, AdapterNamesAreQuoted) {
  ScriptedEngine server;
  server.answers("POST /v1/load_lora_adapter", 200, "");
  const Engine engine(Kind::vllm, server.port(), short_patience);
  EXPECT_TRUE(engine.load_adapter("a\"b", "/models/\\x"));
  EXPECT_EQ(server.asked().back(),
            R"(POST /v1/load_lora_adapter {"lora_name": "a\"b", "lora_path": "/models/\\x"})");
}

TEST(EngineLlamaCpp, IdleSlotsAreSavedAndErasedC3) {
  ScriptedEngine server;
  const Engine engine(Kind::llama_cpp, server.port(), short_patience);
  server.answers("GET /slots", 200, R"([{"id": 0}, {"id": 1, "is_processing": true}, {"id": 2}])");
  for (const char* path : {"POST /slots/2?action=save", "POST /slots/2?action=erase"}) {
    server.answers(path, 200, "{}");
  }
  EXPECT_TRUE(engine.offload_kv(1));
  EXPECT_EQ(server.asked(),
            (Asked{"GET /slots", R"(POST /slots/2?action=save {"filename": "slot-2.bin"})",
                   "POST /slots/2?action=erase"}));
  // One that took a request since it was listed keeps what it has.
  server.answers("POST /slots/0?action=erase", 409, R"({"error": {"message": "in use"}})");
  EXPECT_TRUE(engine.drop_kv(0));
  server.answers("POST /slots/0?action=erase", 501, R"({"error": "no slots here"})");
  const auto dropped = engine.drop_kv(0);
  ASSERT_FALSE(dropped);
  EXPECT_EQ(dropped.error().code, ErrorCode::refused);
}

TEST(EngineNeap, KvCacheTellsItsBytesC3) {
  ScriptedEngine server;
  const Engine engine(Kind::neap, server.port(), short_patience);
  server.answers("POST /kv_cache", 200, R"({"slots": 1, "device_bytes": 4096, "host_bytes": 0})");
  const auto memory = engine.shrink_kv(1);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->device, 4096);
  EXPECT_EQ(memory->host, 0);
  EXPECT_EQ(server.asked().back(), R"(POST /kv_cache {"action": "shrink", "slots": 1})");
}

TEST(EngineLadder, ShrinksOffloadsDropsInThatOrderThenSleepsC3) {
  ScriptedEngine server;
  server.answers("POST /kv_cache", 200, R"({"device_bytes": 7})");
  server.answers("POST /sleep?level=2", 200, R"({"device_bytes": 0})");
  const Engine engine(Kind::neap, server.port(), short_patience);
  const auto done = give_memory_back(engine, Rung::shrink, Rung::sleep);
  EXPECT_EQ(server.asked(),
            (Asked{R"(POST /kv_cache {"action": "shrink", "slots": 1})",
                   R"(POST /kv_cache {"action": "offload", "slots": 0})",
                   R"(POST /kv_cache {"action": "drop", "slots": 0})", "POST /sleep?level=2"}));
  EXPECT_EQ(
      text_of(done),
      "shrink: done, 7 bytes on the device; offload: done, 7 bytes on the device; drop: done, "
      "7 bytes on the device; sleep: done, 0 bytes on the device");
}

TEST(EngineLadder, PassesOverWhatIsMissingAndStopsAtSilenceC3) {
  ScriptedEngine server;
  server.answers("POST /reset_prefix_cache", 200, "");
  const auto done = give_memory_back(Engine(Kind::vllm, server.port(), short_patience),
                                     Rung::shrink, Rung::sleep);
  ASSERT_EQ(done.size(), 4U);
  EXPECT_TRUE(done[2].outcome);
  EXPECT_EQ(server.asked(), (Asked{"POST /reset_prefix_cache", "POST /sleep?level=2"}));

  ScriptedEngine silent;
  silent.hangs("POST /kv_cache");
  const auto begin = std::chrono::steady_clock::now();
  const auto tried = give_memory_back(Engine(Kind::neap, silent.port(), short_patience),
                                      Rung::shrink, Rung::sleep);
  EXPECT_EQ(tried.size(), 1U);
  EXPECT_EQ(tried[0].outcome.error().code, ErrorCode::unavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(EngineLevel, ByHowLongItIsExpectedToSleepC3) {
  EXPECT_EQ(level_for(seconds(59), minutes(1)), SleepLevel::offload);
  EXPECT_EQ(level_for(minutes(1), minutes(1)), SleepLevel::discard);
}

TEST(EngineCall, TriesAgainWhereNobodyAnsweredAndNotForEver) {
  ScriptedEngine server;
  server.answers("GET /is_sleeping", 200, R"({"is_sleeping": true})");
  const Engine engine(Kind::neap, server.port(), short_patience);
  server.refuses(1);
  EXPECT_EQ(engine.is_sleeping().value_or(false), true);
  server.refuses(2);
  EXPECT_EQ(engine.is_sleeping().error().code, ErrorCode::unavailable);
}

TEST(EngineCall, AnswersAreBounded) {
  ScriptedEngine server;
  server.answers("GET /is_sleeping", 200, std::string(1 << 20, 'x'));
  const Engine engine(Kind::neap, server.port(), {});
  EXPECT_EQ(engine.is_sleeping().error().code, ErrorCode::too_large);
  server.answers("GET /is_sleeping", 200, std::string(5000, '['));
  EXPECT_EQ(engine.is_sleeping().error().code, ErrorCode::unavailable);
}

TEST(EngineCall, ReadsOnlyWholeAnswers) {
  const auto status = [](std::string_view text) {
    const auto answer = parse_answer(text);
    return answer ? answer->status : 0;
  };
  EXPECT_EQ(status("HTTP/1.0 200 OK\r\n\r\n"), 200);
  EXPECT_EQ(status("HTTP/1.1 503\r\nContent-Length: 2\r\n\r\nok"), 503);
  EXPECT_EQ(parse_answer("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokmore")->body, "ok");
  for (const char* text :
       {"", "HTTP/1.0 200 OK", "HTTP/1.0 2x0 OK\r\n\r\n", "HTTP/1.0 100 OK\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "ICY 200 OK\r\n\r\n"}) {
    EXPECT_EQ(status(text), 0) << text;
  }
}

TEST(EngineAnswers, NamesAndFaultsCanBePrinted) {
  EXPECT_EQ(*read_models("{\"data\": [{\"id\": \"a\\u001b[31m\"}, {\"id\": 3}, 7]}"),
            (Asked{"a?[31m"}));
  EXPECT_FALSE(read_models("[]"));
  EXPECT_EQ(read_fault(R"({"error": {"message": "no"}})"), "no");
  EXPECT_EQ(read_fault(R"({"detail": "gone"})"), "gone");
  EXPECT_EQ(read_fault("plain\nsecond"), "plain");
  EXPECT_EQ(read_fault(std::string(1000, 'x')).size(), 200U);
  EXPECT_FALSE(read_memory(R"({"device_bytes": -4})").device.has_value());
  EXPECT_FALSE(read_memory(R"({"device_bytes": 18446744073709551615})").device.has_value());
  EXPECT_EQ(read_slots(R"([{"id": 99999}, {"id": -1}, {"id": 2}])")->size(), 1U);
}

}  // namespace
}  // namespace neap::engine
