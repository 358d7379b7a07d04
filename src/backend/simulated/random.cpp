#include "backend/simulated/random.h"

#include <bit>

#include "core/model/check.h"

namespace neap::simulated {

std::uint64_t split_mix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

Random::Random(std::uint64_t seed) {
  for (std::uint64_t& word : state_) word = split_mix(seed);
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::int64_t Random::below(std::int64_t end) {
  NEAP_CHECK(end > 0);
  const auto range = static_cast<std::uint64_t>(end);
  // Draws from the last, incomplete round of `range` values would make the small ones likelier.
  const std::uint64_t first_fair = (~range + 1) % range;
  std::uint64_t draw = next();
  while (draw < first_fair) draw = next();
  return static_cast<std::int64_t>(draw % range);
}

std::int64_t Random::between(std::int64_t first, std::int64_t last) {
  return first + below(last - first + 1);
}

Micros Random::between(Micros first, Micros last) {
  return Micros(between(first.value, last.value));
}

bool Random::chance(Ppm probability) { return below(all_ppm.value) < probability.value; }

Micros Random::wait(Micros mean) {
  // Geometric in eighths of the mean: the tail of rare events without a logarithm.
  Micros total = between(Micros(0), mean / 4);
  while (!chance(Ppm(125'000))) total += mean / 8;
  return total;
}

Random Random::fork() { return Random(next()); }

}  // namespace neap::simulated
