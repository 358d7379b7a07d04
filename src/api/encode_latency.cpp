#include <nlohmann/json.hpp>
#include <utility>

#include "api/encode.h"
#include "api/encode_json.h"
#include "api/latency.h"

namespace neap::api {

namespace {

using Json = OrderedJson;

Json times_json(const TimesRow& times) {
  return {{"count", times.count},
          {"p50_us", known(times.p50_us)},
          {"p95_us", known(times.p95_us)},
          {"p99_us", known(times.p99_us)},
          {"max_us", known(times.max_us)}};
}

Json window_json(const LatencyWindowRow& window) {
  Json out;
  out["length_us"] = window.length_us;
  out["requests"] = window.requests;
  out["good"] = window.good;
  out["failed"] = window.failed;
  out["shed"] = window.shed;
  out["bad_requests"] = window.bad_requests;
  out["left"] = window.left;
  out["bytes_in"] = window.bytes_in;
  out["bytes_out"] = window.bytes_out;
  out["queued"] = times_json(window.queued);
  out["first_byte"] = times_json(window.first_byte);
  out["total"] = times_json(window.total);
  return out;
}

Json engine_json(const EngineRow& engine) {
  Json out;
  out["replicas"] = engine.replicas;
  out["asked"] = engine.asked;
  out["age_us"] = known(engine.age_us);
  out["running"] = known(engine.running);
  out["waiting"] = known(engine.waiting);
  out["kv_use_ppm"] = known(engine.kv_use_ppm);
  out["prompt_tokens_milli_per_s"] = known(engine.prompt_tokens_milli_per_s);
  out["generated_tokens_milli_per_s"] = known(engine.generated_tokens_milli_per_s);
  out["inter_token_count"] = known(engine.inter_token_count);
  out["inter_token_p50_us"] = known(engine.inter_token_p50_us);
  out["inter_token_p95_us"] = known(engine.inter_token_p95_us);
  out["inter_token_p99_us"] = known(engine.inter_token_p99_us);
  return out;
}

}  // namespace

std::string encode(const LatencyReport& report) {
  Json out;
  out["pool"] = Json::parse(encode(report.pool));
  out["service"] = Json::parse(encode(report.subject));
  out["requests"] = report.requests;
  out["slo_first_byte_us"] = known(report.slo_first_byte_us);
  out["objective_ppm"] = report.objective_ppm;
  out["burn"] = Json::array();
  for (const BurnRow& burn : report.burns) {
    out["burn"].push_back({{"name", burn.name},
                           {"long_us", burn.long_us},
                           {"short_us", burn.short_us},
                           {"limit_milli", burn.limit_milli},
                           {"long_milli", known(burn.long_milli)},
                           {"short_milli", known(burn.short_milli)},
                           {"alarm", burn.alarm}});
  }
  out["series"] = Json::array();
  for (const LatencySeriesRow& series : report.series) {
    Json row = {{"dimension", series.dimension}, {"name", series.name}};
    row["windows"] = Json::array();
    for (const LatencyWindowRow& window : series.windows) {
      row["windows"].push_back(window_json(window));
    }
    out["series"].push_back(std::move(row));
  }
  out["engine"] = engine_json(report.engine);
  return dump(out);
}

}  // namespace neap::api
