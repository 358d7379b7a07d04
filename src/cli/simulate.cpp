#include <cstdio>
#include <string>

#include "cli/verbs.h"
#include "simulate/openb/experiment.h"

namespace neap::cli {

namespace {

std::string percent(std::int32_t hundredths) {
  char text[32];
  std::snprintf(text, sizeof text, "%d.%02d %%", hundredths / 100, hundredths % 100);
  return text;
}

}  // namespace

int simulate_openb(const Context& context, const SimulateOptions& options) {
  const simulate::Experiment experiment{
      options.nodes,
      options.pods,
      options.order,
      options.seed,
      options.policy,
      options.ties == "random" ? simulate::Ties::random : simulate::Ties::fixed,
      options.learn == "online" ? simulate::Knowledge::online : simulate::Knowledge::given};
  const auto outcome = simulate::run_experiment(experiment);
  if (!outcome) return context.failed(outcome.error());
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(simulate::json_of(experiment, *outcome));
    return 0;
  }
  Table table({"ARRIVED", "ALLOCATED", "UNALLOCATED", "FRAGMENTED"});
  for (const std::size_t bin : {25U, 50U, 75U, 90U, 100U, 115U, 130U}) {
    table.add({{std::to_string(bin) + " %"},
               {percent(outcome->allocated.values[bin])},
               {percent(outcome->unallocated_at(bin))},
               {percent(outcome->fragmented.values[bin])}});
  }
  table.print(terminal);
  char speed[128];
  std::snprintf(speed, sizeof speed, "%.3f s; a decision took %.1f us (p50), %.1f us (p99)",
                outcome->seconds, static_cast<double>(outcome->decision.p50) / 1e3,
                static_cast<double>(outcome->decision.p99) / 1e3);
  terminal.line(speed);
  return 0;
}

}  // namespace neap::cli
