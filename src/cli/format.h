// Numbers of the API as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/terminal.h"
#include "cli/value.h"

namespace neap::cli {

[[nodiscard]] std::string fixed(double value, int digits);   // "0.25" with two
[[nodiscard]] std::string length_text(std::int64_t us);      // "350ms", "42s", "3min", "2h05", "4d"
[[nodiscard]] std::string memory_text(std::int64_t mib);     // "16GiB", "512MiB"
[[nodiscard]] std::string part_text(std::int64_t ppm);       // "62.5%"
[[nodiscard]] std::string fine_part_text(std::int64_t ppm);  // "0.135%"
[[nodiscard]] std::string tenths_text(std::int64_t us);      // "152.4s"
// µs of one whole device, from a decimal string of milli-GPU·µs that may pass 64 bits.
[[nodiscard]] std::int64_t device_time(std::string_view amount);
[[nodiscard]] std::string moment_text(std::int64_t us);  // local time
// "2" whole devices, "2 x 60% 16GiB" parts of devices; "2 (1-4)" of a range, or "1-4" while it
// waits.
[[nodiscard]] std::string request_text(const Value& task);
// "2min .. 2h05" from now, of two moments of a forecast; a moment that it did not reach is "over 14
// days".
[[nodiscard]] std::string start_text(const Value& row, const std::string& p50,
                                     const std::string& p90, std::int64_t now);
[[nodiscard]] Colour colour_of(const std::string& state);

// The lines above every listing: the pool in one line, whether it is paused, its conditions.
void print_pool(Terminal& terminal, const Value& pool);

}  // namespace neap::cli
