// What the demonstration promised, and whether it held. Pure: figures in, report out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/demo_watch.h"
#include "cli/terminal.h"
#include "load/generator.h"

namespace neap::cli {

struct DemoFigures {
  load::LoadSummary load;
  Evidence evidence;
  PoolPicture at_end;               // after the day, training back
  Value usage;                      // of /v1/usage at that moment
  std::int64_t burst_began_us = 0;  // by the daemon's clock
  std::int64_t pool_began_us = 0;
  std::string folder;
};

struct Promise {
  std::string text;
  std::string figure;
  bool held = false;
};

// The order of the story: guard, buffer, training yields, nothing lost, training is back.
[[nodiscard]] std::vector<Promise> promises_of(const DemoFigures& figures);
[[nodiscard]] bool all_held(const std::vector<Promise>& promises);

void print_report(const DemoFigures& figures, const std::vector<Promise>& promises,
                  Terminal& terminal);
[[nodiscard]] std::string report_json(const DemoFigures& figures,
                                      const std::vector<Promise>& promises);

}  // namespace neap::cli
