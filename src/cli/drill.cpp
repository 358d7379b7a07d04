#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "cli/format.h"
#include "cli/reports.h"
#include "config/values.h"

namespace neap::cli {

namespace {

constexpr auto ask_every = std::chrono::milliseconds(200);

Result<std::int64_t> microseconds_of(const char* option, const std::string& text) {
  const auto length = config::parse_duration(text);
  if (!length) return fail(ErrorCode::invalid_argument, length.error(), option);
  return length->value;
}

Result<std::string> order_of(const DrillOptions& options) {
  std::string body = "{\"service\": " + json_text(options.service) +
                     ", \"replicas\": " + std::to_string(options.replicas) +
                     ", \"max_preemptions\": " + std::to_string(options.max_preemptions);
  struct Length {
    const char* option;
    const char* field;
    const std::string* text;
  };
  const std::array<Length, 5> lengths{
      {{"--for", "for_us", &options.length},
       {"--max-lost", "max_lost_us", &options.max_lost},
       {"--ready-within", "ready_within_us", &options.ready_within},
       {"--resume-within", "resume_within_us", &options.resume_within},
       {"--pause", "pause_us", &options.pause}}};
  for (const Length& length : lengths) {
    const auto us = microseconds_of(length.option, *length.text);
    if (!us) return tl::unexpected(us.error());
    body += ", \"" + std::string(length.field) + "\": " + std::to_string(*us);
  }
  return body + "}";
}

std::string after_text(const Value& row, const char* member, std::int64_t from) {
  const std::int64_t at = row.number_at(member, -1);
  return at < 0 ? "" : length_text(at - from);
}

void print_drill(Terminal& terminal, const Value& drill) {
  const std::int64_t began = drill.number_at("began_us", -1);
  if (began < 0) {
    terminal.line("there was no drill");
    return;
  }
  terminal.line("burst of " + harmless(drill.text_at("service")) + ": " +
                std::to_string(drill.number_at("before")) + " to " +
                std::to_string(drill.number_at("replicas")) + " replicas, from " +
                moment_text(began) + ", asked by " + harmless(drill.text_at("by")));
  Table placed({"REPLICA", "ROOM", "PLACED AFTER", "READY AFTER"});
  for (const Value& replica : drill.list_at("placed")) {
    const std::int64_t asked = replica.number_at("asked_us");
    placed.add({{replica.text_at("name")},
                {replica.text_at("source")},
                {after_text(replica, "placed_us", asked)},
                {after_text(replica, "ready_us", asked)}});
  }
  if (!placed.empty()) placed.print(terminal);
  Table victims({"TASK", "LEFT AFTER", "PROMISED", "LOST", "RAN AGAIN AFTER", "HOW"});
  for (const Value& victim : drill.list_at("victims")) {
    const std::int64_t asked = victim.number_at("asked_us");
    const std::int64_t left = victim.number_at("left_us", -1);
    victims.add({{victim.text_at("name")},
                 {after_text(victim, "left_us", asked)},
                 {after_text(victim, "promised_us", asked)},
                 {length_text(victim.number_at("lost_us"))},
                 {left < 0 ? "" : after_text(victim, "resumed_us", left)},
                 {victim.true_at("withdrawn") ? "told to stay"
                  : victim.true_at("forced")  ? "stopped"
                  : left < 0                  ? "asked"
                                              : "yielded"}});
  }
  if (!victims.empty()) victims.print(terminal);
  Table checks({"", "LIMIT", "SEEN", "ALLOWED"});
  for (const Value& check : drill.list_at("checks")) {
    const bool open = check.at("kept").is_null();
    const bool kept = check.true_at("kept");
    checks.add({{open   ? "open"
                 : kept ? "ok"
                        : "FAILED",
                 open   ? Colour::plain
                 : kept ? Colour::good
                        : Colour::bad},
                {check.text_at("name")},
                {check.text_at("figure")},
                {check.text_at("limit")}});
  }
  checks.print(terminal);
}

bool is_over(const Value& drill) { return drill.text_at("phase") == "none"; }

int print_verdict(const Context& context, const Value& drill) {
  const Value& result = drill.at("result");
  const bool passed = result.true_at("passed");
  Terminal& terminal = context.terminal();
  terminal.line(
      terminal.painted(passed ? "passed" : "not passed", passed ? Colour::good : Colour::bad) +
      ": " + harmless(result.text_at("detail")));
  return passed ? 0 : 1;
}

}  // namespace

namespace {

constexpr auto silence_max = std::chrono::minutes(2);

// The drill as it stands. A daemon that restarts finds it in its journal and goes on with it: it is
// waited for.
Result<Value> look(const Context& context, std::string& body) {
  const auto until = std::chrono::steady_clock::now() + silence_max;
  for (bool told = false;;) {
    auto drill = context.get("/v1/drill", &body);
    if (drill || drill.error().code != ErrorCode::unavailable) return drill;
    if (std::chrono::steady_clock::now() >= until) {
      drill.error().message +=
          "; the drill is in its journal and ends by itself: `neap drill show` tells what came of "
          "it when the daemon is back";
      return drill;
    }
    if (!std::exchange(told, true)) {
      context.terminal().complain("neap: the daemon does not answer: waiting for it, up to 2min");
    }
    std::this_thread::sleep_for(ask_every);
  }
}

// A daemon that ends between the order and its answer leaves open whether the drill began: what it
// knows of when it is back decides, for an order given twice would be a second drill.
Result<void> begin(const Context& context, const std::string& order) {
  std::string body;
  const auto before = context.get("/v1/drill", &body);
  if (!before) return tl::unexpected(before.error());
  auto client = context.client();
  if (!client) return tl::unexpected(client.error());
  const auto begun = client->post("/v1/drill", order);
  if (begun) return {};
  if (begun.error().code != ErrorCode::unavailable) return tl::unexpected(begun.error());
  const auto after = look(context, body);
  if (!after) return tl::unexpected(after.error());
  if (after->number_at("began_us", -1) == before->number_at("began_us", -1)) {
    return tl::unexpected(begun.error());
  }
  return {};
}

}  // namespace

int drill_burst(const Context& context, const DrillOptions& options) {
  const auto order = order_of(options);
  if (!order) return context.failed(order.error());
  if (const auto begun = begin(context, *order); !begun) {
    return context.failed(as_typed(begun.error()));
  }
  Terminal& terminal = context.terminal();
  if (!options.json) {
    terminal.line("drill begun; it ends by itself, also when this command is stopped");
    terminal.flush();
  }
  std::string phase, body;
  std::int64_t began = -1;
  while (true) {
    const auto drill = look(context, body);
    if (!drill) return context.failed(drill.error());
    const std::int64_t seen = drill->number_at("began_us", -1);
    if (began < 0) began = seen;
    if (seen != began) {
      return context.failed({ErrorCode::conflict,
                             "the daemon knows of another drill by now, or of none: what became of "
                             "this one is in the events of its own journal (drill_ended)",
                             {}});
    }
    if (is_over(*drill)) {
      if (options.json) {
        terminal.line(body);
        return drill->at("result").true_at("passed") ? 0 : 1;
      }
      print_drill(terminal, *drill);
      return print_verdict(context, *drill);
    }
    if (!options.json && drill->text_at("phase") != std::exchange(phase, drill->text_at("phase"))) {
      const std::string& why = drill->text_at("withdrawn");
      terminal.line(phase == "demand" ? "demand is raised"
                                      : "demand is over" + (why.empty() ? "" : ": " + why) +
                                            "; replicas leave, tasks resume");
      terminal.flush();
    }
    std::this_thread::sleep_for(ask_every);
  }
}

int drill_show(const Context& context, const ReportListing& options) {
  std::string body;
  const auto drill = context.get("/v1/drill", &body);
  if (!drill) return context.failed(drill.error());
  if (options.json) {
    context.terminal().line(body);
    return 0;
  }
  print_drill(context.terminal(), *drill);
  if (!is_over(*drill)) {
    context.terminal().line("under way: " + drill->text_at("phase"));
  } else if (!drill->at("result").is_null()) {
    print_verdict(context, *drill);
  }
  return 0;
}

int drill_stop(const Context& context) {
  auto client = context.client();
  if (!client) return context.failed(client.error());
  if (const auto stopped = client->remove("/v1/drill"); !stopped) {
    return context.failed(stopped.error());
  }
  context.terminal().line("the demand is over; replicas leave, and who yielded resumes");
  return 0;
}

}  // namespace neap::cli
