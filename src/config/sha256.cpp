#include "config/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace neap::config {

namespace {

constexpr std::size_t rounds = 64;
constexpr std::size_t block_bytes = 64;

// The first 32 bits of the fractional part of a root: exact, for the mantissa of a long double has
// more of them than the primes up to 311 need.
std::uint32_t fraction_bits(long double root) {
  return static_cast<std::uint32_t>((root - std::floor(root)) * 4294967296.0L);
}

struct Constants {
  std::array<std::uint32_t, 8> start{};
  std::array<std::uint32_t, rounds> round{};

  Constants() {
    std::size_t found = 0;
    for (unsigned n = 2; found < rounds; ++n) {
      bool prime = true;
      for (unsigned d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
      if (!prime) continue;
      if (found < start.size())
        start[found] = fraction_bits(std::sqrt(static_cast<long double>(n)));
      round[found++] = fraction_bits(std::cbrt(static_cast<long double>(n)));
    }
  }
};

void take_block(const unsigned char* block, const Constants& constants,
                std::array<std::uint32_t, 8>& state) {
  std::array<std::uint32_t, rounds> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = std::uint32_t{block[4 * i]} << 24U | std::uint32_t{block[4 * i + 1]} << 16U |
           std::uint32_t{block[4 * i + 2]} << 8U | std::uint32_t{block[4 * i + 3]};
  }
  for (std::size_t i = 16; i < rounds; ++i) {
    const std::uint32_t a = w[i - 15];
    const std::uint32_t b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3U) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10U);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                              ((e & f) ^ (~e & g)) + constants.round[i] + w[i];
    const std::uint32_t two =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const std::array<std::uint32_t, 8> sums{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < sums.size(); ++i) state[i] += sums[i];
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  static const Constants constants;
  std::string padded(bytes);
  padded += '\x80';
  while (padded.size() % block_bytes != block_bytes - 8) padded += '\0';
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(bits >> shift & 0xffU);
  std::array<std::uint32_t, 8> state = constants.start;
  for (std::size_t at = 0; at < padded.size(); at += block_bytes) {
    take_block(reinterpret_cast<const unsigned char*>(padded.data()) + at, constants, state);
  }
  std::string out;
  for (const std::uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[word >> shift & 0xfU];
  }
  return out;
}

}  // namespace neap::config
