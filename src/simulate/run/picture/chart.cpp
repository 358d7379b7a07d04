#include "simulate/run/picture/chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/model/units.h"

namespace neap::whatif {

namespace {

constexpr std::int64_t width = 960, height = 240;
constexpr std::int64_t left = 64, right = 12, top = 14, bottom = 30;
constexpr std::int64_t plot_width = width - left - right;
constexpr std::int64_t plot_height = height - top - bottom;
constexpr std::int64_t second_us = 1'000'000;
constexpr std::int64_t hour_us = 3'600 * second_us;
constexpr std::int64_t day_us = 24 * hour_us;

std::string number(std::int64_t value) { return std::to_string(value); }

std::string attribute(std::string_view name, std::int64_t value) {
  return " " + std::string(name) + "=\"" + number(value) + "\"";
}

std::string open_svg(std::int64_t tall = height) {
  return "<svg viewBox=\"0 0 " + number(width) + " " + number(tall) + "\" role=\"img\">\n";
}

std::string text_at(std::int64_t x, std::int64_t y, std::string_view anchor,
                    std::string_view text) {
  return "<text" + attribute("x", x) + attribute("y", y) + " text-anchor=\"" + std::string(anchor) +
         "\">" + escaped(text) + "</text>\n";
}

std::string rule(std::int64_t x1, std::int64_t y1, std::int64_t x2, std::int64_t y2) {
  return "<line class=\"grid\"" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
         attribute("y2", y2) + "/>\n";
}

// 1, 2 or 5 times a power of ten, so that at most five of them fit.
std::int64_t nice_step(std::int64_t top_value) {
  std::int64_t step = 1;
  while (true) {
    for (const std::int64_t factor : {1, 2, 5}) {
      if (top_value / (step * factor) <= 5) return step * factor;
    }
    step *= 10;
  }
}

std::int64_t y_of(std::int64_t value, const ValueAxis& axis) {
  const std::int64_t shown = std::clamp<std::int64_t>(value, 0, axis.top);
  return top + plot_height - static_cast<std::int64_t>(Wide{shown} * plot_height / axis.top);
}

std::int64_t x_of(std::int64_t us, const TimeAxis& axis) {
  const std::int64_t length = std::max<std::int64_t>(1, axis.end_us - axis.begin_us);
  return left + static_cast<std::int64_t>(Wide{us - axis.begin_us} * plot_width / length);
}

std::string value_axis(const ValueAxis& axis) {
  std::string out;
  const std::int64_t units = axis.top / axis.unit;
  const std::int64_t step = nice_step(std::max<std::int64_t>(1, units));
  for (std::int64_t at = 0; at <= units; at += step) {
    const std::int64_t y = y_of(at * axis.unit, axis);
    out += rule(left, y, width - right, y);
    out += text_at(left - 8, y + 4, "end", with_commas(at));
  }
  return out + text_at(left, top - 3, "start", axis.label);
}

std::int64_t time_step(std::int64_t length) {
  constexpr std::array<std::int64_t, 16> steps = {
      10 * second_us, 60 * second_us, 300 * second_us, 900 * second_us, hour_us,    3 * hour_us,
      6 * hour_us,    12 * hour_us,   day_us,          2 * day_us,      7 * day_us, 14 * day_us,
      30 * day_us,    60 * day_us,    180 * day_us,    365 * day_us};
  for (const std::int64_t step : steps) {
    if (length / step <= 12) return step;
  }
  return length / 12 + 1;
}

std::string moment_label(std::int64_t us, std::int64_t step) {
  if (step >= day_us) return "day " + number(us / day_us);
  const std::int64_t minute = us % hour_us / (60 * second_us);
  const std::int64_t hour = us % day_us / hour_us;
  std::string text =
      (hour < 10 ? "0" : "") + number(hour) + (minute < 10 ? ":0" : ":") + number(minute);
  return us / day_us > 0 ? "d" + number(us / day_us) + " " + text : text;
}

std::string time_axis(const TimeAxis& axis) {
  std::string out;
  const std::int64_t step = time_step(axis.end_us - axis.begin_us);
  for (std::int64_t at = (axis.begin_us + step - 1) / step * step; at <= axis.end_us; at += step) {
    const std::int64_t x = x_of(at, axis);
    out += rule(x, top + plot_height, x, top + plot_height + 4);
    out += text_at(x, height - 10, "middle", moment_label(at, step));
  }
  return out;
}

std::string point(std::int64_t x, std::int64_t y) { return number(x) + "," + number(y) + " "; }

// A step for each value, from the left to the right.
std::string steps(const Line& line, const TimeAxis& time, const ValueAxis& axis) {
  std::string out;
  for (std::size_t i = 0; i < line.values.size(); ++i) {
    const std::int64_t index = line.first + static_cast<std::int64_t>(i);
    const std::int64_t from = time.begin_us + line.span_us * index;
    const std::int64_t y = y_of(line.values[i], axis);
    out += point(x_of(from, time), y);
    out += point(x_of(std::min(from + line.span_us, time.end_us), time), y);
  }
  return out;
}

std::string polyline(const std::string& points, const std::string& colour) {
  return "<polyline class=\"line\" stroke=\"" + colour + "\" points=\"" + points + "\"/>\n";
}

// From a second to what is longer than `longest`.
struct LogAxis {
  double decades = 1;

  explicit LogAxis(std::int64_t longest) {
    const double seconds = static_cast<double>(std::max(longest, 10 * second_us)) / 1e6;
    decades = std::ceil(std::log10(seconds) * 4) / 4;
  }
  [[nodiscard]] std::int64_t x(std::int64_t us) const {
    const double seconds = std::max(1.0, static_cast<double>(us) / 1e6);
    return left + std::llround(std::log10(seconds) / decades * plot_width);
  }
};

}  // namespace

std::string stacked_chart(const std::vector<Line>& layers, const TimeAxis& time,
                          const ValueAxis& values) {
  std::string out = open_svg();
  Line below;
  for (const Line& layer : layers) {
    below.span_us = layer.span_us;
    below.values.resize(std::max(below.values.size(), layer.values.size()));
    std::string outline;
    for (std::size_t i = 0; i < below.values.size(); ++i) {
      const std::int64_t from = time.begin_us + layer.span_us * static_cast<std::int64_t>(i);
      const std::int64_t y = y_of(below.values[i], values);
      // Backwards, to close the shape.
      outline.insert(0, point(x_of(std::min(from + layer.span_us, time.end_us), time), y) +
                            point(x_of(from, time), y));
    }
    for (std::size_t i = 0; i < layer.values.size(); ++i) below.values[i] += layer.values[i];
    out += "<polygon class=\"area\" fill=\"" + layer.colour + "\" points=\"" +
           steps(below, time, values) + outline + "\"/>\n";
  }
  return out + value_axis(values) + time_axis(time) + "</svg>\n";
}

std::string line_chart(const std::vector<Line>& lines, const TimeAxis& time,
                       const ValueAxis& values) {
  return marked_chart(lines, {}, time, values);
}

std::string marked_chart(const std::vector<Line>& lines, const Marks& marks, const TimeAxis& time,
                         const ValueAxis& values) {
  std::string out = open_svg() + value_axis(values) + time_axis(time);
  for (const Line& line : lines) out += polyline(steps(line, time, values), line.colour);
  for (const std::int64_t at : marks.at_us) {
    out += "<rect fill=\"" + marks.colour + "\"" + attribute("x", x_of(at, time)) +
           attribute("y", top + plot_height - 6) + " width=\"2\" height=\"6\"/>\n";
  }
  return out + "</svg>\n";
}

std::string distribution_chart(const std::vector<Line>& lines) {
  std::int64_t longest = 0;
  for (const Line& line : lines) {
    if (!line.values.empty()) longest = std::max(longest, line.values.back());
  }
  const LogAxis axis(longest);
  const ValueAxis percents{100, 1, "% of jobs that started within"};
  std::string out = open_svg() + value_axis(percents);
  constexpr std::array<std::int64_t, 14> ticks = {
      second_us,    10 * second_us, 60 * second_us, 600 * second_us, hour_us,
      6 * hour_us,  day_us,         3 * day_us,     10 * day_us,     30 * day_us,
      100 * day_us, 365 * day_us,   1'000 * day_us, 3'650 * day_us};
  for (const std::int64_t tick : ticks) {
    const std::int64_t x = axis.x(tick);
    if (x > width - right) break;
    out += rule(x, top, x, top + plot_height + 4);
    out += text_at(x, height - 10, "middle", time_text(tick));
  }
  for (const Line& line : lines) {
    std::string points;
    for (std::size_t i = 0; i < line.values.size(); ++i) {
      points += point(axis.x(line.values[i]), y_of(static_cast<std::int64_t>(i), percents));
    }
    out += polyline(points, line.colour);
  }
  return out + "</svg>\n";
}

std::string bar(const std::vector<Part>& parts) {
  constexpr std::int64_t tall = 34;
  std::string out = open_svg(tall);
  std::int64_t from = 0;
  for (const Part& part : parts) {
    const std::int64_t to = from + part.ppm;
    const std::int64_t x = from * width / 1'000'000;
    const std::int64_t end = std::min(width, to * width / 1'000'000);
    if (end > x) {
      out += "<rect fill=\"" + part.colour + "\"" + attribute("x", x) + " y=\"0\"" +
             attribute("width", end - x) + attribute("height", tall) + "><title>" +
             escaped(part.name) + " " + percent_text(part.ppm) + "</title></rect>\n";
    }
    if (end - x > 60) {
      out += "<text class=\"on\"" + attribute("x", (x + end) / 2) + " y=\"22\"" +
             " text-anchor=\"middle\">" + percent_text(part.ppm) + "</text>\n";
    }
    from = to;
  }
  return out + "</svg>\n";
}

std::string with_commas(std::int64_t value) {
  std::string digits = number(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > 3 + first;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string percent_text(std::int64_t ppm) {
  return number(ppm / 10'000) + "." + number(ppm / 1'000 % 10) + " %";
}

std::string time_text(std::int64_t us) {
  if (us < second_us) return number(us / 1'000) + " ms";
  if (us < 60 * second_us) return number(us / second_us) + " s";
  if (us < hour_us) return number(us / (60 * second_us)) + " min";
  const auto tenths = [&](std::int64_t unit, const char* name) {
    const std::int64_t tenth = us % unit * 10 / unit;
    return number(us / unit) + (tenth > 0 ? "." + number(tenth) : "") + name;
  };
  return us < day_us ? tenths(hour_us, " h") : tenths(day_us, " d");
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

}  // namespace neap::whatif
