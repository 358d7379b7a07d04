#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include "cli/contention.h"
#include "cli/format.h"
#include "config/values.h"
#include "load/generator.h"

namespace neap::cli {
namespace {

std::string speed_json(const load::LoadOptions& made, const load::LoadSummary& summary) {
  const auto of = [](const measure::Histogram& times, const char* p50, const char* p99) {
    if (times.empty()) return std::string();
    const measure::Percentiles p = times.percentiles();
    // Several tokens in one read have no gaps between them: 0 is not known, the engine tells.
    const auto member = [](const char* name, Micros length) {
      return length <= Micros(0)
                 ? std::string()
                 : "\"" + std::string(name) + "\":" + std::to_string(length.value) + ",";
    };
    return member(p50, p.p50) + member(p99, p.p99);
  };
  const std::int64_t us = made.curve.length().value;
  const auto rate = static_cast<std::int64_t>(static_cast<double>(summary.scheduled) * 1e9 /
                                              static_cast<double>(us));
  return "{" + of(summary.first_byte, "first_byte_p50_us", "first_byte_p99_us") +
         of(summary.inter_token, "inter_token_p50_us", "inter_token_p99_us") +
         "\"requests_milli_per_s\":" + std::to_string(rate) + "}";
}

// The two runs of one baseline, through the daemon's phases.
class Run {
 public:
  Run(const Context& context, const BaselineOptions& options, std::string path)
      : context_(context), options_(options), path_(std::move(path)) {}

  Result<void> all() {
    const auto length = config::parse_duration(options_.length);
    const auto settle = config::parse_duration(options_.settle);
    if (!length || *length <= Micros(0) || *length > seconds(100)) {
      return fail(ErrorCode::invalid_argument, "expected up to 100s, such as 20s", "--duration");
    }
    if (!settle || *settle < Micros(0) || *settle > seconds(15)) {
      return fail(ErrorCode::invalid_argument, "expected up to 15s", "--settle");
    }
    service_ = path_.starts_with("/v1/services/");
    if (auto made = prepare(); !made) return made;
    const std::int64_t frozen = (*length + *settle).value + 5'000'000;
    context_.terminal().status("alone: training beside it stands still");
    auto said = say("{\"phase\":\"alone\",\"for_us\":" + std::to_string(frozen) + "}");
    if (!said) return said;
    const auto alone = measure(*settle, *length);
    if (!alone) return given_up(alone.error());
    context_.terminal().status("mixed: training runs again");
    if (said = say("{\"phase\":\"mixed\"}"); !said) return given_up(said.error());
    const auto mixed = measure(*settle, *length);
    context_.terminal().status("");
    if (!mixed) return given_up(mixed.error());
    std::string stored = "{\"phase\":\"store\"";
    if (service_) stored += ",\"client_alone\":" + *alone + ",\"client_mixed\":" + *mixed;
    return say(stored + "}");
  }

 private:
  Result<void> prepare() {
    if (!service_) return {};
    const auto detail = context_.get(path_);
    if (!detail) return tl::unexpected(detail.error());
    LoadVerbOptions load;
    load.rate = options_.rate;
    load.length = options_.length;
    load.max_tokens = options_.max_tokens;
    load.seed = options_.seed;
    load.target = options_.name;
    const auto url = url_of(context_, load);
    if (!url) return tl::unexpected(url.error());
    auto made = load_options_of(load, *url);
    if (!made) return tl::unexpected(made.error());
    load_ = std::move(*made);
    return {};
  }

  // What the client felt; of a task nothing, its steps are told by itself.
  Result<std::string> measure(Micros settle, Micros length) {
    std::this_thread::sleep_for(std::chrono::microseconds(settle.value));
    if (!load_) {
      std::this_thread::sleep_for(std::chrono::microseconds(length.value));
      return std::string();
    }
    const auto summary = load::run_load(*load_, {}, {});
    if (!summary) return tl::unexpected(summary.error());
    if (summary->count(load::Outcome::ok) == 0) {
      return fail(ErrorCode::unavailable, "no request was answered", options_.name);
    }
    return speed_json(*load_, *summary);
  }

  Result<void> say(const std::string& body) const {
    auto client = context_.client();
    if (!client) return tl::unexpected(client.error());
    const auto done = client->post(path_ + "/baseline", body);
    if (!done) return tl::unexpected(done.error());
    return {};
  }

  Result<void> given_up(const Error& error) const {
    (void)say("{\"phase\":\"abandon\"}");
    return tl::unexpected(error);
  }

  const Context& context_;
  const BaselineOptions& options_;
  std::string path_;
  bool service_ = false;
  std::optional<load::LoadOptions> load_;
};

void add_line(Table& table, const char* what, const Value& report, const char* of,
              const char* member) {
  const std::int64_t alone = report.at(std::string(of) + "alone").number_at(member, -1);
  const std::int64_t mixed = report.at(std::string(of) + "mixed").number_at(member, -1);
  if (alone < 0 && mixed < 0) return;
  const auto ms = [](std::int64_t us) {
    return us < 0 ? std::string("-") : fixed(static_cast<double>(us) / 1000, 2);
  };
  const bool both = alone > 0 && mixed >= 0;
  table.add({{what},
             {ms(alone)},
             {ms(mixed)},
             {both ? fixed(static_cast<double>(mixed) / static_cast<double>(alone), 2) : "-"}});
}

void print_baseline(Terminal& terminal, const Value& report) {
  terminal.line("measured " + moment_text(report.number_at("at_us")));
  std::string frozen;
  for (const Value& name : report.list_at("frozen")) {
    frozen += (frozen.empty() ? "" : ", ") + harmless(name.text);
  }
  terminal.line("alone: " + (frozen.empty() ? "nobody was beside it" : frozen + " stood still"));
  Table table({"", "ALONE", "MIXED", "TIMES"});
  add_line(table, "first byte p50, ms", report, "client_", "first_byte_p50_us");
  add_line(table, "first byte p99, ms", report, "client_", "first_byte_p99_us");
  add_line(table, "between tokens p50, ms", report, "client_", "inter_token_p50_us");
  add_line(table, "between tokens p99, ms", report, "client_", "inter_token_p99_us");
  add_line(table, "between tokens p50 (engine), ms", report, "", "inter_token_p50_us");
  add_line(table, "step, ms", report, "", "step_us");
  add_line(table, "processors, cores", report, "use_", "cpu_milli");
  if (!table.empty()) table.print(terminal);
}

}  // namespace

int baseline_run(const Context& context, const BaselineOptions& options) {
  const auto path = work_path(context, options.name);
  if (!path) return context.failed(path.error());
  if (const auto done = Run(context, options, *path).all(); !done) {
    return context.failed(done.error());
  }
  return baseline_show(context, {.name = options.name, .json = options.json});
}

int baseline_show(const Context& context, const NamedOptions& options) {
  const auto path = work_path(context, options.name);
  if (!path) return context.failed(path.error());
  std::string body;
  const auto report = context.get(*path + "/baseline", &body);
  if (!report) return context.failed(report.error());
  if (options.json) {
    context.terminal().line(body);
  } else {
    print_baseline(context.terminal(), *report);
  }
  return 0;
}

}  // namespace neap::cli
