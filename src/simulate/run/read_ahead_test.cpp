#include "simulate/run/read_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

namespace neap::whatif {
namespace {

// Loads named by their number; before each third of them a row is passed over.
class Numbers : public IncomingStream {
 public:
  Numbers(std::int64_t count, bool fails, std::atomic<std::int64_t>& read)
      : count_(count), fails_(fails), read_(read) {}
  [[nodiscard]] Result<bool> next(Incoming& into) override {
    const std::int64_t number = read_++;
    if (number >= count_) {
      if (fails_) return fail(ErrorCode::invalid_argument, "a bad row", "file:9");
      return false;
    }
    into = {Time(number), LoadIncoming{std::to_string(number), number}};
    passed_over_ += number % 3 == 0 ? 1 : 0;
    return true;
  }
  [[nodiscard]] std::optional<std::int64_t> total() const override { return count_; }
  [[nodiscard]] std::int64_t passed_over() const override { return passed_over_; }

 private:
  std::int64_t count_;
  bool fails_;
  std::atomic<std::int64_t>& read_;
  std::int64_t passed_over_ = 0;
};

TEST(ReadAhead, GivesTheSameInTheSameOrder) {
  for (const std::int64_t count : {0, 1, 255, 256, 257, 10'000}) {
    std::atomic<std::int64_t> read = 0;
    ReadAhead stream(std::make_unique<Numbers>(count, false, read));
    EXPECT_EQ(stream.total(), count);
    Incoming incoming;
    std::int64_t passed_over = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto more = stream.next(incoming);
      ASSERT_TRUE(more && *more) << i;
      EXPECT_EQ(incoming.at, Time(i));
      EXPECT_EQ(std::get<LoadIncoming>(incoming.what).service, std::to_string(i));
      passed_over += i % 3 == 0 ? 1 : 0;
      ASSERT_EQ(stream.passed_over(), passed_over) << "of what was given, not of what was read";
    }
    for (int again = 0; again < 2; ++again) {
      const auto more = stream.next(incoming);
      ASSERT_TRUE(more) << to_string(more.error());
      EXPECT_FALSE(*more);
    }
  }
}

TEST(ReadAhead, TheErrorComesAfterTheRowsBeforeIt) {
  std::atomic<std::int64_t> read = 0;
  ReadAhead stream(std::make_unique<Numbers>(300, true, read));
  Incoming incoming;
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(stream.next(incoming));
  const auto more = stream.next(incoming);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().context, "file:9");
}

TEST(ReadAhead, ReadsALittleAheadAndStopsWhenNobodyAsksAnyMore) {
  std::atomic<std::int64_t> read = 0;
  {
    ReadAhead stream(std::make_unique<Numbers>(1'000'000, false, read));
    Incoming incoming;
    ASSERT_TRUE(stream.next(incoming));
  }
  EXPECT_GE(read, 1);
  EXPECT_LE(read, 4'096) << "memory of what is read ahead is bounded";
}

}  // namespace
}  // namespace neap::whatif
