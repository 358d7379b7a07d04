// Any bytes as recorded traffic, and as the words that pick from it: slots within their limits and
// a guard within the pool, or an error with text. The first byte says how long a slot is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cli/guard.h"
#include "simulate/guard/backtest.h"
#include "simulate/run/traffic.h"
#include "tests/fuzz/memory_file.h"

namespace {

using namespace neap;

constexpr std::size_t most_slots_tested = 20'000;

void check(const Error& error) {
  if (error.message.empty()) std::abort();
}

void hold_against(const whatif::Traffic& traffic, std::int32_t slot_seconds) {
  simulate::BacktestSpec spec{{{64, slot_seconds, 600, 50}, 5}, {}, {}};
  auto offered = traffic.offered;
  if (offered.size() > most_slots_tested) offered.resize(most_slots_tested);
  for (const auto& slot : offered) {
    if (slot && *slot < 0) std::abort();
  }
  const auto demand = simulate::scaled_demand(spec.rule.guard, offered, 64);
  const auto result = simulate::backtest(spec, demand);
  if (!result) return check(result.error());
  for (const lead_time::Claim& claim : result->claims) {
    if (claim.guard < 1 || claim.buffer < 0 || claim.guard + claim.buffer > 64) std::abort();
  }
}

void read_words(const std::string& text) {
  const auto slots = cli::parse_slots("--score", text);
  if (!slots) check(slots.error());
  if (slots && (slots->first < 0 || slots->last < slots->first)) std::abort();
  const auto promotion = cli::parse_promotion(text, 600);
  if (!promotion) check(promotion.error());
  if (promotion && !lead_time::check(*promotion)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr std::int32_t slots[] = {60, 300, 600, 1'800, 3'600};
  const std::int32_t slot_seconds = slots[data[0] % 5];
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  read_words(text);
  const fuzz::MemoryFile file(text);
  const auto traffic =
      whatif::read_traffic(file.path(), whatif::Format::automatic, seconds(slot_seconds));
  if (!traffic) {
    check(traffic.error());
    return 0;
  }
  hold_against(*traffic, slot_seconds);
  return 0;
}
