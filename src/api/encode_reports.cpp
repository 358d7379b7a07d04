#include <nlohmann/json.hpp>

#include "api/encode_json.h"
#include "api/reports.h"

namespace neap::api {

namespace {

using Json = OrderedJson;
using ledger::PreemptionCounts;
using ledger::QueueCapacity;

Json spread_json(const ledger::Spread& spread) {
  return {{"count", spread.count},
          {"p50", spread.p50},
          {"p95", spread.p95},
          {"p99", spread.p99},
          {"max", spread.most}};
}

Json counts_json(const PreemptionCounts& counts) {
  Json out;
  out["asked"] = counts.asked;
  out["done"] = counts.done;
  out["withdrawn"] = counts.withdrawn;
  out["failed"] = counts.failed;
  out["open"] = counts.open;
  out["success_ppm"] = counts.success_ppm();
  out["at_boundary"] = counts.at_boundary;
  out["on_demand"] = counts.on_demand;
  out["at_end"] = counts.at_end;
  out["killed"] = counts.killed;
  out["in_time"] = counts.in_time;
  out["lost_us"] = spread_json(counts.lost);
  out["release_us"] = spread_json(counts.release);
  out["promised_us"] = spread_json(counts.promised);
  return out;
}

Json groups_json(const std::map<std::string, PreemptionCounts>& groups) {
  Json out = Json::object();
  for (const auto& [name, counts] : groups) out[name] = counts_json(counts);
  return out;
}

Json queue_json(const QueueCapacity& queue) {
  Json out;
  out["team"] = queue.team;
  out["tier"] = queue.tier;
  out["stays"] = queue.stays;
  out["cut"] = queue.cut;
  out["asked"] = queue.asked.to_string();
  out["held"] = queue.held.to_string();
  out["kept"] = queue.kept.to_string();
  out["effective_ppm"] = queue.effective_ppm;
  out["effective"] = queue.none ? "none" : "some";
  return out;
}

Json check_json(const DrillCheckRow& check) {
  return {{"name", check.name},
          {"figure", check.figure},
          {"limit", check.limit},
          {"kept", check.open ? Json(nullptr) : Json(check.kept)}};
}

Json replica_json(const DrillReplicaRow& replica) {
  return {{"name", replica.name},
          {"source", replica.source},
          {"asked_us", known(replica.asked_us)},
          {"placed_us", known(replica.placed_us)},
          {"ready_us", known(replica.ready_us)}};
}

Json victim_json(const DrillVictimRow& victim) {
  return {{"id", victim.task.id},
          {"name", victim.task.name},
          {"asked_us", known(victim.asked_us)},
          {"promised_us", known(victim.promised_us)},
          {"left_us", known(victim.left_us)},
          {"resumed_us", known(victim.resumed_us)},
          {"lost_us", victim.lost_us},
          {"withdrawn", victim.withdrawn},
          {"forced", victim.forced}};
}

}  // namespace

std::string encode(const ledger::PreemptionReport& report) {
  Json out;
  out["from_us"] = report.from.us;
  out["until_us"] = report.until.us;
  out["complete_from_us"] = report.complete_from.us;
  out["protect_us"] = report.protect.value;
  out["all"] = counts_json(report.all);
  out["break_glass"] = counts_json(report.break_glass);
  out["teams"] = groups_json(report.by_team);
  out["tiers"] = groups_json(report.by_tier);
  out["queues"] = groups_json(report.by_queue);
  Json capacity = Json::array();
  for (const QueueCapacity& queue : report.queues) capacity.push_back(queue_json(queue));
  out["capacity"] = std::move(capacity);
  return dump(out);
}

std::string encode(const DrillReport& report) {
  Json out;
  out["phase"] = report.phase;
  out["service"] = report.service;
  out["by"] = report.by;
  out["withdrawn"] = report.withdrawn;
  out["replicas"] = report.replicas;
  out["before"] = report.before;
  out["began_us"] = known(report.began_us);
  out["until_us"] = known(report.until_us);
  out["checks"] = Json::array();
  for (const DrillCheckRow& check : report.checks) out["checks"].push_back(check_json(check));
  out["placed"] = Json::array();
  for (const DrillReplicaRow& replica : report.placed) {
    out["placed"].push_back(replica_json(replica));
  }
  out["victims"] = Json::array();
  for (const DrillVictimRow& victim : report.victims) {
    out["victims"].push_back(victim_json(victim));
  }
  Json result(nullptr);
  if (!report.kind.empty()) {
    result = {{"kind", report.kind},
              {"passed", report.passed},
              {"ended_us", known(report.ended_us)},
              {"detail", report.detail}};
  }
  out["result"] = std::move(result);
  return dump(out);
}

}  // namespace neap::api
