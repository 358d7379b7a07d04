// Totals of milli-GPU·µs: a day of 80,000 devices nearly fills 63 bits, so these have 128.
// Decimal strings wherever they leave the program.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/model/result.h"

namespace neap::ledger {

class Amount {
 public:
  __extension__ using Wide = __int128;

  constexpr Amount() = default;
  constexpr explicit Amount(Wide value) : value_(value) {}
  // A rate times a time; exact for any two 64-bit numbers.
  static constexpr Amount product(std::int64_t a, std::int64_t b) { return Amount(Wide{a} * b); }
  [[nodiscard]] static Result<Amount> parse(std::string_view decimal);
  static constexpr Amount from_halves(std::int64_t high, std::uint64_t low) {
    return Amount(Wide{high} * (Wide{1} << 64) + Wide{low});
  }

  constexpr auto operator<=>(const Amount&) const = default;
  constexpr Amount operator+(Amount o) const { return Amount(value_ + o.value_); }
  constexpr Amount operator-(Amount o) const { return Amount(value_ - o.value_); }
  constexpr Amount& operator+=(Amount o) {
    value_ += o.value_;
    return *this;
  }
  constexpr Amount& operator-=(Amount o) {
    value_ -= o.value_;
    return *this;
  }

  [[nodiscard]] constexpr Wide value() const { return value_; }
  [[nodiscard]] constexpr std::int64_t high() const {
    return static_cast<std::int64_t>(value_ >> 64);
  }
  [[nodiscard]] constexpr std::uint64_t low() const { return static_cast<std::uint64_t>(value_); }
  [[nodiscard]] std::string to_string() const;

 private:
  Wide value_ = 0;
};

// floor(a · b / c) without overflow for a, b >= 0 and c > 0, saturated to 64 bits.
[[nodiscard]] std::int64_t scaled(std::int64_t a, Amount::Wide b, Amount::Wide c);

}  // namespace neap::ledger
