// The results of a study as JSON and as tables of comma separated values.
#include <cstdio>
#include <string>
#include <string_view>

#include "simulate/run/study.h"
#include "trace/json_line.h"

namespace neap::whatif {

namespace {

// Values in the order in which they are written: members of objects keep it.
class Json {
 public:
  Json& open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
    return *this;
  }
  Json& close(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }
  Json& name(std::string_view name) {
    separate();
    text_ += trace::json_string(name) + ":";
    first_ = true;
    return *this;
  }
  Json& number(std::int64_t value) {
    separate();
    text_ += std::to_string(value);
    return *this;
  }
  Json& text(std::string_view value) {
    separate();
    text_ += trace::json_string(value);
    return *this;
  }
  Json& truth(std::int64_t value) {
    separate();
    text_ += value != 0 ? "true" : "false";
    return *this;
  }
  Json& numbers(const std::vector<std::int64_t>& values) {
    open('[');
    for (const std::int64_t value : values) number(value);
    return close(']');
  }
  [[nodiscard]] std::string done() && { return std::move(text_); }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  std::string text_;
  bool first_ = true;
};

void add(Json& json, std::string_view name, const Spread& spread) {
  json.name(name).open('{');
  json.name("count").number(spread.count);
  json.name("mean_us").number(spread.mean_us);
  json.name("p50_us").number(spread.p50_us);
  json.name("p90_us").number(spread.p90_us);
  json.name("p99_us").number(spread.p99_us);
  json.name("max_us").number(spread.max_us);
  json.close('}');
}

void add(Json& json, std::string_view name, const JobFigures& f) {
  json.name(name).open('{');
  json.name("jobs").number(f.jobs);
  json.name("refused").number(f.refused);
  json.name("started").number(f.started);
  json.name("finished").number(f.finished);
  json.name("failed").number(f.failed);
  json.name("unfinished").number(f.unfinished);
  add(json, "wait", f.wait);
  add(json, "completion", f.completion);
  json.name("mean_waiting_us").number(f.mean_waiting_us);
  json.name("preemptions").number(f.preemptions);
  json.name("preempted_jobs").number(f.preempted_jobs);
  json.name("lost_device_us").number(f.lost_device_us);
  json.name("held_device_us").number(f.held_device_us);
  json.name("with_deadline").number(f.with_deadline);
  json.name("deadlines_met").number(f.deadlines_met);
  json.close('}');
}

void add(Json& json, std::string_view name, const std::map<std::string, JobFigures>& groups) {
  json.name(name).open('{');
  for (const auto& [group, figures] : groups) add(json, group, figures);
  json.close('}');
}

void add_curves(Json& json, const Curves& curves) {
  json.name("curves").open('{');
  json.name("span_us").number(curves.span_us);
  json.name("use_milli").open('{');
  for (std::size_t i = 0; i < curves.tiers.size(); ++i) {
    json.name(curves.tiers[i]).numbers(curves.use[i]);
  }
  json.close('}');
  json.name("fragmented_milli").numbers(curves.fragmented);
  json.name("waiting_jobs_milli").numbers(curves.waiting_jobs_milli);
  json.name("waiting_milli").numbers(curves.waiting_milli);
  json.close('}');
}

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

void add_use(Json& json, const Outcome& o) {
  json.name("use").open('{');
  json.name("allocated_ppm").number(o.allocated_ppm);
  json.name("allocated_while_arriving_ppm").number(o.allocated_while_arriving_ppm);
  json.name("effective_ppm").number(o.effective_ppm);
  json.name("fragmented_ppm").number(o.fragmented_ppm);
  json.name("categories_ppm").open('{');
  for (std::size_t i = 0; i < ledger::category_count; ++i) {
    json.name(ledger::name_of(static_cast<ledger::Category>(i))).number(o.by_category_ppm[i]);
  }
  json.close('}').close('}');
}

void add(Json& json, const Outcome& o, WithCurves curves) {
  json.open('{');
  json.name("policy").text(o.policy);
  json.name("seed").number(static_cast<std::int64_t>(o.seed));
  json.name("begin_us").number(o.begin_us);
  json.name("last_arrival_us").number(o.last_arrival_us);
  json.name("end_us").number(o.end_us);
  json.name("cut_off").truth(o.cut_off ? 1 : 0);
  json.name("passed_over").number(o.passed_over);
  add(json, "jobs", o.all);
  add_use(json, o);
  add(json, "tiers", o.tiers);
  add(json, "teams", o.teams);
  json.name("services").open('[');
  for (const ServiceFigures& s : o.services) {
    json.open('{').name("name").text(s.name);
    json.name("mean_replicas_milli").number(s.mean_replicas_milli);
    json.name("most_replicas").number(s.most_replicas);
    json.name("served_ppm").number(s.served_ppm);
    json.name("short_us").number(s.short_us).close('}');
  }
  json.close(']').name("never_started").open('[');
  for (const NeverStarted& n : o.never_started) {
    json.open('{').name("reason").text(n.reason).name("jobs").number(n.jobs);
    json.name("example").text(n.example).name("detail").text(n.detail).close('}');
  }
  json.close(']');
  json.name("wait_quantiles_us").numbers(o.wait_quantiles_us);
  json.name("events").number(o.events);
  json.name("decisions").number(o.decisions);
  json.name("state_hash").text(hex(o.state_hash));
  if (curves == WithCurves::yes) add_curves(json, o.curves);
  json.close('}');
}

void add(Json& json, const Comparison& comparison) {
  json.open('{').name("reference").text(comparison.reference).name("other").text(comparison.other);
  json.name("figures").open('{');
  for (const Compared& c : comparison.figures) {
    json.name(c.name).open('{');
    json.name("reference").number(c.reference_mean).name("other").number(c.other_mean);
    json.name("ratio_ppm").number(c.ratio_ppm);
    json.name("seeds_better").number(c.seeds_better).name("seeds_worse").number(c.seeds_worse);
    json.name("seeds_equal").number(c.seeds_equal).close('}');
  }
  json.close('}').close('}');
}

// A field that holds a comma, a quote or a line end is quoted.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string json_of(const Study& study, const StudyOutcome& outcome, WithCurves curves) {
  Json json;
  json.open('{').name("neap_simulate").number(1);
  json.name("cluster").open('{').name("text").text(study.cluster.text);
  json.name("nodes").number(static_cast<std::int64_t>(study.cluster.nodes.size()));
  json.name("devices").number(study.cluster.devices()).close('}');
  json.name("workload").open('[');
  for (const std::string& file : study.workload.files) json.text(file);
  if (study.workload.generated) json.text("generated " + study.workload.generated->kind);
  json.close(']');
  json.name("seeds_differ").truth(depends_on_seed(study.workload) ? 1 : 0);
  json.name("runs").open('[');
  for (const Outcome& run : outcome.runs) add(json, run, curves);
  json.close(']').name("comparisons").open('[');
  for (const Comparison& comparison : outcome.comparisons) add(json, comparison);
  json.close(']').close('}');
  return std::move(json).done();
}

std::string csv_of(const StudyOutcome& outcome) {
  std::string out =
      "policy,seed,devices,jobs,refused,started,finished,failed,unfinished,"
      "mean_wait_us,p50_wait_us,p90_wait_us,p99_wait_us,max_wait_us,mean_waiting_us,"
      "mean_completion_us,p50_completion_us,p99_completion_us,"
      "allocated_ppm,allocated_while_arriving_ppm,effective_ppm,fragmented_ppm,"
      "preemptions,lost_device_us,with_deadline,deadlines_met,begin_us,last_arrival_us,end_us\n";
  for (const Outcome& o : outcome.runs) {
    const JobFigures& f = o.all;
    out += field(o.policy) + "," + std::to_string(o.seed);
    for (const std::int64_t value : {o.devices,
                                     f.jobs,
                                     f.refused,
                                     f.started,
                                     f.finished,
                                     f.failed,
                                     f.unfinished,
                                     f.wait.mean_us,
                                     f.wait.p50_us,
                                     f.wait.p90_us,
                                     f.wait.p99_us,
                                     f.wait.max_us,
                                     f.mean_waiting_us,
                                     f.completion.mean_us,
                                     f.completion.p50_us,
                                     f.completion.p99_us,
                                     o.allocated_ppm,
                                     o.allocated_while_arriving_ppm,
                                     o.effective_ppm,
                                     o.fragmented_ppm,
                                     f.preemptions,
                                     f.lost_device_us,
                                     f.with_deadline,
                                     f.deadlines_met,
                                     o.begin_us,
                                     o.last_arrival_us,
                                     o.end_us}) {
      out += "," + std::to_string(value);
    }
    out += "\n";
  }
  return out;
}

std::string curves_csv_of(const StudyOutcome& outcome) {
  std::string out = "policy,seed,from_us,series,value_milli\n";
  for (const Outcome& o : outcome.runs) {
    const Curves& curves = o.curves;
    const auto rows = [&](const std::string& series, const std::vector<std::int64_t>& values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t from = o.begin_us + curves.span_us * static_cast<std::int64_t>(i);
        out += field(o.policy) + "," + std::to_string(o.seed) + "," + std::to_string(from) + "," +
               field(series) + "," + std::to_string(values[i]) + "\n";
      }
    };
    for (std::size_t i = 0; i < curves.tiers.size(); ++i) {
      rows("use " + curves.tiers[i], curves.use[i]);
    }
    rows("fragmented", curves.fragmented);
    rows("waiting_jobs", curves.waiting_jobs_milli);
    rows("waiting_devices", curves.waiting_milli);
  }
  return out;
}

}  // namespace neap::whatif
