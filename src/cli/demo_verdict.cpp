#include "cli/demo_verdict.h"

#include <algorithm>

#include "cli/demo_files.h"
#include "cli/demo_screen.h"
#include "cli/format.h"

namespace neap::cli {
namespace {

std::string seconds_text(std::int64_t us) {
  const std::int64_t tenths = (us + 50'000) / 100'000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

const ReadyReplica* first_ready(const DemoFigures& figures, auto wanted) {
  const auto found = std::ranges::find_if(figures.evidence.ready, wanted);
  return found == figures.evidence.ready.end() ? nullptr : &*found;
}

const ReadyReplica* on_guard(const DemoFigures& figures) {
  return first_ready(figures, [](const ReadyReplica& r) { return r.role == "guard"; });
}

const ReadyReplica* from_training(const DemoFigures& figures) {
  return first_ready(figures, [&](const ReadyReplica& r) {
    return !r.taken_from.empty() && r.time_us > figures.burst_began_us;
  });
}

// The last one that was there before training gave up a device: an uneven night can bring one
// before the burst does.
const ReadyReplica* on_buffer(const DemoFigures& figures) {
  const ReadyReplica* taken = from_training(figures);
  const ReadyReplica* last = nullptr;
  for (const ReadyReplica& replica : figures.evidence.ready) {
    if (taken != nullptr && replica.time_us > taken->time_us) break;
    if (replica.role == "buffer") last = &replica;
  }
  return last;
}

std::string after_burst(const DemoFigures& figures, const ReadyReplica* replica) {
  if (replica == nullptr) return "never";
  const std::int64_t after = replica->time_us - figures.burst_began_us;
  return after < 0 ? "before it began" : seconds_text(after) + " after it began";
}

std::string percentiles_text(const measure::Histogram& times) {
  const measure::Percentiles p = times.percentiles();
  return "p50 " + latency_text(p.p50) + ", p95 " + latency_text(p.p95) + ", p99 " +
         latency_text(p.p99);
}

std::string failures_text(const load::LoadSummary& load) {
  std::string text = std::to_string(load.failed()) + " of " + std::to_string(load.scheduled);
  for (std::size_t i = 1; i < load::outcome_count; ++i) {
    const auto outcome = static_cast<load::Outcome>(i);
    if (load.count(outcome) == 0) continue;
    text += ", " + std::to_string(load.count(outcome)) + " " + std::string(name_of(outcome));
  }
  return text;
}

Promise training_is_back(const DemoFigures& figures) {
  Promise promise{"training runs again after the burst", "", true};
  for (const char* name : demo_trainings) {
    const SeenTask* task = figures.at_end.task(name);
    const std::string state = task == nullptr ? "gone" : task->state;
    promise.held = promise.held && state == "running";
    promise.figure += (promise.figure.empty() ? "" : ", ") + std::string(name) + " " + state;
    if (task != nullptr) promise.figure += " at step " + std::to_string(task->step);
  }
  promise.held = promise.held && figures.evidence.restarts > 0;
  return promise;
}

std::string quoted(const std::string& name) { return json_text(name) + ": "; }

std::string json_percentiles(const measure::Histogram& times) {
  const measure::Percentiles p = times.percentiles();
  return "{\"p50_us\": " + std::to_string(p.p50.value) +
         ", \"p95_us\": " + std::to_string(p.p95.value) +
         ", \"p99_us\": " + std::to_string(p.p99.value) +
         ", \"max_us\": " + std::to_string(times.max().value) +
         ", \"count\": " + std::to_string(times.count()) + "}";
}

std::string json_after_burst(const DemoFigures& figures, const ReadyReplica* replica) {
  return replica == nullptr ? "null" : std::to_string(replica->time_us - figures.burst_began_us);
}

}  // namespace

std::vector<Promise> promises_of(const DemoFigures& figures) {
  const Evidence& evidence = figures.evidence;
  const load::LoadSummary& load = figures.load;
  const std::int64_t lost = figures.usage.number_at("lost_work_us", -1);
  const std::int64_t asked = evidence.yields_asked - evidence.withdrawn;
  const ReadyReplica* taken = from_training(figures);
  std::vector<Promise> promises;
  promises.push_back({"the first replica serves from the guard",
                      on_guard(figures) == nullptr ? "no" : on_guard(figures)->name,
                      on_guard(figures) != nullptr});
  promises.push_back({"the burst is served from the buffer first",
                      after_burst(figures, on_buffer(figures)), on_buffer(figures) != nullptr});
  promises.push_back(
      {"then training yields a device to it",
       taken == nullptr ? "never"
                        : taken->taken_from + ", serving the burst " + after_burst(figures, taken),
       taken != nullptr});
  promises.push_back({"every preemption at a checkpoint boundary",
                      std::to_string(evidence.yielded) + " of " + std::to_string(asked) + ", " +
                          std::to_string(evidence.killed) + " killed",
                      asked > 0 && evidence.yielded >= asked && evidence.killed == 0});
  promises.push_back({"lost work", lost < 0 ? "unknown" : seconds_text(lost), lost == 0});
  promises.push_back(training_is_back(figures));
  promises.push_back({"failed requests", failures_text(load),
                      load.scheduled > 0 && load.failed() == 0 &&
                          load.count(load::Outcome::ok) == load.scheduled});
  promises.push_back({"the three numbers are known", "",
                      figures.usage.number_at("effective_utilisation_ppm") > 0 &&
                          load.first_byte.count() > 0 &&
                          figures.usage.number_at("mean_wait_us", -1) >= 0});
  return promises;
}

bool all_held(const std::vector<Promise>& promises) {
  return std::ranges::all_of(promises, &Promise::held);
}

void print_report(const DemoFigures& figures, const std::vector<Promise>& promises,
                  Terminal& terminal) {
  const load::LoadSummary& load = figures.load;
  const Value& usage = figures.usage;
  terminal.line("");
  terminal.line("The three numbers");
  terminal.line("  effective utilisation  " +
                part_text(usage.number_at("effective_utilisation_ppm")) + " of " +
                std::to_string(demo_devices) + " devices over " +
                length_text(usage.at("pool").number_at("now_us") - figures.pool_began_us));
  terminal.line("  time to first token    " + percentiles_text(load.first_byte) + "  (" +
                std::to_string(load.count(load::Outcome::ok)) +
                " requests, from their scheduled start)");
  terminal.line("  mean wait of a task    " + seconds_text(usage.number_at("mean_wait_us")) +
                "  (" + std::to_string(usage.number_at("tasks")) + " training jobs)");
  terminal.line("");
  terminal.line("Besides");
  terminal.line("  whole answers          " + percentiles_text(load.total));
  terminal.line("  between tokens         " + percentiles_text(load.inter_token));
  terminal.line("  generator's lateness   p99 " +
                latency_text(load.lateness.quantile(Ppm(990'000))));
  terminal.line("  replicas at once       " + std::to_string(figures.evidence.replicas_most));
  terminal.line("");
  terminal.line("What was promised");
  for (const Promise& promise : promises) {
    const std::string mark = promise.held ? terminal.painted("ok    ", Colour::good)
                                          : terminal.painted("FAILED", Colour::bad);
    terminal.line("  " + mark + "  " + promise.text +
                  (promise.figure.empty() ? "" : ": " + harmless(promise.figure)));
  }
  terminal.line("");
  terminal.line("The devices were simulated; the processes, requests and checkpoints were real.");
}

std::string report_json(const DemoFigures& figures, const std::vector<Promise>& promises) {
  const load::LoadSummary& load = figures.load;
  const Value& usage = figures.usage;
  std::string out = "{";
  out += quoted("held") + (all_held(promises) ? "true" : "false");
  out += ", " + quoted("devices") + "\"simulated\"";
  out += ", " + quoted("effective_utilisation_ppm") +
         std::to_string(usage.number_at("effective_utilisation_ppm"));
  out += ", " + quoted("first_token") + json_percentiles(load.first_byte);
  out += ", " + quoted("total") + json_percentiles(load.total);
  out += ", " + quoted("inter_token") + json_percentiles(load.inter_token);
  out += ", " + quoted("generator_lateness") + json_percentiles(load.lateness);
  out += ", " + quoted("mean_wait_us") + std::to_string(usage.number_at("mean_wait_us"));
  out += ", " + quoted("lost_work_us") + std::to_string(usage.number_at("lost_work_us", -1));
  out += ", " + quoted("preemptions") + std::to_string(usage.number_at("preemptions"));
  out += ", " + quoted("at_boundaries") + std::to_string(figures.evidence.yielded);
  out += ", " + quoted("requests") + std::to_string(load.scheduled);
  out += ", " + quoted("failed_requests") + std::to_string(load.failed());
  out += ", " + quoted("burst_to_buffer_us") + json_after_burst(figures, on_buffer(figures));
  out += ", " + quoted("burst_to_serving_us") + json_after_burst(figures, from_training(figures));
  out += ", " + quoted("promises") + "[";
  for (std::size_t i = 0; i < promises.size(); ++i) {
    out += (i == 0 ? "{" : ", {") + quoted("promise") + json_text(promises[i].text) + ", " +
           quoted("figure") + json_text(promises[i].figure) + ", " + quoted("held") +
           (promises[i].held ? "true}" : "false}");
  }
  return out + "]}";
}

}  // namespace neap::cli
