#include "cli/report_line.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <utility>

#include "cli/assess.h"
#include "cli/reports.h"

namespace neap::cli {

namespace {

using Act = std::function<int(const Context&)>;
using Choose = std::function<void(Act)>;

// A verb with options of its own, which live as long as the parse.
template <class Options>
std::pair<CLI::App*, std::shared_ptr<Options>> verb(CLI::App& parent, const Choose& choose,
                                                    const char* name, const char* about,
                                                    int (*act)(const Context&, const Options&)) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parent.add_subcommand(name, about);
  app->callback([choose, options, act] {
    choose([options, act](const Context& context) { return act(context, *options); });
  });
  return {app, options};
}

void add_drill(CLI::App& parent, const Choose& choose) {
  const auto [burst, o] = verb<DrillOptions>(
      parent, choose, "burst", "More replicas for a stated time, within limits", &drill_burst);
  burst->add_option("--service", o->service, "Whose demand is raised")->required();
  burst->add_option("--replicas", o->replicas, "It is to have so many")
      ->required()
      ->check(CLI::Range(1, 10'000));
  burst->add_option("--for", o->length, "For so long, such as 2min")->required();
  burst->add_option("--max-preemptions", o->max_preemptions, "Tasks asked to yield, at most")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();
  burst->add_option("--max-lost", o->max_lost, "Work lost by them")->capture_default_str();
  burst->add_option("--ready-within", o->ready_within, "A replica serves after")
      ->capture_default_str();
  burst->add_option("--resume-within", o->resume_within, "All run again after")
      ->capture_default_str();
  burst->add_option("--pause", o->pause, "Preemption is frozen for so long; 0s: not rehearsed")
      ->capture_default_str();
  burst->add_flag("--json", o->json, "Print the verdict as JSON");
  const auto [show, listing] = verb<ReportListing>(
      parent, choose, "show", "The drill that is under way, or the last one", &drill_show);
  show->add_flag("--json", listing->json, "Print the answer as JSON");
  CLI::App* stop = parent.add_subcommand("stop", "End a drill now");
  stop->callback([choose] { choose([](const Context& context) { return drill_stop(context); }); });
}

void add_assess(CLI::App& app, const Choose& choose) {
  const auto [parent, o] = verb<AssessOptions>(
      app, choose, "assess", "What two clusters would gain from sharing one pool", &assess);
  parent->add_option("--training", o->training, "CSV of time,devices in use");
  parent->add_option("--inference", o->inference, "CSV of time,devices in use");
  parent->add_option("--journal", o->journal, "Instead: state folder of a pool, as it was used");
  parent->add_option("--slot", o->slot, "Both are read in slots of")->capture_default_str();
  const auto devices = CLI::Range(std::int64_t{1}, std::int64_t{1'000'000});
  parent->add_option("--training-devices", o->training_devices, "Without: what it used at most")
      ->check(devices);
  parent->add_option("--inference-devices", o->inference_devices, "Without: what it used at most")
      ->check(devices);
  parent->add_option("--interruptible", o->interruptible, "Of the training")->capture_default_str();
  parent->add_option("--reserve", o->reserve, "Kept free above what inference uses")
      ->capture_default_str();
  parent->add_option("--lead", o->lead, "Until lent devices are back")->capture_default_str();
  parent->add_option("--switch-cost", o->switch_cost, "Of one device that changes sides")
      ->capture_default_str();
  parent->add_option("--most-delay", o->most_delay, "Training may be put off by")
      ->capture_default_str();
  parent->add_flag("--json", o->json, "Print the answer as JSON");
}

void add_compare(CLI::App& app, const Choose& choose) {
  const auto [parent, o] =
      verb<CompareOptions>(app, choose, "compare",
                           "Utilisation, latency and waits together, before and after", &compare);
  parent->add_option("before", o->before, "JSON of neap usage or neap simulate, or by hand")
      ->required();
  parent->add_option("after", o->after, "Likewise")->required();
  parent->add_flag("--json", o->json, "Print the answer as JSON");
}

}  // namespace

void add_report_verbs(CLI::App& app, const Choose& choose) {
  const auto [preemptions_app, o] =
      verb<PreemptionOptions>(app, choose, "preemptions",
                              "How preemptions went, and what each queue could keep", &preemptions);
  preemptions_app->add_option("--since", o->since, "Of the last so long, such as 7d")
      ->capture_default_str();
  preemptions_app->add_flag("--json", o->json, "Print the answer as JSON");
  CLI::App* drill = app.add_subcommand("drill", "Rehearse a burst on this pool, within limits");
  drill->require_subcommand(1);
  add_drill(*drill, choose);
  add_assess(app, choose);
  add_compare(app, choose);
}

}  // namespace neap::cli
