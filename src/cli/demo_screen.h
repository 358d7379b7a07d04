// The display of the running demonstration: a frame that is drawn again in place on a terminal,
// single lines elsewhere.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "cli/demo_watch.h"
#include "cli/terminal.h"
#include "core/model/units.h"

namespace neap::cli {

// The load as the display shows it.
struct LoadView {
  Micros elapsed;
  Micros length;
  std::string phase;
  double rate = 0;  // requests a second that the day asks for
  std::uint64_t answered = 0;
  std::uint64_t failed = 0;
  std::uint32_t in_flight = 0;
  Micros recent_p50;  // time to the first token, last 10 s
  Micros recent_p95;
};

// One line a row; no control characters but colours.
[[nodiscard]] std::vector<std::string> frame_lines(const PoolPicture& pool, const LoadView& load,
                                                   const std::vector<std::string>& story,
                                                   const Terminal& terminal, std::size_t columns);
[[nodiscard]] std::string plain_line(const PoolPicture& pool, const LoadView& load);
// "1.25 s", "80 ms".
[[nodiscard]] std::string latency_text(Micros time);

class DemoScreen {
 public:
  DemoScreen(Terminal& terminal, std::FILE* out);

  // Draws a frame, or every 5 s a line.
  void show(const PoolPicture& pool, const LoadView& load, const std::vector<std::string>& story);
  // A line of its own, above the frame.
  void say(const std::string& text);
  // Leaves the last frame as it is.
  void finish();

 private:
  void erase();

  Terminal& terminal_;
  std::FILE* out_;
  bool in_place_;
  std::size_t drawn_ = 0;  // lines of the frame on the terminal
  std::int64_t next_line_us_ = 0;
};

}  // namespace neap::cli
