#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/format.h"
#include "cli/verbs.h"

namespace neap::cli {

namespace {

bool ended(const Value& task) {
  const std::string& state = task.text_at("state");
  return state == "finished" || state == "failed" || state == "cancelled" || state == "refused" ||
         state == "lost";
}

std::string where_text(const Value& task) {
  const auto& devices = task.list_at("devices");
  if (devices.empty()) {
    const std::int64_t place = task.number_at("place", -1);
    return place > 0 ? "queue " + std::to_string(place) : "";
  }
  return task.text_at("node") + ":" + std::to_string(devices.size());
}

std::string age_text(const Value& task, std::int64_t now) {
  const std::int64_t since = task.number_at("submitted_us", -1);
  return since < 0 ? "" : length_text(now - since);
}

// By task id, of those that wait.
using Starts = std::map<std::int64_t, std::string>;

void print_tasks(const Context& context, const Value& listing, const PsOptions& options,
                 const Starts& starts) {
  const std::int64_t now = listing.at("pool").number_at("now_us");
  std::vector<std::string> heads = {"NAME", "ID",    "KIND", "STATE",     "TIER",
                                    "GPUS", "WHERE", "AGE",  "PREEMPTED", "WHY"};
  if (options.start) {
    heads.insert(heads.end() - 1, "STARTS WITHIN");
    heads.insert(heads.end() - 1, "AT THE LATEST");
  }
  Table table(std::move(heads));
  for (const Value& task : listing.list_at("tasks")) {
    if (!options.all && ended(task)) continue;
    std::vector<Cell> row = {{task.text_at("name")},
                             {std::to_string(task.number_at("id"))},
                             {task.text_at("kind")},
                             {task.text_at("state"), colour_of(task.text_at("state"))},
                             {task.text_at("tier")},
                             {request_text(task)},
                             {where_text(task)},
                             {age_text(task, now)},
                             {std::to_string(task.number_at("preemptions"))},
                             {task.text_at("reason")}};
    if (options.start) {
      const auto start = starts.find(task.number_at("id"));
      const bool is_new = !starts.empty() && task.text_at("state") == "waiting";
      const std::string none = is_new ? "not foretold yet" : "";
      row.insert(row.end() - 1, Cell{start == starts.end() ? none : start->second});
      const std::int64_t by = task.number_at("start_by_us", -1);
      row.insert(row.end() - 1,
                 Cell{by < 0 ? "" : length_text(std::max<std::int64_t>(0, by - now))});
    }
    table.add(std::move(row));
  }
  if (table.empty()) {
    context.terminal().line(options.all ? "no tasks" : "no live tasks; --all shows ended ones");
  } else {
    table.print(context.terminal());
  }
}

// With a line that says how old they are.
Starts starts_of(Terminal& terminal, const Value& forecast) {
  const std::int64_t age = forecast.number_at("age_us", -1);
  if (age < 0) {
    terminal.line("no forecast of starts yet: ask again in a moment");
    return {};
  }
  terminal.line("forecast of starts: " + length_text(age) + " old, " +
                std::to_string(forecast.number_at("draws")) + " draws, p50 .. p90");
  Starts starts;
  const std::int64_t now = forecast.at("pool").number_at("now_us");
  for (const Value& row : forecast.list_at("starts")) {
    starts[row.number_at("task_id")] = start_text(row, "p50_us", "p90_us", now);
  }
  return starts;
}

void print_services(const Context& context, const Value& listing) {
  Table table({"SERVICE", "STATE", "TIER", "READY", "WANTED", "BOUNDS", "USE", "ADDRESS", "WHY"});
  for (const Value& service : listing.list_at("services")) {
    const std::int64_t use = service.number_at("utilisation_ppm", -1);
    table.add({{service.text_at("name")},
               {service.text_at("state"), colour_of(service.text_at("state"))},
               {service.text_at("tier")},
               {std::to_string(service.number_at("replicas_ready"))},
               {std::to_string(service.number_at("replicas_wanted"))},
               {std::to_string(service.number_at("replicas_min")) + ".." +
                std::to_string(service.number_at("replicas_max"))},
               {use < 0 ? "unknown" : part_text(use)},
               {service.text_at("address")},
               {service.text_at("reason")}});
  }
  if (table.empty()) {
    context.terminal().line("no services");
  } else {
    table.print(context.terminal());
  }
}

int print_names(const Context& context, const Value& listing, const char* member) {
  for (const Value& row : listing.list_at(member)) {
    if (!ended(row)) context.terminal().line(row.text_at("name"));
  }
  return 0;
}

}  // namespace

int ps(const Context& context, const PsOptions& options) {
  std::string body;
  const auto listing = context.get(options.services ? "/v1/services" : "/v1/tasks", &body);
  if (!listing) return context.failed(listing.error());
  if (options.json) {
    context.terminal().line(body);
    return 0;
  }
  if (options.names) {
    return print_names(context, *listing, options.services ? "services" : "tasks");
  }
  print_pool(context.terminal(), listing->at("pool"));
  if (options.services) {
    print_services(context, *listing);
    return 0;
  }
  Starts starts;
  if (options.start) {
    const auto forecast = context.get("/v1/forecast");
    if (!forecast) return context.failed(forecast.error());
    starts = starts_of(context.terminal(), *forecast);
  }
  print_tasks(context, *listing, options, starts);
  const auto services = context.get("/v1/services");
  if (!services) return context.failed(services.error());
  if (!services->list_at("services").empty()) {
    context.terminal().line("");
    print_services(context, *services);
  }
  const auto pipelines = context.get("/v1/pipelines");
  if (!pipelines) return context.failed(pipelines.error());
  print_pipelines(context.terminal(), *pipelines);
  return 0;
}

}  // namespace neap::cli
