#include "cli/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <system_error>

namespace neap::cli {

namespace {

std::string two_digits(std::int64_t value) {
  return (value < 10 ? "0" : "") + std::to_string(value);
}

std::string plural(std::int64_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

}  // namespace

std::string fixed(double value, int digits) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string length_text(std::int64_t us) {
  constexpr std::int64_t second = 1'000'000;
  constexpr std::int64_t minute = 60 * second;
  constexpr std::int64_t hour = 60 * minute;
  constexpr std::int64_t day = 24 * hour;
  if (us < 0) return "-" + length_text(-us);
  if (us < second) return std::to_string(us / 1000) + "ms";
  if (us < minute) return std::to_string(us / second) + "s";
  if (us < hour) return std::to_string(us / minute) + "min";
  if (us < day) return std::to_string(us / hour) + "h" + two_digits(us % hour / minute);
  return std::to_string(us / day) + "d" + two_digits(us % day / hour) + "h";
}

std::string memory_text(std::int64_t mib) {
  if (mib != 0 && mib % 1024 == 0) return std::to_string(mib / 1024) + "GiB";
  return std::to_string(mib) + "MiB";
}

std::string part_text(std::int64_t ppm) {
  std::string text = std::to_string(ppm / 10'000);
  const std::int64_t tenths = ppm / 1000 % 10;
  if (tenths != 0) text += "." + std::to_string(tenths);
  return text + "%";
}

std::string fine_part_text(std::int64_t ppm) {
  const std::string thousandths = std::to_string(1000 + ppm / 10 % 1000);
  return std::to_string(ppm / 10'000) + "." + thousandths.substr(1) + "%";
}

std::string tenths_text(std::int64_t us) {
  const std::int64_t tenths = us / 100'000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "s";
}

std::int64_t device_time(std::string_view amount) {
  std::int64_t time = 0;
  if (amount.size() <= 3) return 0;
  amount.remove_suffix(3);
  const auto [end, error] = std::from_chars(amount.data(), amount.data() + amount.size(), time);
  return error == std::errc() ? time : INT64_MAX;
}

std::string moment_text(std::int64_t us) {
  const std::time_t at = static_cast<std::time_t>(us / 1'000'000);
  std::tm parts{};
  ::localtime_r(&at, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

std::string request_text(const Value& task) {
  std::string text = std::to_string(task.number_at("gpus"));
  if (const std::int64_t least = task.number_at("least_gpus"); least > 0) {
    const std::string range = std::to_string(least) + "-" + text;
    const std::size_t has = task.list_at("devices").size();
    text = has > 0 ? std::to_string(has) + " (" + range + ")" : range;
  }
  const std::int64_t compute = task.number_at("compute_milli", 1000);
  if (compute >= 1000) return text;
  text += " x " + part_text(compute * 1000);
  const std::int64_t memory = task.number_at("memory_mib");
  return memory > 0 ? text + " " + memory_text(memory) : text;
}

std::string start_text(const Value& row, const std::string& p50, const std::string& p90,
                       std::int64_t now) {
  const auto text = [&](const std::string& name) -> std::string {
    const std::int64_t at = row.number_at(name, -1);
    return at < 0 ? "over 14 days" : length_text(std::max<std::int64_t>(0, at - now));
  };
  const std::string first = text(p50);
  const std::string last = text(p90);
  return first == last ? first : first + " .. " + last;
}

Colour colour_of(const std::string& state) {
  if (state == "running" || state == "ready" || state == "usable" || state == "ok" ||
      state == "met") {
    return Colour::good;
  }
  if (state == "failed" || state == "lost" || state == "refused" || state == "unhealthy") {
    return Colour::bad;
  }
  if (state == "finished" || state == "cancelled") return Colour::faint;
  return Colour::warning;
}

void print_pool(Terminal& terminal, const Value& pool) {
  std::string line = plural(pool.number_at("devices_usable"), "device");
  if (pool.number_at("devices_usable") != pool.number_at("devices_total")) {
    line += " of " + std::to_string(pool.number_at("devices_total"));
  }
  if (!pool.text_at("device_source").empty()) line += " (" + pool.text_at("device_source") + ")";
  line += ", guard " + std::to_string(pool.number_at("devices_guard")) + ", buffer " +
          std::to_string(pool.number_at("devices_buffer")) + "; " +
          plural(pool.number_at("tasks_running"), "task") + " running, " +
          std::to_string(pool.number_at("tasks_waiting")) + " waiting";
  // Where lending is on and the ratio is one's own, there is nothing to say.
  const std::string& stage = pool.text_at("stage");
  if (!stage.empty() && stage != "time") line += "; stage " + stage;
  if (!pool.text_at("preset").empty()) {
    line += "; " + pool.text_at("preset") + " (" + pool.text_at("isolation") + ")";
  }
  terminal.line(terminal.painted(line, Colour::faint));
  if (pool.true_at("paused")) {
    std::string paused = "PAUSED by " + harmless(pool.text_at("paused_by"));
    const std::int64_t since = pool.number_at("paused_since_us", -1);
    if (since >= 0) paused += " since " + moment_text(since);
    terminal.line(terminal.painted(
        paused + ": nothing is preempted or scaled; `neap resume` ends it", Colour::warning));
  }
  for (const Value& condition : pool.list_at("conditions")) {
    terminal.line(terminal.painted(
        "warning: " + condition.text_at("name") + ": " + harmless(condition.text_at("message")),
        Colour::warning));
  }
  terminal.line("");
}

}  // namespace neap::cli
