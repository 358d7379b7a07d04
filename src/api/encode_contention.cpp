#include <nlohmann/json.hpp>

#include <cmath>
#include <utility>

#include "api/contention.h"
#include "api/encode.h"
#include "api/encode_json.h"

namespace neap::api {
namespace {

using Json = OrderedJson;

constexpr std::int64_t frozen_max_us = 120'000'000;  // SIGKILL and health checks of others wait

template <class Row>
struct Member {
  const char* name;
  std::int64_t Row::*place;
};

constexpr Member<SpeedRow> speed_members[] = {
    {"first_byte_p50_us", &SpeedRow::first_byte_p50_us},
    {"first_byte_p99_us", &SpeedRow::first_byte_p99_us},
    {"inter_token_p50_us", &SpeedRow::inter_token_p50_us},
    {"inter_token_p99_us", &SpeedRow::inter_token_p99_us},
    {"step_us", &SpeedRow::step_us},
    {"requests_milli_per_s", &SpeedRow::requests_milli_per_s}};
constexpr Member<UseRow> use_members[] = {
    {"cpu_milli", &UseRow::cpu_milli},
    {"cpu_wait_ppm", &UseRow::cpu_wait_ppm},
    {"memory_bytes", &UseRow::memory_bytes},
    {"io_bytes_per_s", &UseRow::io_bytes_per_s},
    {"major_faults_milli_per_s", &UseRow::major_faults_milli_per_s},
    {"steps_milli_per_s", &UseRow::steps_milli_per_s},
    {"disk_await_us", &UseRow::disk_await_us}};

Json speed_json(const SpeedRow& row) {
  Json out = Json::object();
  for (const auto& member : speed_members) out[member.name] = known(row.*member.place);
  return out;
}

Json use_json(const UseRow& row) {
  Json out;
  out["name"] = row.name;
  for (const auto& member : use_members) out[member.name] = known(row.*member.place);
  return out;
}

Json subject_json(const Subject& subject) {
  return {{"id", subject.id}, {"name", subject.name}, {"owner_uid", subject.owner_uid}};
}

Json move_json(const LadderMoveRow& move) {
  Json out;
  out["at_us"] = move.at_us;
  out["from"] = move.from;
  out["to"] = move.to;
  out["resource"] = move.resource;
  out["neighbour"] = move.neighbour;
  out["why"] = move.why;
  out["fault"] = move.fault;
  out["training_steps_milli_per_s"] = known(move.training_steps_milli_per_s);
  return out;
}

Json head_of(const PoolStatus& pool, const Subject& subject) {
  Json out = Json::parse(encode(pool));  // {"pool": ...}
  out["subject"] = subject_json(subject);
  return out;
}

auto wrong_member(std::string what, std::string field) {
  return fail(ErrorCode::invalid_argument, std::move(what), std::move(field));
}

template <class Row, std::size_t n>
Result<void> read_members(const Json& json, const Member<Row> (&members)[n], Row& into,
                          const std::string& field) {
  if (!json.is_object()) return wrong_member("expected an object", field);
  for (const auto& member : members) {
    const auto found = json.find(member.name);
    if (found == json.end() || found->is_null()) continue;
    if (!found->is_number_integer() || found->template get<std::int64_t>() < 0) {
      return wrong_member("expected a whole number of 0 or more, or null",
                          field + "." + member.name);
    }
    into.*member.place = found->template get<std::int64_t>();
  }
  return {};
}

constexpr std::size_t body_max = 64 * 1024;

Result<Json> object_of(std::string_view body) {
  if (body.size() > body_max) return fail(ErrorCode::too_large, "is over 64 KiB", "body");
  int depth = 0;
  const auto shallow = [&depth](int level, Json::parse_event_t, Json&) {
    depth = std::max(depth, level);
    return depth <= 8;
  };
  Json json = Json::parse(body, shallow, false);
  if (json.is_discarded() || !json.is_object())
    return wrong_member("expected a JSON object", "body");
  return json;
}

}  // namespace

std::string encode(const ContentionReport& report) {
  Json out = head_of(report.pool, report.subject);
  out["mode"] = report.mode;
  out["windows"] = report.windows;
  out["resource"] = report.resource;
  out["confidence_ppm"] = report.confidence_ppm;
  out["slowdown_milli"] = known(report.slowdown_milli);
  out["neighbour"] = report.neighbour;
  out["evidence"] = Json::array();
  for (const EvidenceRow& row : report.evidence) {
    // Thousandths, as all other numbers of the API are whole.
    out["evidence"].push_back({{"signal", row.signal},
                               {"unit", row.unit},
                               {"value_milli", std::llround(row.value * 1'000)},
                               {"limit_milli", std::llround(row.limit * 1'000)}});
  }
  out["unknown"] = report.unknown_signals;
  out["rung"] = report.rung;
  out["rung_resource"] = report.rung_resource;
  out["next"] = report.next;
  out["closed"] = report.closed;
  out["moves"] = Json::array();
  for (const LadderMoveRow& move : report.moves) out["moves"].push_back(move_json(move));
  out["speed"] = speed_json(report.speed);
  out["alone"] = speed_json(report.alone);
  out["use"] = use_json(report.use);
  out["neighbours"] = Json::array();
  for (const UseRow& row : report.neighbours) out["neighbours"].push_back(use_json(row));
  out["training_steps_milli_per_s"] = known(report.training_steps_milli_per_s);
  out["training_steps_before_milli_per_s"] = known(report.training_steps_before_milli_per_s);
  return dump(out);
}

std::string encode(const BaselineReport& report) {
  Json out = head_of(report.pool, report.subject);
  out["at_us"] = known(report.at_us);
  out["alone"] = speed_json(report.alone);
  out["mixed"] = speed_json(report.mixed);
  out["client_alone"] = speed_json(report.client_alone);
  out["client_mixed"] = speed_json(report.client_mixed);
  out["use_alone"] = use_json(report.use_alone);
  out["use_mixed"] = use_json(report.use_mixed);
  out["frozen"] = report.frozen;
  return dump(out);
}

Result<BaselineOrder> decode_baseline(std::string_view body) {
  const auto json = object_of(body);
  if (!json) return tl::unexpected(json.error());
  for (const auto& [name, value] : json->items()) {
    if (name != "phase" && name != "for_us" && name != "client_alone" && name != "client_mixed") {
      return wrong_member("is not known here", name);
    }
  }
  BaselineOrder order;
  const auto phase = json->find("phase");
  if (phase == json->end() || !phase->is_string()) {
    return wrong_member("is needed: alone, mixed, store or abandon", "phase");
  }
  using Phase = BaselineOrder::Phase;
  const std::string name = *phase;
  if (name == "alone") {
    order.phase = Phase::alone;
  } else if (name == "mixed") {
    order.phase = Phase::mixed;
  } else if (name == "store") {
    order.phase = Phase::store;
  } else if (name == "abandon") {
    order.phase = Phase::abandon;
  } else {
    return wrong_member("expected alone, mixed, store or abandon", "phase");
  }
  if (order.phase == Phase::alone) {
    const auto length = json->find("for_us");
    if (length == json->end() || !length->is_number_integer() || length->get<std::int64_t>() <= 0 ||
        length->get<std::int64_t>() > frozen_max_us) {
      return wrong_member("is needed: how long neighbours may stand still, 2 min at most",
                          "for_us");
    }
    order.for_us = length->get<std::int64_t>();
  }
  for (auto [field, into] : {std::pair("client_alone", &order.client_alone),
                             std::pair("client_mixed", &order.client_mixed)}) {
    const auto found = json->find(field);
    if (found == json->end()) continue;
    if (auto read = read_members(*found, speed_members, *into, field); !read) {
      return tl::unexpected(read.error());
    }
  }
  return order;
}

Result<BaselineReport> decode_baseline_report(std::string_view text) {
  const auto json = object_of(text);
  if (!json) return tl::unexpected(json.error());
  BaselineReport out;
  const auto subject = json->find("subject");
  if (subject == json->end() || !subject->is_object() || !subject->contains("name") ||
      !(*subject)["name"].is_string()) {
    return wrong_member("is needed", "subject.name");
  }
  out.subject.name = (*subject)["name"];
  const auto at = json->find("at_us");
  if (at == json->end() || !at->is_number_integer()) return wrong_member("is needed", "at_us");
  out.at_us = *at;
  for (auto [field, into] : {std::pair("alone", &out.alone), std::pair("mixed", &out.mixed),
                             std::pair("client_alone", &out.client_alone),
                             std::pair("client_mixed", &out.client_mixed)}) {
    const auto found = json->find(field);
    if (found == json->end()) return wrong_member("is needed", field);
    if (auto read = read_members(*found, speed_members, *into, field); !read) {
      return tl::unexpected(read.error());
    }
  }
  for (auto [field, into] :
       {std::pair("use_alone", &out.use_alone), std::pair("use_mixed", &out.use_mixed)}) {
    const auto found = json->find(field);
    if (found == json->end()) return wrong_member("is needed", field);
    if (auto read = read_members(*found, use_members, *into, field); !read) {
      return tl::unexpected(read.error());
    }
  }
  const auto frozen = json->find("frozen");
  if (frozen != json->end() && frozen->is_array()) {
    for (const Json& name : *frozen) {
      if (name.is_string()) out.frozen.push_back(name);
    }
  }
  return out;
}

}  // namespace neap::api
