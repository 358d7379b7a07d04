#include <utility>

#include "cli/format.h"
#include "cli/latency.h"
#include "cli/verbs.h"

namespace neap::cli {

namespace {

void print_field(Terminal& terminal, const std::string& name, const std::string& value) {
  if (value.empty()) return;
  constexpr std::size_t column = 28;
  const std::string padding(name.size() < column ? column - name.size() : 1, ' ');
  terminal.line(terminal.painted(name, Colour::faint) + padding + harmless(value));
}

void print_length(Terminal& terminal, const std::string& name, const Value& row,
                  const char* member) {
  const std::int64_t at = row.number_at(member, -1);
  if (at >= 0) print_field(terminal, name, moment_text(at));
}

void print_declared_and_trail(Terminal& terminal, const Value& detail) {
  if (!detail.at("declared").members.empty()) terminal.line("\ndeclared:");
  for (const auto& [name, value] : detail.at("declared").members) {
    print_field(terminal, "  " + name, value.text);
  }
  if (!detail.at("measured").members.empty()) terminal.line("\nmeasured:");
  for (const auto& [name, value] : detail.at("measured").members) {
    print_field(terminal, "  " + name, value.text);
  }
  if (!detail.list_at("trail").empty()) terminal.line("\ntrail:");
  Table trail({"  TIME", "STATE", "PLACE", "REASON"});
  for (const Value& entry : detail.list_at("trail")) {
    trail.add({{"  " + moment_text(entry.number_at("time_us"))},
               {entry.text_at("state"), colour_of(entry.text_at("state"))},
               {entry.text_at("place")},
               {entry.text_at("reason")}});
  }
  if (!trail.empty()) trail.print(terminal);
}

void print_host_limits(Terminal& terminal, const Value& limits) {
  bool any = false;
  constexpr std::pair<const char*, const char*> kinds[] = {
      {"asked", "asked"}, {"enforced", "enforced"}, {"not_enforced", "not enforced"}};
  for (const auto& [member, word] : kinds) {
    for (const auto& [name, value] : limits.at(member).members) {
      if (!std::exchange(any, true)) terminal.line("\nhost limits:");
      print_field(terminal, std::string("  ") + word + ": " + harmless(name), value.text);
    }
  }
}

void print_task(Terminal& terminal, const Value& detail) {
  print_pool(terminal, detail.at("pool"));
  const Value& task = detail.at("task");
  print_field(terminal, "task",
              task.text_at("name") + " (" + std::to_string(task.number_at("id")) + ")");
  print_field(terminal, "kind", task.text_at("kind"));
  print_field(terminal, "user", task.text_at("user"));
  print_field(terminal, "team", task.text_at("team"));
  print_field(terminal, "tier", task.text_at("tier"));
  print_field(terminal, "service", task.text_at("service"));
  print_field(terminal, "state", task.text_at("state"));
  print_field(terminal, "why", task.text_at("reason"));
  print_field(terminal, "gpus", request_text(task));
  print_field(terminal, "node", task.text_at("node"));
  for (const Value& device : task.list_at("devices")) print_field(terminal, "device", device.text);
  print_length(terminal, "submitted", task, "submitted_us");
  print_length(terminal, "starts at the latest", task, "start_by_us");
  print_length(terminal, "started", task, "started_us");
  print_length(terminal, "finished", task, "finished_us");
  print_length(terminal, "last checkpoint", task, "last_checkpoint_us");
  print_field(terminal, "preempted", std::to_string(task.number_at("preemptions")) + " times");
  print_field(terminal, "lost work", length_text(task.number_at("lost_work_us")));
  if (task.number_at("step", -1) >= 0) {
    print_field(terminal, "step", std::to_string(task.number_at("step")));
  }
  if (!task.at("exit_code").is_null()) {
    print_field(terminal, "exit code", std::to_string(task.number_at("exit_code")));
  }
  print_host_limits(terminal, detail.at("host_limits"));
  print_declared_and_trail(terminal, detail);
}

std::string seen_text(const Value& row, const char* length, const char* seen) {
  const std::int64_t count = row.number_at(seen);
  const std::string source =
      count == 0 ? "expected" : "p90 of " + std::to_string(count) + " seen in all";
  return tenths_text(row.number_at(length)) + " (" + source + ")";
}

std::string given_text(const Value& row) {
  const std::int64_t given = row.number_at("given_of_day");
  const std::int64_t allowed = row.number_at("allowed_of_day", -1);
  std::string text = std::to_string(given) + " within a day";
  if (allowed < 0) return text;
  text += ", the budget pays for " + std::to_string(allowed);
  if (given < allowed) return text;
  const std::int64_t again = row.number_at("again_us", -1);
  return text + ": devices are kept" + (again >= 0 ? " until " + moment_text(again) : "");
}

void print_switches(Terminal& terminal, const Value& row) {
  if (row.is_null()) return;
  terminal.line("\nswitches of devices:");
  print_field(terminal, "  to leave", seen_text(row, "leave_us", "leaves_seen"));
  print_field(terminal, "  to load", seen_text(row, "load_us", "loads_seen"));
  print_field(terminal, "  to warm up", seen_text(row, "warm_up_us", "warm_ups_seen"));
  print_field(terminal, "  both ways", tenths_text(row.number_at("cost_us")));
  print_field(terminal, "  lent time that is useful", part_text(row.number_at("useful_ppm")));
  print_field(terminal, "  pays once idle for", tenths_text(row.number_at("break_even_us")));
  if (row.number_at("dwell_us", -1) >= 0) {
    print_field(terminal, "  given away once idle for", tenths_text(row.number_at("dwell_us")));
  }
  print_field(terminal, "  given away", given_text(row));
  print_field(terminal, "  device time so far",
              length_text(device_time(row.text_at("device_time"))) + ", " +
                  fine_part_text(row.number_at("share_ppm")) + " of the pool's; " +
                  std::to_string(row.number_at("given")) + " given away, " +
                  std::to_string(row.number_at("taken")) + " taken back");
}

void print_service(Terminal& terminal, const Value& detail) {
  print_pool(terminal, detail.at("pool"));
  const Value& service = detail.at("service");
  print_field(terminal, "service", service.text_at("name"));
  print_field(terminal, "user", service.text_at("user"));
  print_field(terminal, "team", service.text_at("team"));
  print_field(terminal, "tier", service.text_at("tier"));
  print_field(terminal, "state", service.text_at("state"));
  print_field(terminal, "why", service.text_at("reason"));
  print_field(terminal, "address", service.text_at("address"));
  print_field(terminal, "replicas",
              std::to_string(service.number_at("replicas_ready")) + " ready, " +
                  std::to_string(service.number_at("replicas_wanted")) + " wanted, " +
                  std::to_string(service.number_at("replicas_min")) + ".." +
                  std::to_string(service.number_at("replicas_max")));
  print_switches(terminal, detail.at("switches"));
  if (!detail.list_at("replicas").empty()) terminal.line("");
  Table replicas({"REPLICA", "STATE", "HEALTH", "PORT", "NODE", "WHY"});
  for (const Value& replica : detail.list_at("replicas")) {
    const std::int64_t port = replica.number_at("port", -1);
    replicas.add({{replica.text_at("name")},
                  {replica.text_at("state"), colour_of(replica.text_at("state"))},
                  {replica.text_at("health"), colour_of(replica.text_at("health"))},
                  {port > 0 ? std::to_string(port) : ""},
                  {replica.text_at("node")},
                  {replica.text_at("reason")}});
  }
  if (!replicas.empty()) replicas.print(terminal);
  print_declared_and_trail(terminal, detail);
}

}  // namespace

int describe(const Context& context, const NamedOptions& options) {
  std::string body;
  auto detail = context.get("/v1/tasks/" + part(options.name), &body);
  const bool no_task = !detail && detail.error().code == ErrorCode::not_found;
  if (no_task) {
    auto service = context.get("/v1/services/" + part(options.name), &body);
    // Neither: the first error names what was looked for.
    if (service || service.error().code != ErrorCode::not_found) detail = std::move(service);
    if (!detail && detail.error().code == ErrorCode::not_found &&
        context.get("/v1/pipelines/" + part(options.name))) {
      return describe_pipeline(context, options);
    }
  }
  if (!detail) return context.failed(detail.error());
  if (options.json) {
    context.terminal().line(body);
  } else if (no_task) {
    print_service(context.terminal(), *detail);
    const auto latency = context.get("/v1/services/" + part(options.name) + "/latency");
    if (latency) print_latency_summary(context.terminal(), *latency);
  } else {
    print_task(context.terminal(), *detail);
  }
  return 0;
}

}  // namespace neap::cli
