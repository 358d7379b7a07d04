#include "api/encode.h"

#include <nlohmann/json.hpp>

#include "api/encode_json.h"

namespace neap::api {

namespace {

using Json = OrderedJson;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

template <class Row, class Encode>
Json list(const std::vector<Row>& rows, Encode encode_row) {
  Json out = Json::array();
  for (const Row& row : rows) out.push_back(encode_row(row));
  return out;
}

Json pool_json(const PoolStatus& pool) {
  Json out;
  out["version"] = pool.version;
  out["device_source"] = pool.device_source;
  out["sequence"] = pool.sequence;
  out["now_us"] = pool.now_us;
  out["started_us"] = pool.started_us;
  out["paused"] = !pool.paused_by.empty();
  out["paused_by"] = text_or_null(pool.paused_by);
  out["paused_since_us"] = known(pool.paused_since_us);
  out["devices_total"] = pool.devices_total;
  out["devices_usable"] = pool.devices_usable;
  out["devices_guard"] = pool.devices_guard;
  out["devices_buffer"] = pool.devices_buffer;
  out["devices_lent"] = pool.devices_lent;
  out["tasks_waiting"] = pool.tasks_waiting;
  out["tasks_running"] = pool.tasks_running;
  out["stage"] = text_or_null(pool.stage);
  out["preset"] = text_or_null(pool.preset);
  out["isolation"] = text_or_null(pool.isolation);
  out["conditions"] = list(pool.conditions, [](const Condition& condition) {
    return Json{{"name", condition.name}, {"message", condition.message}};
  });
  return out;
}

Json task_json(const TaskRow& row) {
  Json out;
  out["id"] = row.subject.id;
  out["name"] = row.subject.name;
  out["kind"] = row.kind;
  out["owner_uid"] = row.subject.owner_uid;
  out["user"] = row.user;
  out["team"] = row.team;
  out["tier"] = row.tier;
  out["service"] = text_or_null(row.service);
  out["state"] = row.state;
  out["reason"] = row.reason;
  out["place"] = known(row.place);
  out["gpus"] = row.gpus;
  out["least_gpus"] = row.least_gpus;
  out["compute_milli"] = row.compute_milli;
  out["memory_mib"] = row.memory_mib;
  out["node"] = text_or_null(row.node);
  out["devices"] = row.devices;
  out["submitted_us"] = known(row.submitted_us);
  out["start_by_us"] = known(row.start_by_us);
  out["started_us"] = known(row.started_us);
  out["finished_us"] = known(row.finished_us);
  out["last_checkpoint_us"] = known(row.last_checkpoint_us);
  out["preemptions"] = row.preemptions;
  out["resizes"] = row.resizes;
  out["lost_work_us"] = row.lost_work_us;
  out["step"] = known(row.step);
  out["exit_code"] = known(row.exit_code);
  return out;
}

Json service_json(const ServiceRow& row) {
  Json out;
  out["id"] = row.subject.id;
  out["name"] = row.subject.name;
  out["owner_uid"] = row.subject.owner_uid;
  out["user"] = row.user;
  out["team"] = row.team;
  out["tier"] = row.tier;
  out["state"] = row.state;
  out["reason"] = row.reason;
  out["address"] = text_or_null(row.address);
  out["replicas_min"] = row.replicas_min;
  out["replicas_max"] = row.replicas_max;
  out["replicas_wanted"] = row.replicas_wanted;
  out["replicas_ready"] = row.replicas_ready;
  out["replicas_starting"] = row.replicas_starting;
  out["replicas_draining"] = row.replicas_draining;
  out["utilisation_ppm"] = known(row.utilisation_ppm);
  return out;
}

Json switch_json(const SwitchRow& row) {
  Json out;
  out["service"] = row.service;
  out["leave_us"] = row.leave_us;
  out["leaves_seen"] = row.leaves_seen;
  out["load_us"] = row.load_us;
  out["loads_seen"] = row.loads_seen;
  out["warm_up_us"] = row.warm_up_us;
  out["warm_ups_seen"] = row.warm_ups_seen;
  out["cost_us"] = row.cost_us;
  out["useful_ppm"] = row.useful_ppm;
  out["break_even_us"] = row.break_even_us;
  out["dwell_us"] = known(row.dwell_us);
  out["given_of_day"] = row.given_of_day;
  out["allowed_of_day"] = known(row.allowed_of_day);
  out["again_us"] = known(row.again_us);
  out["given"] = row.given;
  out["taken"] = row.taken;
  out["device_time"] = row.device_time;
  out["share_ppm"] = row.share_ppm;
  return out;
}

Json device_json(const DeviceRow& row) {
  Json out;
  out["name"] = row.name;
  out["node"] = row.node;
  out["fault_domain"] = row.fault_domain;
  out["model"] = row.model;
  out["source"] = row.source;
  out["partition"] = row.partition;
  out["role"] = row.role;
  out["state"] = row.state;
  out["reason"] = row.reason;
  out["memory_mib"] = row.memory_mib;
  out["memory_free_mib"] = row.memory_free_mib;
  out["memory_foreign_mib"] = known(row.memory_foreign_mib);
  out["compute_free_milli"] = row.compute_free_milli;
  out["holders"] = list(row.holders, [](const DeviceHolder& holder) {
    return Json{{"task", holder.task.name},
                {"task_id", holder.task.id},
                {"compute_milli", holder.compute_milli},
                {"memory_mib", holder.memory_mib}};
  });
  return out;
}

Json declared_json(const std::vector<Attribute>& declared) {
  Json out = Json::object();
  for (const Attribute& attribute : declared) out[attribute.name] = attribute.value;
  return out;
}

Json trail_json(const std::vector<TrailEntry>& trail) {
  return list(trail, [](const TrailEntry& entry) {
    return Json{{"sequence", entry.sequence},
                {"time_us", entry.time_us},
                {"state", entry.state},
                {"place", text_or_null(entry.place)},
                {"reason", entry.reason}};
  });
}

Json event_json(const EventRow& event) {
  return Json{{"sequence", event.sequence},
              {"time_us", event.time_us},
              {"kind", event.kind},
              {"subject", text_or_null(event.subject)},
              {"message", event.message}};
}

// Row by row: the tree of ten thousand rows would take several times the memory of their text.
template <class Row, class Encode>
std::string listing_text(const PoolStatus& pool, const char* name, const std::vector<Row>& rows,
                         Encode encode_row) {
  std::string out = "{\"pool\":" + dump(pool_json(pool)) + ",\"" + name + "\":[";
  const char* separator = "";
  for (const Row& row : rows) {
    out += separator + dump(encode_row(row));
    separator = ",";
  }
  out += "]}";
  return out;
}

}  // namespace

std::string encode(const PoolStatus& status) { return dump({{"pool", pool_json(status)}}); }

std::string encode(const TaskListing& listing) {
  return listing_text(listing.pool, "tasks", listing.tasks, task_json);
}

std::string encode(const ServiceListing& listing) {
  return listing_text(listing.pool, "services", listing.services, service_json);
}

std::string encode(const DeviceListing& listing) {
  return listing_text(listing.pool, "devices", listing.devices, device_json);
}

std::string encode(const TaskDetail& detail) {
  Json out;
  out["pool"] = pool_json(detail.pool);
  out["task"] = task_json(detail.row);
  out["declared"] = declared_json(detail.declared);
  out["measured"] = declared_json(detail.measured);
  out["host_limits"] = {{"asked", declared_json(detail.host.asked)},
                        {"enforced", declared_json(detail.host.enforced)},
                        {"not_enforced", declared_json(detail.host.not_enforced)}};
  out["trail"] = trail_json(detail.trail);
  return dump(out);
}

namespace {

Json stage_json(const StageRow& row) {
  Json out;
  out["name"] = row.name;
  out["kind"] = row.kind;
  out["work"] = row.work;
  out["state"] = row.state;
  out["reason"] = row.reason;
  out["after"] = row.after;
  out["metrics"] = declared_json(row.metrics);
  out["artifacts"] = text_or_null(row.artifacts);
  out["since_us"] = known(row.since_us);
  return out;
}

Json pipeline_json(const PipelineRow& row) {
  Json out;
  out["id"] = row.subject.id;
  out["name"] = row.subject.name;
  out["owner_uid"] = row.subject.owner_uid;
  out["user"] = row.user;
  out["team"] = row.team;
  out["state"] = row.state;
  out["submitted_us"] = known(row.submitted_us);
  out["finished_us"] = known(row.finished_us);
  out["stages"] = list(row.stages, stage_json);
  return out;
}

}  // namespace

std::string encode(const PipelineListing& listing) {
  return listing_text(listing.pool, "pipelines", listing.pipelines, pipeline_json);
}

std::string encode(const PipelineDetail& detail) {
  Json out;
  out["pool"] = pool_json(detail.pool);
  out["pipeline"] = pipeline_json(detail.row);
  return dump(out);
}

std::string encode(const ServiceDetail& detail) {
  Json out;
  out["pool"] = pool_json(detail.pool);
  out["service"] = service_json(detail.row);
  out["declared"] = declared_json(detail.declared);
  out["replicas"] = list(detail.replicas, [](const ReplicaRow& replica) {
    Json row = task_json(replica.task);
    row["health"] = replica.health;
    row["port"] = known(replica.port);
    return row;
  });
  out["switches"] = switch_json(detail.switches);
  out["trail"] = trail_json(detail.trail);
  return dump(out);
}

std::string encode(const WhyReport& report) {
  Json out;
  out["pool"] = pool_json(report.pool);
  out["task"] = task_json(report.row);
  out["code"] = report.code;
  out["reason"] = report.reason;
  out["place"] = known(report.place);
  out["queue_length"] = report.queue_length;
  out["unblocks"] = report.unblocks;
  out["admission"] = list(report.admission, [](const AdmissionCheck& check) {
    return Json{{"name", check.name}, {"state", check.state}, {"message", check.message}};
  });
  out["estimate_us"] = known(report.estimate_us);
  out["start_p50_us"] = known(report.start_p50_us);
  out["start_p90_us"] = known(report.start_p90_us);
  out["forecast_age_us"] = known(report.forecast_age_us);
  out["forecast_draws"] = report.forecast_draws;
  out["promise"] = text_or_null(report.promise);
  return dump(out);
}

std::string encode(const PoolDetail& detail) {
  const auto attributes = [](const std::vector<Attribute>& rows) {
    Json out = Json::object();
    for (const Attribute& row : rows) out[row.name] = row.value;
    return out;
  };
  Json out;
  out["pool"] = pool_json(detail.pool);
  out["stage_since_us"] = known(detail.stage_since_us);
  out["next_stage"] = text_or_null(detail.next_stage);
  out["gates"] = list(detail.gates, [](const GateRow& row) {
    return Json{{"name", row.name}, {"met", row.met}, {"detail", row.detail}};
  });
  out["seen"] = attributes(detail.seen);
  out["changes"] = list(detail.changes, [](const StageChangeRow& row) {
    return Json{{"time_us", row.time_us},
                {"from", row.from},
                {"to", row.to},
                {"forced", row.forced},
                {"by", row.by},
                {"why", text_or_null(row.why)},
                {"missing", text_or_null(row.missing)}};
  });
  out["derived"] = attributes(detail.derived);
  return dump(out);
}

std::string encode(const ReviewReport& report) {
  Json out;
  out["pool"] = pool_json(report.pool);
  out["from_us"] = report.from_us;
  out["to_us"] = report.to_us;
  out["verdict"] = report.verdict;
  out["why"] = report.why;
  out["preset_next"] = text_or_null(report.preset_next);
  out["guard_next"] = known(report.guard_next);
  out["buffer_next"] = known(report.buffer_next);
  out["evidence"] = report.evidence;
  out["figures"] = Json::object();
  for (const Attribute& row : report.figures) out["figures"][row.name] = row.value;
  return dump(out);
}

std::string encode(const ProfileListing& listing) {
  const auto observed = [](const ObservedRow& row) {
    return Json{{"count", row.count}, {"p90", known(row.p90)}, {"most", known(row.most)}};
  };
  Json out;
  out["pool"] = pool_json(listing.pool);
  out["profiles"] = list(listing.profiles, [&](const ProfileRow& row) {
    return Json{{"name", row.name},
                {"kind", row.kind},
                {"used_us", row.used_us},
                {"declared_mib", row.declared_mib},
                {"weights_mib", row.weights_mib},
                {"kv_cache_mib", row.kv_cache_mib},
                {"activations_mib", row.activations_mib},
                {"framework_mib", row.framework_mib},
                {"memory_mib", observed(row.memory_mib)},
                {"work_us", observed(row.work_us)},
                {"save_us", observed(row.save_us)},
                {"stall_us", observed(row.stall_us)},
                {"restore_us", observed(row.restore_us)}};
  });
  return dump(out);
}

std::string encode(const ForecastReport& report) {
  Json out;
  out["pool"] = pool_json(report.pool);
  out["made_us"] = known(report.made_us);
  out["age_us"] = known(report.age_us);
  out["draws"] = report.draws;
  out["horizon_us"] = report.horizon_us;
  out["starts"] = list(report.starts, [](const StartRow& row) {
    return Json{{"task_id", row.task.id},
                {"task", row.task.name},
                {"p50_us", known(row.p50_us)},
                {"p90_us", known(row.p90_us)}};
  });
  return dump(out);
}

std::string encode(const TeamListing& listing) {
  Json out;
  out["pool"] = pool_json(listing.pool);
  out["teams"] = list(listing.teams, [](const TeamRow& row) {
    return Json{{"name", row.name},
                {"parent", text_or_null(row.parent)},
                {"held_milli", row.held_milli},
                {"claimed_milli", row.claimed_milli},
                {"leaving_milli", row.leaving_milli},
                {"guarantee_milli", row.guarantee_milli},
                {"limit_milli", known(row.limit_milli)},
                {"weight", row.weight},
                {"tasks_holding", row.tasks_holding},
                {"tasks_waiting", row.tasks_waiting}};
  });
  return dump(out);
}

std::string encode(const EventRow& event) { return dump(event_json(event)); }

std::string encode(const EventPage& page) {
  return dump({{"events", list(page.events, event_json)}, {"last", page.last}});
}

std::string encode(const LogChunk& chunk) {
  return dump({{"text", chunk.bytes},
               {"next_offset", chunk.next_offset},
               {"state", chunk.state},
               {"exit_code", known(chunk.exit_code)}});
}

std::string encode(const VersionInfo& version) {
  return dump({{"version", version.version},
               {"commit", version.commit},
               {"journal_schema", version.schema},
               {"sequence", version.sequence},
               {"state_hash", version.state_hash}});
}

std::string encode(const UsageReport& report) {
  Json out;
  out["pool"] = pool_json(report.pool);
  out["provisioned"] = report.provisioned;
  for (const Attribute& category : report.categories) {
    out["categories"][category.name] = category.value;
  }
  out["effective_utilisation_ppm"] = report.effective_utilisation_ppm;
  out["unverified_ppm"] = report.unverified_ppm;
  out["tasks"] = report.tasks;
  out["mean_wait_us"] = report.mean_wait_us;
  out["preemptions"] = report.preemptions;
  out["lost_work_us"] = report.lost_work_us;
  out["switches"] = list(report.switches, switch_json);
  return dump(out);
}

std::string encode(const std::vector<DoctorCheck>& checks) {
  return dump({{"checks", list(checks, [](const DoctorCheck& check) {
                  return Json{{"name", check.name},
                              {"state", check.state},
                              {"message", check.message},
                              {"remedy", text_or_null(check.remedy)}};
                })}});
}

std::string encode(const Subject& subject) {
  return dump({{"id", subject.id}, {"name", subject.name}});
}

}  // namespace neap::api
