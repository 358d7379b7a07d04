// The meaning of one scalar: lengths of time, memory, shares. Strict, so that a slip is an error
// and never another value: no leading zeros (010), no signs, no exponents, no bare numbers where
// a unit belongs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "core/model/units.h"

namespace neap::config {

inline constexpr Micros a_year = hours(24 * 365);

// The value, or what is wrong and what was expected.
template <class T>
using Parsed = tl::expected<T, std::string>;

[[nodiscard]] Parsed<std::int64_t> parse_whole(std::string_view text);
// "90s", "10min", "20h", "1.5h", "250ms", "2d".
[[nodiscard]] Parsed<Micros> parse_duration(std::string_view text);
// "16GiB", "16384MiB", "1.5GiB", "1TiB"; whole MiB.
[[nodiscard]] Parsed<MiB> parse_memory(std::string_view text);
// Part of one device: "60%", "0.6", "600milli"; above 0, at most one device.
[[nodiscard]] Parsed<MilliGpu> parse_share(std::string_view text);
// "70%" or "0.7", from 0 to all.
[[nodiscard]] Parsed<Ppm> parse_part(std::string_view text);
// Host processors: "4", "0.5", "500milli".
[[nodiscard]] Parsed<std::int64_t> parse_cpu_milli(std::string_view text);
// A time of day in UTC: "22:30".
[[nodiscard]] Parsed<Micros> parse_time_of_day(std::string_view text);
// A moment in UTC: "2031-05-01T06:00:00Z" or "2031-05-01 06:00".
[[nodiscard]] Parsed<Time> parse_moment(std::string_view text);

// The shortest text that reads back as the value, for descriptions.
[[nodiscard]] std::string to_text(Micros length);
[[nodiscard]] std::string to_text(MiB memory);

}  // namespace neap::config
