#include <algorithm>
#include <string>
#include <utility>

#include "cli/value.h"
#include "cli/verbs.h"
#include "config/mig_layout.h"
#include "config/text.h"
#include "core/rules/partition/plan.h"

namespace neap::cli {

namespace {

struct Planned {
  config::MigLayout layout;
  std::vector<mig::Want> wants;
  mig::Plan plan;
};

std::string profile_name(const mig::Device& device, const mig::Place& place) {
  return std::string(device.model->table[static_cast<std::size_t>(place.profile)].name);
}

std::string place_text(const mig::Device& device, const mig::Place& place) {
  return profile_name(device, place) + "@" + std::to_string(place.start);
}

Result<config::MigLayout> devices_of(const MigPlanOptions& options) {
  if (options.devices.empty() == options.layout.empty()) {
    return fail(ErrorCode::invalid_argument, "expected either --devices or --layout", "mig plan");
  }
  if (options.layout.empty()) {
    auto parsed = config::parse_mig_devices(options.devices);
    if (!parsed) return fail(ErrorCode::invalid_argument, parsed.error(), "--devices");
    return std::move(*parsed);
  }
  const auto text = config::read_file(options.layout);
  if (!text) return tl::unexpected(text.error());
  config::Problems problems(options.layout);
  auto layout = config::parse_mig_layout(*text, problems);
  if (!layout) return tl::unexpected(problems.to_error());
  return std::move(*layout);
}

Result<Planned> planned(const MigPlanOptions& options) {
  auto layout = devices_of(options);
  if (!layout) return tl::unexpected(layout.error());
  auto wants = config::parse_mig_demand(options.demand);
  if (!wants) return fail(ErrorCode::invalid_argument, wants.error(), "--demand");
  auto plan = mig::make_plan(layout->devices, *wants);
  if (!plan) return tl::unexpected(plan.error());
  return Planned{std::move(*layout), std::move(*wants), std::move(*plan)};
}

std::string reason_text(const mig::Answer& answer) {
  const std::string most = std::to_string(answer.at_most);
  switch (answer.shortage) {
    case mig::Shortage::none:
      return "";
    case mig::Shortage::no_profile:
      return "no model here has a profile that serves it";
    case mig::Shortage::held_by_busy:
      return "devices are busy: at most " + most + " beside what runs";
    case mig::Shortage::too_many:
      return "all devices together hold at most " + most;
    case mig::Shortage::outweighed:
      return "it does not fit beside what is served";
  }
  return "";
}

// An instance as it will be, with what becomes of it.
struct Final {
  mig::Place place;
  std::string state;  // busy, idle, new
  std::string serves;
};

std::vector<Final> final_layout(const Planned& p, std::uint32_t index) {
  const mig::Device& device = p.layout.devices[index];
  std::vector<Final> found;
  for (const mig::Instance& instance : device.instances) {
    found.push_back({instance.place, instance.use == mig::Use::busy ? "busy" : "idle", ""});
  }
  for (const mig::Step& step : p.plan.steps) {
    if (step.device != index) continue;
    if (step.kind == mig::StepKind::create) {
      found.push_back({step.place, "new", ""});
    } else {
      std::erase_if(found, [&](const Final& f) { return f.place == step.place; });
    }
  }
  for (const mig::Serve& serve : p.plan.serves) {
    if (serve.device != index) continue;
    for (Final& f : found) {
      if (f.place == serve.place) f.serves = config::to_text(p.wants[serve.want]);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Final& a, const Final& b) { return a.place.start < b.place.start; });
  return found;
}

std::string geometry_text(const Planned& p, std::uint32_t index) {
  std::string text;
  for (const Final& f : final_layout(p, index)) {
    text += (text.empty() ? "" : "  ") + place_text(p.layout.devices[index], f.place);
    if (f.state != "idle" || f.serves.empty()) text += " " + f.state;
  }
  return text;
}

void print_devices(Terminal& terminal, const Planned& p) {
  std::vector<bool> concerned(p.layout.devices.size(), false);
  for (const mig::Step& step : p.plan.steps) concerned[step.device] = true;
  for (const mig::Serve& serve : p.plan.serves) concerned[serve.device] = true;
  Table table({"DEVICE", "MODEL", "LAYOUT"});
  std::size_t others = 0;
  for (std::uint32_t d = 0; d < concerned.size(); ++d) {
    if (!concerned[d]) {
      ++others;
      continue;
    }
    table.add({{p.layout.names[d]},
               {std::string(p.layout.devices[d].model->name)},
               {geometry_text(p, d)}});
  }
  if (!table.empty()) table.print(terminal);
  if (others > 0) {
    terminal.line(std::to_string(others) + (others == 1 ? " device stays" : " devices stay") +
                  " as before and " + (others == 1 ? "serves" : "serve") + " none of this");
  }
}

void print_answers(Terminal& terminal, const Planned& p) {
  terminal.line("");
  Table table({"WANT", "COUNT", "WEIGHT", "SERVED", "WHY"});
  for (std::size_t w = 0; w < p.wants.size(); ++w) {
    const mig::Answer& answer = p.plan.answers[w];
    const Colour colour = answer.served == p.wants[w].count ? Colour::good : Colour::warning;
    table.add({{config::to_text(p.wants[w])},
               {std::to_string(p.wants[w].count)},
               {std::to_string(p.wants[w].weight)},
               {std::to_string(answer.served), colour},
               {reason_text(answer)}});
  }
  table.print(terminal);
}

void print_steps(Terminal& terminal, const Planned& p) {
  terminal.line("");
  if (p.plan.steps.empty()) terminal.line("No steps: what serves is there.");
  std::size_t number = 0;
  for (const mig::Step& step : p.plan.steps) {
    const mig::Device& device = p.layout.devices[step.device];
    terminal.line(std::to_string(++number) + ". " +
                  (step.kind == mig::StepKind::create ? "create  " : "destroy ") +
                  place_text(device, step.place) + " on " + p.layout.names[step.device]);
  }
  terminal.line("");
  const std::string worth = std::to_string(p.plan.score.worth);
  terminal.line(p.plan.method == mig::Method::exact
                    ? "Weight served: " + worth + ", the most there is."
                    : "Weight served: " + worth + "; no plan serves more than " +
                          std::to_string(p.plan.worth_bound) + ".");
}

std::string json_place(const mig::Device& device, const mig::Place& place) {
  return json_pair("profile", json_text(profile_name(device, place))) + "," +
         json_pair("start", std::to_string(place.start));
}

// `write(i)` for each i, with commas between.
template <class Write>
std::string json_list(std::size_t count, Write write) {
  std::string text = "[";
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + write(i);
  return text + "]";
}

std::string json_device(const Planned& p, std::uint32_t index) {
  const mig::Device& device = p.layout.devices[index];
  const std::vector<Final> layout = final_layout(p, index);
  const std::string instances = json_list(layout.size(), [&](std::size_t i) {
    const Final& f = layout[i];
    return "{" + json_place(device, f.place) + "," + json_pair("state", json_text(f.state)) + "," +
           json_pair("serves", f.serves.empty() ? "null" : json_text(f.serves)) + "}";
  });
  return "{" + json_pair("name", json_text(p.layout.names[index])) + "," +
         json_pair("model", json_text(device.model->name)) + "," +
         json_pair("instances", instances) + "}";
}

std::string plan_json(const Planned& p) {
  const std::string wants = json_list(p.wants.size(), [&](std::size_t w) {
    const mig::Answer& answer = p.plan.answers[w];
    return "{" + json_pair("want", json_text(config::to_text(p.wants[w]))) + "," +
           json_pair("count", std::to_string(p.wants[w].count)) + "," +
           json_pair("weight", std::to_string(p.wants[w].weight)) + "," +
           json_pair("served", std::to_string(answer.served)) + "," +
           json_pair("shortage", json_text(mig::name_of(answer.shortage))) + "," +
           json_pair("at_most", std::to_string(answer.at_most)) + "}";
  });
  const std::string devices = json_list(p.layout.devices.size(), [&](std::size_t d) {
    return json_device(p, static_cast<std::uint32_t>(d));
  });
  const std::string steps = json_list(p.plan.steps.size(), [&](std::size_t i) {
    const mig::Step& step = p.plan.steps[i];
    return "{" +
           json_pair("do", step.kind == mig::StepKind::create ? "\"create\"" : "\"destroy\"") +
           "," + json_pair("device", json_text(p.layout.names[step.device])) + "," +
           json_place(p.layout.devices[step.device], step.place) + "}";
  });
  const bool exact = p.plan.method == mig::Method::exact;
  return "{" + json_pair("method", exact ? "\"exact\"" : "\"bounded\"") + "," +
         json_pair("weight_served", std::to_string(p.plan.score.worth)) + "," +
         json_pair("weight_bound", std::to_string(p.plan.worth_bound)) + "," +
         json_pair("devices_touched", std::to_string(p.plan.score.cost.touched)) + "," +
         json_pair("wants", wants) + "," + json_pair("devices", devices) + "," +
         json_pair("steps", steps) + "}";
}

}  // namespace

int mig_plan(const Context& context, const MigPlanOptions& options) {
  const Result<Planned> result = planned(options);
  if (!result) return context.failed(result.error());
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(plan_json(*result));
    return 0;
  }
  print_devices(terminal, *result);
  print_answers(terminal, *result);
  print_steps(terminal, *result);
  return 0;
}

}  // namespace neap::cli
