#include "cli/demo_screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "cli/demo_files.h"

namespace neap::cli {
namespace {

constexpr std::size_t bar_width = 16;
constexpr Micros line_every = seconds(5);

std::string clock_text(Micros time) {
  const std::int64_t whole = time.value / 1'000'000;
  const std::string rest = std::to_string(whole % 60);
  return std::to_string(whole / 60) + ":" + (rest.size() < 2 ? "0" : "") + rest;
}

std::string one_decimal(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

std::string bar(std::size_t filled, std::size_t width) {
  std::string text;
  for (std::size_t i = 0; i < width; ++i) text += i < filled ? "█" : "░";
  return text;
}

std::string padded(std::string text, std::size_t width) {
  const std::size_t used = width_of(text);
  if (used < width) text.append(width - used, ' ');
  return text;
}

// Cut by characters, not in the middle of one.
std::string cut(const std::string& text, std::size_t columns) {
  if (width_of(text) <= columns) return text;
  std::string out;
  std::size_t used = 0;
  for (const char c : text) {
    const bool begins = (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    if (begins && ++used > columns) break;
    out += c;
  }
  return out;
}

std::string device_line(const SeenDevice& device, std::size_t number, const PoolPicture& pool,
                        const Terminal& terminal) {
  std::string holders;
  Colour colour = Colour::faint;
  for (const std::string& holder : device.holders) {
    const SeenTask* task = pool.task(holder);
    holders += (holders.empty() ? "" : ", ") + harmless(holder);
    if (task == nullptr) continue;
    colour = task->replica ? Colour::good : Colour::warning;
    if (task->state != "running") holders += " (" + task->state + ")";
    if (task->state == "running" && task->step > 0) {
      holders += " step " + std::to_string(task->step);
    }
  }
  const std::size_t filled = device.holders.empty() ? 0 : bar_width;
  return " gpu " + std::to_string(number) + "  " + padded(device.role, 7) +
         terminal.painted(bar(filled, bar_width), colour) + "  " +
         (holders.empty() ? "free" : holders);
}

}  // namespace

std::string latency_text(Micros time) {
  if (time < seconds(1)) return std::to_string(time.value / 1000) + " ms";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f s", static_cast<double>(time.value) / 1e6);
  return text.data();
}

std::vector<std::string> frame_lines(const PoolPicture& pool, const LoadView& load,
                                     const std::vector<std::string>& story,
                                     const Terminal& terminal, std::size_t columns) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& text) { lines.push_back(cut(text, columns)); };
  const double part = load.length.value == 0 ? 0
                                             : static_cast<double>(load.elapsed.value) /
                                                   static_cast<double>(load.length.value);
  add(" day    " + clock_text(load.elapsed) + " of " + clock_text(load.length) + "  " +
      bar(static_cast<std::size_t>(part * 24), 24) + "  " + load.phase);
  for (std::size_t i = 0; i < pool.devices.size(); ++i) {
    lines.push_back(device_line(pool.devices[i], i, pool, terminal));
  }
  add(" load   " + one_decimal(load.rate) + " requests/s, " + std::to_string(load.in_flight) +
      " in flight, " + std::to_string(load.answered) + " answered, " + std::to_string(load.failed) +
      " failed");
  add(" first token  p50 " + latency_text(load.recent_p50) + ", p95 " +
      latency_text(load.recent_p95) + "  (last 10 s)");
  add(" replicas     " + std::to_string(pool.replicas_ready) + " ready of " +
      std::to_string(pool.replicas_wanted) + " wanted");
  for (const SeenTask& task : pool.tasks) {
    if (task.state == "waiting") add(" waits  " + harmless(task.name + ": " + task.reason));
  }
  for (const std::string& event : story) {
    lines.push_back(terminal.painted(cut("   " + harmless(event), columns), Colour::faint));
  }
  return lines;
}

std::string plain_line(const PoolPicture& pool, const LoadView& load) {
  std::string held;
  for (const SeenDevice& device : pool.devices) {
    held += (held.empty() ? "" : " | ");
    std::string holders;
    for (const std::string& holder : device.holders) {
      holders += (holders.empty() ? "" : "+") + harmless(holder);
    }
    held += holders.empty() ? "-" : holders;
  }
  std::string line = clock_text(load.elapsed) + " " + padded(load.phase, 8) + " " +
                     one_decimal(load.rate) + " req/s  p95 first token " +
                     latency_text(load.recent_p95) + "  replicas " +
                     std::to_string(pool.replicas_ready) + "  [" + held + "]";
  for (const SeenTask& task : pool.tasks) {
    if (task.state == "waiting") line += "  " + harmless(task.name) + " waits";
  }
  return line;
}

DemoScreen::DemoScreen(Terminal& terminal, std::FILE* out)
    : terminal_(terminal), out_(out), in_place_(isatty(fileno(out)) == 1) {}

void DemoScreen::erase() {
  if (drawn_ > 0) std::fprintf(out_, "\033[%zuF\033[J", drawn_);
  drawn_ = 0;
}

void DemoScreen::show(const PoolPicture& pool, const LoadView& load,
                      const std::vector<std::string>& story) {
  if (!in_place_) {
    if (load.elapsed.value < next_line_us_) return;
    next_line_us_ = load.elapsed.value + line_every.value;
    std::fprintf(out_, "%s\n", plain_line(pool, load).c_str());
    std::fflush(out_);
    return;
  }
  winsize size{};
  const bool known = ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 20;
  std::vector<std::string> lines = frame_lines(
      pool, load, story, terminal_, known ? static_cast<std::size_t>(size.ws_col - 1) : 100);
  // A frame higher than the terminal could not be drawn over.
  if (known && size.ws_row > 1 && lines.size() + 1 > size.ws_row) lines.resize(size.ws_row - 1U);
  erase();
  for (const std::string& line : lines) std::fprintf(out_, "%s\n", line.c_str());
  drawn_ = lines.size();
  std::fflush(out_);
}

void DemoScreen::say(const std::string& text) {
  erase();
  std::fprintf(out_, "%s\n", text.c_str());
  std::fflush(out_);
}

void DemoScreen::finish() {
  drawn_ = 0;
  next_line_us_ = 0;
}

}  // namespace neap::cli
