// Charts as SVG text. Coordinates are whole pixels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neap::whatif {

struct Line {
  std::string name;
  std::string colour;
  std::vector<std::int64_t> values;
  std::int64_t span_us = 1;  // of one value, where they are over time
  std::int64_t first = 0;    // so many spans from the left, where curves have gaps
};

// What the horizontal axis of curves stands for.
struct TimeAxis {
  std::int64_t begin_us = 0;  // since midnight
  std::int64_t end_us = 1;
};

struct ValueAxis {
  std::int64_t top = 1;   // of the chart, in the unit of the values
  std::int64_t unit = 1;  // labels are values divided by it
  std::string_view label;
};

// Layers on top of each other, the first one lowest.
[[nodiscard]] std::string stacked_chart(const std::vector<Line>& layers, const TimeAxis& time,
                                        const ValueAxis& values);
[[nodiscard]] std::string line_chart(const std::vector<Line>& lines, const TimeAxis& time,
                                     const ValueAxis& values);
// Moments that are marked below the curves.
struct Marks {
  std::string colour;
  std::vector<std::int64_t> at_us;
};
[[nodiscard]] std::string marked_chart(const std::vector<Line>& lines, const Marks& marks,
                                       const TimeAxis& time, const ValueAxis& values);
// Values are lengths of time in µs at 0 %, 1 % .. 100 %; the axis is logarithmic, from a second.
[[nodiscard]] std::string distribution_chart(const std::vector<Line>& lines);
// One bar of parts, each in ppm of the whole.
struct Part {
  std::string name;
  std::string colour;
  std::int64_t ppm = 0;
};
[[nodiscard]] std::string bar(const std::vector<Part>& parts);

// "12,345"; "1.5" with tenths; text without what HTML gives a meaning to.
[[nodiscard]] std::string with_commas(std::int64_t value);
[[nodiscard]] std::string percent_text(std::int64_t ppm);
[[nodiscard]] std::string time_text(std::int64_t us);
[[nodiscard]] std::string escaped(std::string_view text);

}  // namespace neap::whatif
