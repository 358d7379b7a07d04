#include "cli/load_line.h"

#include <CLI/CLI.hpp>

#include <memory>

#include "cli/contention.h"
#include "cli/latency.h"
#include "cli/load.h"

namespace neap::cli {
namespace {

void add_when(CLI::App& app, LoadVerbOptions& o) {
  app.add_option("--rate", o.rate, "Requests a second")
      ->check(CLI::Range(0.001, 100'000.0))
      ->capture_default_str();
  app.add_option("--arrivals", o.arrivals, "By chance (Poisson), or evenly")
      ->check(CLI::IsMember({"poisson", "constant"}))
      ->capture_default_str();
  app.add_option("--duration", o.length, "For so long")->capture_default_str();
  CLI::Option* trace = app.add_option("--trace", o.trace,
                                      "Instead: arrivals of a file (arrival_s, Azure or Mooncake)");
  app.add_option("--speed", o.speed, "The trace so many times as fast")
      ->needs(trace)
      ->capture_default_str();
  CLI::Option* day =
      app.add_flag("--day", o.day, "A day within --duration; --rate is that of its night")
          ->excludes(trace);
  app.add_option("--day-rate", o.day_rate, "By day; without: twice the night's")->needs(day);
  app.add_option("--burst-rate", o.burst_rate, "In its burst; without: six times")->needs(day);
  app.add_option("--seed", o.seed, "Of chance")
      ->check(CLI::Range(std::int64_t{0}, INT64_MAX))
      ->capture_default_str();
}

void add_what(CLI::App& app, LoadVerbOptions& o) {
  app.add_option("--path", o.path, "Without: the URL's, else /v1/completions");
  CLI::Option* body = app.add_option(
      "--body", o.body, "{n}, {input_tokens}, {output_tokens}, {input_text} are replaced");
  CLI::Option* file = app.add_option("--body-file", o.body_file, "Likewise, - is standard input");
  file->excludes(body);
  app.add_flag("--get", o.get, "GET, without a body")->excludes(body)->excludes(file);
  app.add_option("--model", o.model, "Of the usual body")->excludes(body)->excludes(file);
  app.add_option("--prompt", o.prompt, "Likewise")->excludes(body)->excludes(file);
  app.add_option("--max-tokens", o.max_tokens, "Likewise")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("-H,--header", o.headers, "\"Name: value\", several times")->expected(1, 64);
  app.add_option("--api-key-file", o.key_file, "File with the key, sent as a bearer token");
  app.add_option("--mix", o.mix, "Classes by chance, such as high=10,normal=30,low=60");
  app.add_option("--class-header", o.class_header, "That names the class")->capture_default_str();
  app.add_option("--request-ids", o.request_ids, "X-Request-Id of each: this, and its number");
}

void add_how(CLI::App& app, LoadVerbOptions& o) {
  app.add_option("--timeout", o.timeout, "From the scheduled start to the end")
      ->capture_default_str();
  app.add_option("--in-flight", o.in_flight, "Beyond so many, requests are dropped and counted")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--keep-alive", o.keep_alive, "Use connections again that were idle for less")
      ->capture_default_str();
  app.add_option("--slo-first-byte", o.slo_first_byte, "Goodput counts what keeps to it");
  app.add_option("--slo-total", o.slo_total, "Likewise");
  app.add_option("--log", o.log, "Every request into this file: CSV, or NAME.jsonl");
  app.add_flag("--realtime", o.realtime, "Real-time priority, where the user may have it");
  app.add_flag("--json", o.json, "Print the report as JSON");
}

}  // namespace

void add_load_verbs(CLI::App& app,
                    const std::function<void(std::function<int(const Context&)>)>& choose) {
  auto options = std::make_shared<LoadVerbOptions>();
  CLI::App* verb = app.add_subcommand("load", "Open-loop load on a service, with its latencies");
  verb->add_option("target", options->target, "A service's name, or http://HOST:PORT/PATH")
      ->required();
  add_when(*verb, *options);
  add_what(*verb, *options);
  add_how(*verb, *options);
  verb->callback([choose, options] {
    choose([options](const Context& context) { return load_service(context, *options); });
  });
  auto named = std::make_shared<LatencyOptions>();
  verb = app.add_subcommand("latency", "What the requests of a service were, and its SLO's burn");
  verb->add_option("service", named->service, "Name or id")->required();
  verb->add_flag("--json", named->json, "Print the answer as JSON");
  verb->callback([choose, named] {
    choose([named](const Context& context) { return latency(context, *named); });
  });
}

void add_contention_verbs(CLI::App& app,
                          const std::function<void(std::function<int(const Context&)>)>& choose) {
  const auto named = [&choose](CLI::App* verb, int (*act)(const Context&, const NamedOptions&)) {
    auto options = std::make_shared<NamedOptions>();
    verb->add_option("name", options->name, "Name or id of a service or a task")->required();
    verb->add_flag("--json", options->json, "Print the answer as JSON");
    verb->callback([choose, options, act] {
      choose([options, act](const Context& context) { return act(context, *options); });
    });
  };
  named(app.add_subcommand("ladder", "What is fought over beside it, and the rung of isolation"),
        &ladder);
  CLI::App* parent = app.add_subcommand("baseline", "How fast it is alone, and how fast mixed");
  parent->require_subcommand(1);
  named(parent->add_subcommand("show", "What was measured last"), &baseline_show);
  auto run = std::make_shared<BaselineOptions>();
  CLI::App* verb = parent->add_subcommand(
      "run", "Measure: training beside it stands still for one of two runs, and loses nothing");
  verb->add_option("name", run->name, "Name or id of a service or a task")->required();
  verb->add_option("--rate", run->rate, "Requests a second, of a service")->capture_default_str();
  verb->add_option("--duration", run->length, "Of each run, 100s at most")->capture_default_str();
  verb->add_option("--settle", run->settle, "Before each run")->capture_default_str();
  verb->add_option("--max-tokens", run->max_tokens, "Of each answer")->capture_default_str();
  verb->add_option("--seed", run->seed, "Of the arrivals, the same in both")->capture_default_str();
  verb->add_flag("--json", run->json, "Print the report as JSON");
  verb->callback([choose, run] {
    choose([run](const Context& context) { return baseline_run(context, *run); });
  });
}

}  // namespace neap::cli
