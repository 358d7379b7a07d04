#include "cli/command_line.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>

#include "cli/adoption.h"
#include "cli/command_line_what_if.h"
#include "cli/context.h"
#include "cli/engine_line.h"
#include "cli/guard.h"
#include "cli/keys.h"
#include "cli/load_line.h"
#include "cli/report_line.h"
#include "cli/verbs.h"
#include "cli/what_if.h"
#include "config/problem.h"
#include "simulate/openb/experiment.h"

// This file, command_line_what_if.cpp, report_line.cpp, load_line.cpp and engine_line.cpp alone
// know CLI11. A verb's options live as long as the parse: the callback of the verb that was given
// is kept and called after it.
namespace neap::cli {

namespace {

constexpr int usage_exit = 2;
using Act = std::function<int(const Context&)>;

class CommandLine {
 public:
  CommandLine(const Program& program, Terminal& terminal) : program_(program), terminal_(terminal) {
    app_.require_subcommand(1);
    app_.set_help_all_flag("--help-all", "Help of all verbs");
    app_.fallthrough();
    app_.add_option("--socket", reach_.socket, "UNIX socket of the daemon");
    app_.add_option("--url", reach_.url, "The daemon over TCP, such as http://127.0.0.1:7433");
    app_.add_option("--token-file", reach_.token_file, "File with the token for --url");
    app_.footer(
        "Without --socket or --url: NEAP_SOCKET_API, NEAP_URL with NEAP_TOKEN_FILE, else the\n"
        "default socket. NO_COLOR turns colours off. More: docs/operators/cli.md");
    add_setup();
    add_work();
    add_looking();
    add_pool();
    for (auto* add : {&add_report_verbs, &add_load_verbs, &add_engine_verb, &add_contention_verbs})
      add(app_, [this](Act act) { act_ = std::move(act); });
  }

  int run(int argc, const char* const* argv) {
    if (argc > 1 && !known_verb(argv[1])) return unknown_verb(argv[1]);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      std::ostringstream out;
      std::ostringstream err;
      const int code = app_.exit(error, out, err);
      terminal_.write(out.str());
      if (!err.str().empty()) terminal_.complain("neap: " + trimmed(err.str()));
      return code == 0 ? 0 : usage_exit;
    }
    return act_(Context(terminal_, reach_));
  }

 private:
  // CLI11 would only say that a verb is missing.
  [[nodiscard]] bool known_verb(std::string_view word) const {
    const auto verbs = all_verbs();
    return word.starts_with('-') || std::any_of(verbs.begin(), verbs.end(), [&](const auto* app) {
             return app->get_name() == word;
           });
  }

  int unknown_verb(std::string_view word) const {
    std::vector<std::string> names;
    for (const CLI::App* app : all_verbs()) names.push_back(app->get_name());
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string_view suggestion = config::nearest(word, known);
    terminal_.complain("neap: no verb is called " + config::in_quotes(word) +
                       (suggestion.empty()
                            ? "; `neap --help` lists them"
                            : "; did you mean \"" + std::string(suggestion) + "\"?"));
    return usage_exit;
  }

  [[nodiscard]] std::vector<const CLI::App*> all_verbs() const {
    return app_.get_subcommands([](const CLI::App*) { return true; });
  }

  static std::string trimmed(std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }

  // A verb with options of its own.
  template <class Options>
  CLI::App* verb(const std::string& name, const std::string& about, std::shared_ptr<Options>& into,
                 int (*act)(const Context&, const Options&)) {
    into = std::make_shared<Options>();
    CLI::App* app = app_.add_subcommand(name, about);
    app->callback([this, into, act] {
      act_ = [into, act](const Context& context) { return act(context, *into); };
    });
    return app;
  }

  static void add_json(CLI::App* app, bool& into) {
    app->add_flag("--json", into, "Print the answer as JSON");
  }

  void add_setup() {
    std::shared_ptr<InitOptions> init_options;
    CLI::App* app =
        verb("init", "Write a commented pool file for this machine", init_options, &init);
    app->add_option("file", init_options->file, "Where to")->capture_default_str();
    app->add_option("--gpus", init_options->gpus, "Simulate this many devices")
        ->check(CLI::Range(1, 64));
    app->add_option("--preset", init_options->preset, "Ratio of inference to training")
        ->check(CLI::IsMember({"inference-led", "balanced", "training-led"}));

    std::shared_ptr<Listing> doctor_options;
    app = verb("doctor", "Check what the machine offers, with a remedy each", doctor_options,
               &doctor);
    add_json(app, doctor_options->json);

    auto serve_options = std::make_shared<ServeOptions>();
    app = app_.add_subcommand("serve", "Run the daemon");
    app->add_option("pool_file", serve_options->pool_file, "The pool file")->required();
    app->add_option("--state-dir", serve_options->state_dir, "State folder, instead of the file's");
    app->callback([this, serve_options] {
      act_ = [this, serve_options](const Context&) {
        serve_options->socket = reach_.socket;
        return program_.serve(*serve_options);
      };
    });

    auto state_dir = std::make_shared<std::string>();
    app = app_.add_subcommand("verify", "Replay the journal of a state folder and compare");
    app->add_option("state_dir", *state_dir, "The state folder")->required();
    app->callback([this, state_dir] {
      act_ = [this, state_dir](const Context&) { return program_.verify_journal(*state_dir); };
    });
    if (program_.demo) add_demo();
    add_simulate();
    add_mig();
    add_guard();
    add_about();
  }

  void add_simulate() {
    auto what_if_options = std::make_shared<WhatIfOptions>();
    CLI::App* parent =
        app_.add_subcommand("simulate", "What if: a workload through the pool's own scheduler");
    parent->require_subcommand(0, 1);
    add_what_if(parent, *what_if_options);
    parent->callback([this, parent, what_if_options] {
      if (!parent->get_subcommands().empty()) return;
      act_ = [what_if_options](const Context& context) {
        return what_if(context, *what_if_options);
      };
    });
    auto options = std::make_shared<SimulateOptions>();
    SimulateOptions& o = *options;
    CLI::App* app = parent->add_subcommand(
        "openb", "The published placement experiment: pods arrive, none departs");
    app->add_option("--nodes", o.nodes, "Node list")->required();
    app->add_option("--pods", o.pods, "Pod list")->required();
    app->add_option("--order", o.order, "Arrival orders; without: one drawn from the seed");
    app->add_option("--seed", o.seed, "Which order")->capture_default_str();
    app->add_option("--policy", o.policy, "How a node is chosen")
        ->check(CLI::IsMember(simulate::policy_names()))
        ->capture_default_str();
    app->add_option("--ties", o.ties, "Between equal nodes: the first, or any")
        ->check(CLI::IsMember({"fixed", "random"}))
        ->capture_default_str();
    app->add_option("--learn", o.learn,
                    "What neap learns from: the whole pod list, or what has arrived (online)")
        ->check(CLI::IsMember({"given", "online"}))
        ->capture_default_str();
    add_json(app, o.json);
    app->callback([this, options] {
      act_ = [options](const Context& context) { return simulate_openb(context, *options); };
    });
  }

  void add_mig() {
    CLI::App* parent = app_.add_subcommand("mig", "Plan how devices are cut into instances (MIG)");
    parent->require_subcommand(1);
    auto plan = std::make_shared<MigPlanOptions>();
    CLI::App* app = parent->add_subcommand(
        "plan", "The layouts that serve a demand, and the steps that lead there");
    app->add_option("--devices", plan->devices, "Empty devices, such as 4xA100-80G,2xH100-80G");
    app->add_option("--layout", plan->layout, "File with devices as they are; - is standard input");
    app->add_option("--demand", plan->demand,
                    "PROFILE=COUNT or MEMORY/COMPUTE=COUNT, with *WEIGHT: 3g.40gb=2*5,16GiB/2g=1")
        ->required();
    add_json(app, plan->json);
    app->callback([this, plan] {
      act_ = [plan](const Context& context) { return mig_plan(context, *plan); };
    });
    auto profiles = std::make_shared<MigProfilesOptions>();
    app = parent->add_subcommand("profiles", "The profiles of a model, and where they may start");
    app->add_option("model", profiles->model, "Such as A100-80G")->required();
    add_json(app, profiles->json);
    app->callback([this, profiles] {
      act_ = [profiles](const Context& context) { return mig_profiles(context, *profiles); };
    });
  }

  void add_guard() {
    CLI::App* parent = app_.add_subcommand(
        "guard", "Derive the inference guard and its buffer from recorded traffic");
    parent->require_subcommand(1);
    const auto add = [&](const char* name, const char* about,
                         int (*act)(const Context&, const GuardOptions&)) {
      auto options = std::make_shared<GuardOptions>();
      CLI::App* app = parent->add_subcommand(name, about);
      app->callback([this, options, act] {
        act_ = [options, act](const Context& context) { return act(context, *options); };
      });
      add_guard_options(app, *options);
      return std::pair(app, options);
    };
    const auto [fit, fit_options] =
        add("fit", "What each rate of violations would cost", &guard_fit);
    add_json(fit, fit_options->json);
    const auto [backtest, backtest_options] =
        add("backtest", "One rate, held against the traffic", &guard_backtest);
    add_json(backtest, backtest_options->json);
    const auto [show, options] =
        add("show", "A picture of demand, guard, buffer and violations", &guard_show);
    for (const auto& [app, o] : {std::pair(backtest, backtest_options), std::pair(show, options)}) {
      app->add_option("--x-per-mille", o->x_per_mille, "Hours in which demand may exceed the guard")
          ->capture_default_str();
    }
    show->add_option("--picture", options->picture, "Draw it into this HTML file too");
  }

  static void add_guard_options(CLI::App* app, GuardOptions& o) {
    app->add_option("--trace", o.traces, "Recorded traffic; repeated: services, summed")
        ->required()
        ->allow_extra_args(false);
    app->add_option("--format", o.format, "Of the traffic")
        ->check(CLI::IsMember(whatif::format_names()))
        ->capture_default_str();
    app->add_option("--pool", o.pool, "Devices of the pool")->required();
    app->add_option("--lead-seconds", o.lead_seconds, "Until lent devices are back; at most 3600")
        ->capture_default_str();
    app->add_option("--slot-seconds", o.slot_seconds,
                    "Divides an hour; without: 300, or the trace's own where that is longer");
    app->add_option("--idle-cost", o.idle_cost, "Of a device that idles, for the buffer")
        ->capture_default_str();
    app->add_option("--shortage-cost", o.shortage_cost, "Of a device that is missed")
        ->capture_default_str();
    app->add_option("--peak-devices", o.peak_devices,
                    "Devices at the highest rate, for each trace; without: the pool")
        ->check(CLI::Range(std::int64_t{1}, lead_time::most_devices))
        ->allow_extra_args(false);
    app->add_option("--replica-rate", o.replica_rates, "Instead: requests a second of a replica")
        ->allow_extra_args(false);
    app->add_option("--replica-gpus", o.replica_gpus, "Devices of a replica, for each trace")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{10'000}))
        ->allow_extra_args(false);
    app->add_option("--score", o.score, "Slots FIRST:LAST; without: from the first that lends");
    app->add_option("--promotion", o.promotions,
                    "FIRST:LAST:DEVICES, a floor in these slots; may be repeated")
        ->allow_extra_args(false);
  }

  void add_demo() {
    CLI::App* app = app_.add_subcommand("demo", "Show the pool at work on this machine");
    // Its words are its own: not options of neap, and its help is not ours.
    app->allow_extras()->fallthrough(false)->set_help_flag();
    app->callback([this, app] {
      act_ = [this, app](const Context&) { return program_.demo(app->remaining()); };
    });
  }

  void add_about() {
    std::shared_ptr<VersionOptions> version_options;
    CLI::App* app =
        verb("version", "Versions of this program and of the daemon", version_options, &version);
    version_options->own = program_.version;
    add_json(app, version_options->json);

    auto shell = std::make_shared<std::string>();
    app = app_.add_subcommand("completion", "Print the completion of a shell");
    app->add_option("shell", *shell, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    app->callback([this, shell] {
      act_ = [this, shell](const Context& context) { return completion(context, *shell, verbs()); };
    });
  }

  void add_work() {
    std::shared_ptr<SubmitOptions> submit_options;
    CLI::App* app = verb("submit", "Submit task and pipeline files", submit_options, &submit);
    app->add_option("files", submit_options->files, "Files; - is standard input")->required();
    app->add_flag("--replace", submit_options->replace, "As a new version of the live service");
    add_json(app, submit_options->json);
    std::shared_ptr<RunOptions> run_options;
    app = verb(
        "run",
        "Submit a command, follow it, end with its exit code: neap run [OPTIONS] -- command...",
        run_options, &cli::run);
    RunOptions& o = *run_options;
    app->add_option("--name", o.name, "Name of the task; made from the program's without");
    app->add_option("--tier", o.tier, "A tier of the pool");
    app->add_option("--team", o.team, "Who pays");
    app->add_option("--kind", o.kind, "training or interactive");
    app->add_option("--gpus", o.gpus, "Devices")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    app->add_option("--memory", o.memory, "Memory of each device, such as 16GiB");
    app->add_option("--compute", o.compute, "Compute of each device, such as 60%");
    app->add_option("--checkpoint", o.checkpoint, "Contract: sdk or signals; may be repeated")
        ->allow_extra_args(false);
    app->add_option("--env", o.env, "NAME=value; may be repeated")->allow_extra_args(false);
    app->add_option("command", o.command, "-- the program and its arguments")->required();

    std::shared_ptr<CancelOptions> cancel_options;
    app = verb("cancel", "Stop tasks, services and pipelines", cancel_options, &cancel);
    app->add_option("names", cancel_options->names, "Names or ids")->required();
    app->add_flag("--version", cancel_options->version,
                  "Of a service: only the new version that is being loaded");

    std::shared_ptr<ScaleOptions> scale_options;
    app = verb("scale", "Change the bounds of a service's replicas", scale_options, &scale);
    app->add_option("service", scale_options->name, "The service")->required();
    app->add_option("replicas", scale_options->replicas, "Both bounds")
        ->check(CLI::Range(0, 10'000));
    app->add_option("--min", scale_options->min, "At least")->check(CLI::Range(0, 10'000));
    app->add_option("--max", scale_options->max, "At most")->check(CLI::Range(1, 10'000));
  }

  void add_looking() {
    std::shared_ptr<PsOptions> ps_options;
    CLI::App* app = verb("ps", "List tasks and services", ps_options, &ps);
    app->add_flag("-a,--all", ps_options->all, "Ended tasks too");
    app->add_flag("--services", ps_options->services, "Services alone");
    app->add_flag("--names", ps_options->names, "Names alone, one a line");
    add_json(app, ps_options->json);
    app->add_flag("--start", ps_options->start, "When those who wait will start, as forecast")
        ->excludes("--json", "--names", "--services");

    std::shared_ptr<NamedOptions> describe_options;
    app = verb("describe", "All about one, with its trail", describe_options, &describe);
    app->add_option("name", describe_options->name, "Name or id")->required();
    add_json(app, describe_options->json);

    std::shared_ptr<NamedOptions> why_options;
    app = verb("why", "Why a task waits, and what would start it", why_options, &why);
    app->add_option("task", why_options->name, "Name or id")->required();
    add_json(app, why_options->json);

    std::shared_ptr<LogsOptions> logs_options;
    app = verb("logs", "Print what a task has written", logs_options, &logs);
    app->add_option("task", logs_options->name, "Name or id")->required();
    app->add_flag("-f,--follow", logs_options->follow, "Go on until the task has ended");
    app->add_option("-n,--lines", logs_options->lines, "The last lines, of the last 256 KiB")
        ->check(CLI::Range(0, 1'000'000));

    std::shared_ptr<EventsOptions> events_options;
    app = verb("events", "Print what has happened", events_options, &events);
    app->add_flag("-f,--follow", events_options->follow, "Go on with what happens");
    app->add_option("--after", events_options->after, "Begin after this sequence number")
        ->check(CLI::Range(std::int64_t{0}, INT64_MAX));
    app->add_option("--limit", events_options->limit, "At most so many, the newest without --after")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    add_json(app, events_options->json);
  }

  void add_pool() {
    std::shared_ptr<PauseOptions> pause_options;
    CLI::App* app =
        verb("pause", "Freeze preemption and scaling; what runs goes on", pause_options, &pause);
    app->add_option("--reason", pause_options->reason, "For the record");

    app = app_.add_subcommand("resume", "End a pause");
    app->callback([this] { act_ = [](const Context& context) { return resume(context); }; });

    std::shared_ptr<Listing> teams_options;
    app = verb("teams", "What each team has of what it is guaranteed", teams_options, &teams);
    add_json(app, teams_options->json);

    std::shared_ptr<Listing> gpus_options;
    app = verb("gpus", "List devices and who holds them", gpus_options, &gpus);
    add_json(app, gpus_options->json);

    add_stage();
    add_keys();
    std::shared_ptr<ReviewOptions> review_options;
    app = verb("review", "What a week speaks for: the next preset, guard and buffer, or no change",
               review_options, &review);
    app->add_option("--week", review_options->week, "Its first day, such as 2027-11-08");
    add_json(app, review_options->json);

    std::shared_ptr<Listing> profiles_options;
    app = verb("profiles", "What was observed of each type of task", profiles_options, &profiles);
    add_json(app, profiles_options->json);

    std::shared_ptr<Listing> usage_options;
    app = verb("usage", "Effective utilisation, waits, and where device time went", usage_options,
               &usage);
    add_json(app, usage_options->json);
  }

  void add_keys() {
    CLI::App* parent = app_.add_subcommand("keys", "Keys of teams for requests to services");
    parent->require_subcommand(1);
    const auto add = [this, parent](const char* name, const char* about,
                                    int (*act)(const Context&, const KeysOptions&)) {
      auto options = std::make_shared<KeysOptions>();
      CLI::App* app = parent->add_subcommand(name, about);
      app->add_option("--file", options->file, "Of keys; else the daemon's, beside its socket");
      app->callback([this, options, act] {
        act_ = [options, act](const Context& context) { return act(context, *options); };
      });
      return std::pair(app, options);
    };
    const auto [create, made] = add("create", "A new key; it is shown this once", &keys_create);
    create->add_option("team", made->team, "Whose requests it tells")->required();
    create->add_option("--class", made->highest, "The highest class that its requests may have")
        ->check(CLI::IsMember({"high", "normal", "low"}));
    add_json(create, made->json);
    const auto [list, listed] = add("list", "Keys by id, with their teams", &keys_list);
    add_json(list, listed->json);
    const auto [revoke, revoked] = add("revoke", "End a key", &keys_revoke);
    revoke->add_option("id", revoked->id, "Of the key, as listed")->required();
  }

  void add_stage() {
    CLI::App* parent = app_.add_subcommand("stage", "Stages of adoption: physical, memory, time");
    parent->require_subcommand(1);
    const auto add = [this, parent](const char* name, const char* about,
                                    int (*act)(const Context&, const StageOptions&)) {
      auto options = std::make_shared<StageOptions>();
      CLI::App* app = parent->add_subcommand(name, about);
      app->callback([this, options, act] {
        act_ = [options, act](const Context& context) { return act(context, *options); };
      });
      return std::pair(app, options);
    };
    const auto [show, show_options] = add("show", "The stage and what was measured", &stage_show);
    add_json(show, show_options->json);
    const auto [check, check_options] =
        add("check", "Whether the next stage may begin; ends with 1 if not", &stage_check);
    add_json(check, check_options->json);
    const auto [advance, advance_options] =
        add("advance", "Begin the next stage, if its check is passed", &stage_advance);
    CLI::Option* why = advance->add_option("--why", advance_options->why, "For the record");
    advance->add_flag("--force", advance_options->force, "Though the check is not passed")
        ->needs(why);
    const auto [back, back_options] =
        add("back", "Go back: tasks end at their boundaries, none is killed", &stage_back);
    back->add_option("--why", back_options->why, "For the record");
    back->add_option("--to", back_options->to, "This stage, not just the one before")
        ->check(CLI::IsMember({"physical", "memory"}));
  }

  // The verbs and options as they are, so that completion cannot fall behind.
  [[nodiscard]] std::vector<Verb> verbs() const {
    const std::vector<std::string> on_tasks = {"describe", "why",     "logs",  "cancel",
                                               "load",     "latency", "ladder"};
    const std::vector<std::string> on_files = {"submit", "serve", "init"};
    std::vector<Verb> all;
    for (const CLI::App* app : all_verbs()) {
      Verb verb{app->get_name(), {}, false, false};
      for (const CLI::Option* option : app->get_options()) {
        for (const std::string& name : option->get_lnames()) verb.options.push_back("--" + name);
      }
      verb.takes_task = std::find(on_tasks.begin(), on_tasks.end(), verb.name) != on_tasks.end();
      verb.takes_file = std::find(on_files.begin(), on_files.end(), verb.name) != on_files.end();
      all.push_back(std::move(verb));
    }
    return all;
  }

  const Program& program_;
  Terminal& terminal_;
  CLI::App app_{"neap: one pool of GPUs that training and inference share", "neap"};
  Reach reach_;
  Act act_;
};

}  // namespace

int run_command_line(int argc, const char* const* argv, const Program& program,
                     Terminal& terminal) {
  const int code = CommandLine(program, terminal).run(argc, argv);
  terminal.flush();
  return code;
}

}  // namespace neap::cli
