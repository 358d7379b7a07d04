#include "config/values.h"

#include <array>
#include <chrono>
#include <limits>
#include <optional>
#include <span>

#include "config/problem.h"

namespace neap::config {

namespace {

constexpr std::int64_t million = 1'000'000;

// A decimal number in millionths, and what stands behind it.
struct Quantified {
  std::int64_t millionths = 0;
  std::string_view unit;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t digits_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - at;
}

tl::unexpected<std::string> wrong(std::string message) {
  return tl::unexpected<std::string>(std::move(message));
}

Parsed<Quantified> split_quantity(std::string_view text, std::string_view expected) {
  const auto unexpected_text = [&] {
    return wrong(in_quotes(text) + " is not a value; expected " + std::string(expected));
  };
  if (!text.empty() && text[0] == '-') {
    return wrong(in_quotes(text) + " is negative; expected " + std::string(expected));
  }
  const std::size_t whole = digits_at(text, 0);
  if (whole == 0) return unexpected_text();
  if (whole > 1 && text[0] == '0') {
    return wrong(in_quotes(text) + " has a leading zero; write it without");
  }
  if (whole > 12) return wrong(in_quotes(text) + " is too large");
  std::int64_t value = 0;
  for (std::size_t i = 0; i < whole; ++i) value = value * 10 + (text[i] - '0');
  value *= million;
  std::size_t end = whole;
  if (end < text.size() && text[end] == '.') {
    const std::size_t fraction = digits_at(text, end + 1);
    if (fraction == 0) return unexpected_text();
    if (fraction > 6) return wrong(in_quotes(text) + " has more than six decimals");
    std::int64_t scale = million / 10;
    for (std::size_t i = 0; i < fraction; ++i, scale /= 10) {
      value += (text[end + 1 + i] - '0') * scale;
    }
    end += 1 + fraction;
  }
  while (end < text.size() && text[end] == ' ') ++end;
  return Quantified{value, text.substr(end)};
}

struct Unit {
  std::string_view name;
  std::int64_t size;
};

// millionths * size / 10^6, exact; nothing when it overflows or a remainder stays.
std::optional<std::int64_t> scaled(std::int64_t millionths, std::int64_t size) {
  const auto wide = static_cast<Wide>(millionths) * size;
  if (wide % million != 0) return std::nullopt;
  const Wide value = wide / million;
  // A quarter of the range leaves room for sums.
  if (value > std::numeric_limits<std::int64_t>::max() / 4) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

Parsed<std::int64_t> with_unit(std::string_view text, std::span<const Unit> units,
                               std::string_view expected) {
  const Parsed<Quantified> found = split_quantity(text, expected);
  if (!found) return wrong(found.error());
  if (found->unit.empty()) {
    return wrong(in_quotes(text) + " has no unit; expected " + std::string(expected));
  }
  for (const Unit& unit : units) {
    if (unit.name != found->unit) continue;
    const auto value = scaled(found->millionths, unit.size);
    if (!value) return wrong(in_quotes(text) + " is too large or too fine");
    return *value;
  }
  return wrong(in_quotes(text) + " has the unit " + in_quotes(found->unit) + "; expected " +
               std::string(expected));
}

constexpr std::array duration_units = {Unit{"us", 1},
                                       Unit{"ms", 1'000},
                                       Unit{"s", million},
                                       Unit{"min", 60 * million},
                                       Unit{"h", 3600 * million},
                                       Unit{"d", 86'400 * million}};

}  // namespace

Parsed<std::int64_t> parse_whole(std::string_view text) {
  const Parsed<Quantified> found = split_quantity(text, "a whole number");
  if (!found) return wrong(found.error());
  if (!found->unit.empty() || found->millionths % million != 0) {
    return wrong(in_quotes(text) + " is not a whole number");
  }
  return found->millionths / million;
}

Parsed<Micros> parse_duration(std::string_view text) {
  const auto value = with_unit(
      text, duration_units, "a length of time such as 90s, 10min or 20h (units ms, s, min, h, d)");
  if (!value) return wrong(value.error());
  return Micros(*value);
}

Parsed<MiB> parse_memory(std::string_view text) {
  constexpr std::array units = {Unit{"MiB", 1}, Unit{"GiB", 1024}, Unit{"TiB", 1024 * 1024}};
  const auto value =
      with_unit(text, units, "memory such as 16GiB or 16384MiB (units MiB, GiB, TiB)");
  if (!value) return wrong(value.error());
  return MiB(*value);
}

Parsed<MilliGpu> parse_share(std::string_view text) {
  constexpr std::string_view expected =
      "a part of one device such as 60%, 0.6 or 600milli, above 0 and at most 100%";
  const Parsed<Quantified> found = split_quantity(text, expected);
  if (!found) return wrong(found.error());
  std::optional<std::int64_t> milli;
  if (found->unit.empty()) milli = scaled(found->millionths, 1000);
  if (found->unit == "%") milli = scaled(found->millionths, 10);
  if (found->unit == "milli") milli = scaled(found->millionths, 1);
  if (found->unit.empty() || found->unit == "%" || found->unit == "milli") {
    if (!milli) return wrong(in_quotes(text) + " is finer than a thousandth of a device");
    if (*milli > 0 && *milli <= whole_device.value) return MilliGpu(*milli);
    const std::string_view what = *milli == 0 ? " is nothing" : " is more than one whole device";
    return wrong(in_quotes(text) + std::string(what) + "; expected " + std::string(expected));
  }
  return wrong(in_quotes(text) + " has the unit " + in_quotes(found->unit) + "; expected " +
               std::string(expected));
}

Parsed<Ppm> parse_part(std::string_view text) {
  constexpr std::string_view expected = "a part such as 70% or 0.7, at most 100%";
  const Parsed<Quantified> found = split_quantity(text, expected);
  if (!found) return wrong(found.error());
  std::optional<std::int64_t> ppm;
  if (found->unit.empty()) ppm = scaled(found->millionths, million);
  if (found->unit == "%") ppm = scaled(found->millionths, million / 100);
  if (!ppm) {
    return wrong(in_quotes(text) + " is not understood; expected " + std::string(expected));
  }
  if (*ppm > all_ppm.value) {
    return wrong(in_quotes(text) + " is over 100%; expected " + std::string(expected));
  }
  return Ppm(*ppm);
}

Parsed<std::int64_t> parse_cpu_milli(std::string_view text) {
  constexpr std::string_view expected = "processors such as 4, 0.5 or 500milli";
  const Parsed<Quantified> found = split_quantity(text, expected);
  if (!found) return wrong(found.error());
  std::optional<std::int64_t> milli;
  if (found->unit.empty()) milli = scaled(found->millionths, 1000);
  if (found->unit == "milli") milli = scaled(found->millionths, 1);
  if (!milli || *milli == 0) {
    return wrong(in_quotes(text) + " is not an amount; expected " + std::string(expected));
  }
  return *milli;
}

namespace {

// `width` digits at `at`, or nothing.
std::optional<int> number_at(std::string_view text, std::size_t at, std::size_t width) {
  if (at + width > text.size() || digits_at(text.substr(0, at + width), at) != width) {
    return std::nullopt;
  }
  int value = 0;
  for (std::size_t i = 0; i < width; ++i) value = value * 10 + (text[at + i] - '0');
  return value;
}

std::optional<Micros> clock_at(std::string_view text) {
  const auto hour = number_at(text, 0, 2);
  const auto minute = number_at(text, 3, 2);
  if (!hour || !minute || text[2] != ':' || *hour > 23 || *minute > 59) return std::nullopt;
  return hours(*hour) + minutes(*minute);
}

}  // namespace

Parsed<Micros> parse_time_of_day(std::string_view text) {
  if (text == "24:00") return hours(24);
  const auto clock = text.size() == 5 ? clock_at(text) : std::nullopt;
  if (!clock)
    return wrong(in_quotes(text) + " is not a time of day; expected one such as 22:30, UTC");
  return *clock;
}

Parsed<Time> parse_moment(std::string_view text) {
  const auto refused = [&] {
    return wrong(in_quotes(text) + " is not a moment; expected one such as 2031-05-01T06:00:00Z");
  };
  const std::string_view given = text;
  if (!text.empty() && text.back() == 'Z') text.remove_suffix(1);
  const auto year = number_at(text, 0, 4);
  const auto month = number_at(text, 5, 2);
  const auto day = number_at(text, 8, 2);
  const bool with_seconds = text.size() == 19;
  if (!year || !month || !day || (text.size() != 16 && !with_seconds)) return refused();
  if (text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != ' ')) return refused();
  const auto clock = clock_at(text.substr(11, 5));
  const auto second = with_seconds ? number_at(text, 17, 2) : std::optional<int>(0);
  if (!clock || !second || *second > 59 || (with_seconds && text[16] != ':')) return refused();
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return wrong(in_quotes(given) + " is not a day of the calendar");
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return Time() + hours(24) * days + *clock + seconds(*second);
}

std::string to_text(Micros length) {
  if (length.value == 0) return "0s";
  for (auto unit = duration_units.rbegin(); unit != duration_units.rend(); ++unit) {
    if (length.value % unit->size == 0) {
      return std::to_string(length.value / unit->size) + std::string(unit->name);
    }
  }
  return std::to_string(length.value) + "us";
}

std::string to_text(MiB memory) {
  if (memory.value != 0 && memory.value % 1024 == 0) {
    return std::to_string(memory.value / 1024) + "GiB";
  }
  return std::to_string(memory.value) + "MiB";
}

}  // namespace neap::config
