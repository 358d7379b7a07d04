#include "ledger/amount.h"

#include <algorithm>
#include <limits>

#include "core/model/check.h"

namespace neap::ledger {
namespace {

__extension__ using Unsigned = unsigned __int128;

constexpr Unsigned largest = (Unsigned{1} << 127) - 1;

}  // namespace

std::string Amount::to_string() const {
  const bool negative = value_ < 0;
  Unsigned rest =
      negative ? Unsigned{0} - static_cast<Unsigned>(value_) : static_cast<Unsigned>(value_);
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (negative) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

Result<Amount> Amount::parse(std::string_view decimal) {
  const bool negative = decimal.starts_with('-');
  const std::string_view digits = decimal.substr(negative ? 1 : 0);
  Unsigned value = 0;
  bool good = !digits.empty();
  for (const char c : digits) {
    good = good && c >= '0' && c <= '9';
    if (!good) break;
    const auto digit = static_cast<unsigned>(c - '0');
    good = value <= (largest - digit) / 10;
    value = value * 10 + digit;
  }
  if (!good) {
    return fail(ErrorCode::invalid_argument,
                "\"" + std::string(decimal.substr(0, 60)) + "\" is no whole number of 128 bits");
  }
  const auto amount = static_cast<Wide>(value);
  return Amount(negative ? -amount : amount);
}

std::int64_t scaled(std::int64_t a, Amount::Wide b, Amount::Wide c) {
  NEAP_CHECK(a >= 0 && b >= 0 && c > 0);
  // b / c apart from its remainder, so that no product passes 127 bits: the remainder is less
  // than c, and sums of times and counts stay below 2^64.
  const Amount::Wide whole = b / c;
  const Amount::Wide rest = b % c;
  constexpr Amount::Wide limit = std::numeric_limits<std::int64_t>::max();
  if (a != 0 && whole > limit / a) return static_cast<std::int64_t>(limit);
  return static_cast<std::int64_t>(std::min(limit, whole * a + rest * a / c));
}

}  // namespace neap::ledger
