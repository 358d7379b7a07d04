#include "cli/assess.h"

#include <array>
#include <utility>

#include "cli/format.h"
#include "cli/guard.h"
#include "config/values.h"
#include "simulate/assess/assess.h"
#include "simulate/run/recorded_use.h"

namespace neap::cli {

namespace {

template <class T>
Result<void> read(const char* option, const std::string& text,
                  config::Parsed<T> (*parse)(std::string_view), T& into) {
  auto value = parse(text);
  if (!value) return fail(ErrorCode::invalid_argument, value.error(), option);
  into = *value;
  return {};
}

Result<assess::AssessSpec> spec_of(const AssessOptions& options, Micros& slot) {
  assess::AssessSpec spec;
  spec.training_devices = options.training_devices;
  spec.inference_devices = options.inference_devices;
  const Result<void> all[] = {
      read("--slot", options.slot, &config::parse_duration, slot),
      read("--interruptible", options.interruptible, &config::parse_part, spec.interruptible),
      read("--reserve", options.reserve, &config::parse_part, spec.reserve),
      read("--lead", options.lead, &config::parse_duration, spec.lead),
      read("--switch-cost", options.switch_cost, &config::parse_duration, spec.switch_cost),
      read("--most-delay", options.most_delay, &config::parse_duration, spec.most_delay)};
  for (const Result<void>& one : all) {
    if (!one) return tl::unexpected(one.error());
  }
  if (slot < minutes(1) || slot > hours(1) || hours(1).value % slot.value != 0) {
    return fail(ErrorCode::invalid_argument, "expected 1min to 1h, and a divisor of an hour",
                "--slot");
  }
  return spec;
}

Result<whatif::RecordedUse> read(const AssessOptions& options, Micros slot) {
  const bool files = !options.training.empty() && !options.inference.empty();
  if (files == !options.journal.empty() || options.training.empty() != options.inference.empty()) {
    return fail(ErrorCode::invalid_argument,
                "expected --training and --inference, or --journal alone", "--training");
  }
  if (!files) return whatif::read_use_of_journal(options.journal, slot);
  auto training = assess::read_use(options.training, slot);
  if (!training) return tl::unexpected(training.error());
  auto inference = assess::read_use(options.inference, slot);
  if (!inference) return tl::unexpected(inference.error());
  return whatif::RecordedUse{std::move(*training), std::move(*inference)};
}

std::string list_text(const std::array<std::int64_t, 24>& curve) {
  std::string text;
  for (const std::int64_t milli : curve) {
    text += (text.empty() ? "" : ",") + std::to_string(milli);
  }
  return "[" + text + "]";
}

std::string json_of(const assess::Assessment& a) {
  const auto number = [](const char* name, std::int64_t value) {
    return std::string("\"") + name + "\":" + std::to_string(value) + ",";
  };
  const char* gain = a.gain == assess::Gain::full      ? "gain"
                     : a.gain == assess::Gain::limited ? "limited"
                                                       : "none";
  return "{" + number("slots", a.slots) + number("devices_apart", a.apart) +
         number("devices_together", a.together) + number("devices_saved", a.saved) +
         number("use_apart_ppm", a.use_apart_ppm) + number("use_together_ppm", a.use_together_ppm) +
         number("complementary_ppm", a.complementary_ppm) +
         number("inference_mean_over_peak_ppm", a.mean_over_peak_ppm) +
         number("switches_per_day_milli", a.switches_per_day_milli) +
         number("switching_ppm", a.switching_ppm) +
         number("longest_delay_us", a.longest_delay.value) +
         "\"training_milli_by_hour\":" + list_text(a.training) +
         ",\"inference_milli_by_hour\":" + list_text(a.inference) + ",\"gain\":\"" + gain +
         "\",\"verdict\":" + json_text(a.verdict) + "}";
}

void print_curves(Terminal& terminal, const assess::Assessment& a) {
  constexpr std::int64_t width = 30;
  Table table({"HOUR", "TRAINING", "INFERENCE", "", "t: training, i: inference"});
  for (std::size_t h = 0; h < 24; ++h) {
    const std::int64_t all = a.apart * 1'000;
    const auto t = static_cast<std::size_t>(a.training[h] * width / all);
    const auto i = static_cast<std::size_t>(a.inference[h] * width / all);
    table.add({{std::to_string(h)},
               {short_text(a.training[h] * 1'000, 1)},
               {short_text(a.inference[h] * 1'000, 1)},
               {""},
               {std::string(t, 't') + std::string(i, 'i')}});
  }
  table.print(terminal);
}

}  // namespace

int assess(const Context& context, const AssessOptions& options) {
  Micros slot{0};
  const auto spec = spec_of(options, slot);
  if (!spec) return context.failed(spec.error());
  const auto use = read(options, slot);
  if (!use) return context.failed(use.error());
  const auto found = assess::assess(*spec, use->training, use->inference);
  if (!found) return context.failed(found.error());
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(json_of(*found));
    return 0;
  }
  print_curves(terminal, *found);
  Table table({"FIGURE", "VALUE"});
  const auto row = [&](std::string name, std::string value) {
    table.add({{std::move(name)}, {std::move(value)}});
  };
  row("devices apart", std::to_string(found->apart));
  row("devices together", std::to_string(found->together));
  row("in use apart", percent_text(found->use_apart_ppm));
  row("in use together", percent_text(found->use_together_ppm));
  row("complementary", percent_text(found->complementary_ppm) + " of the smaller peak");
  row("inference, mean of peak", percent_text(found->mean_over_peak_ppm));
  row("training that may be interrupted", percent_text(spec->interruptible.value));
  row("switches a day", short_text(found->switches_per_day_milli * 1'000, 1) + " devices, " +
                            percent_text(found->switching_ppm) + " of the device time");
  row("training put off by", "at most " + length_text(found->longest_delay.value));
  terminal.line("");
  table.print(terminal);
  terminal.line(found->verdict);
  return 0;
}

}  // namespace neap::cli
