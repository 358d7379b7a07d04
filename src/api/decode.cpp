#include "api/decode.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <utility>
#include <vector>

#include "api/reports.h"
#include "config/problem.h"

namespace neap::api {

namespace {

using Tree = nlohmann::json;

constexpr int depth_max = 4;
constexpr std::size_t file_name_max = 4096;
constexpr std::size_t reason_max = 1000;
constexpr std::int64_t replicas_max = 10'000;
constexpr std::int64_t whole_max = 1'000'000'000'000'000;

tl::unexpected<Error> wrong_request(std::string message, std::string field = {}) {
  return fail(ErrorCode::invalid_argument, std::move(message), std::move(field));
}

// Watches a parse for what JSON allows and a request must not hold.
class Watch {
 public:
  bool operator()(int depth, Tree::parse_event_t event, const Tree& parsed) {
    if (depth > depth_max) deep_ = true;
    if (event == Tree::parse_event_t::object_start) keys_.emplace_back();
    if (event == Tree::parse_event_t::object_end && !keys_.empty()) keys_.pop_back();
    if (event == Tree::parse_event_t::key && !keys_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second && twice_.empty()) twice_ = key;
    }
    // What is nested too deep is dropped at once: it costs no memory.
    return !deep_;
  }

  [[nodiscard]] bool deep() const { return deep_; }
  [[nodiscard]] const std::string& twice() const { return twice_; }

 private:
  std::vector<std::set<std::string>> keys_;
  std::string twice_;
  bool deep_ = false;
};

Result<Tree> parse_object(std::string_view body, std::initializer_list<std::string_view> fields) {
  Watch watch;
  Tree json;
  try {
    json = Tree::parse(body, [&watch](int depth, Tree::parse_event_t event, Tree& parsed) {
      return watch(depth, event, parsed);
    });
  } catch (const Tree::exception&) {
    return wrong_request("the body is not valid JSON");
  }
  if (watch.deep())
    return wrong_request("the body is nested deeper than " + std::to_string(depth_max));
  if (!json.is_object()) return wrong_request("the body is not a JSON object");
  if (!watch.twice().empty()) return wrong_request("is given twice", watch.twice());
  const std::vector<std::string_view> known(fields);
  for (const auto& [key, value] : json.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string_view suggestion = config::nearest(key, known);
    return wrong_request(
        config::in_quotes(key) + " is not a known field" +
            (suggestion.empty() ? "" : "; did you mean \"" + std::string(suggestion) + "\"?"),
        key.substr(0, 64));
  }
  return json;
}

Result<std::string> text_field(const Tree& json, const char* field, std::size_t max) {
  const auto found = json.find(field);
  if (found == json.end()) return wrong_request("is missing", field);
  if (!found->is_string()) return wrong_request("is not a text", field);
  const auto& text = found->get_ref<const std::string&>();
  if (text.size() > max)
    return wrong_request("is longer than " + std::to_string(max) + " bytes", field);
  return text;
}

Result<std::int64_t> replicas_field(const Tree& json, const char* field) {
  const auto found = json.find(field);
  if (found == json.end()) return unknown;
  if (!found->is_number_integer() || *found < 0 || *found > replicas_max) {
    return wrong_request("is not a number of replicas from 0 to " + std::to_string(replicas_max),
                         field);
  }
  return found->get<std::int64_t>();
}

}  // namespace

Result<Submission> decode_submission(std::string_view body) {
  const Result<Tree> json = parse_object(body, {"file", "text", "workdir", "replace"});
  if (!json) return tl::unexpected(json.error());
  const auto file = text_field(*json, "file", file_name_max);
  if (!file) return tl::unexpected(file.error());
  const auto text = text_field(*json, "text", body.size());
  if (!text) return tl::unexpected(text.error());
  const auto workdir = text_field(*json, "workdir", file_name_max);
  if (!workdir) return tl::unexpected(workdir.error());
  if (!workdir->starts_with('/')) return wrong_request("is not an absolute path", "workdir");
  Submission submission{*file, *text, *workdir, Submission::Kind::fresh};
  if (const auto replace = json->find("replace"); replace != json->end()) {
    if (!replace->is_boolean()) return wrong_request("is not true or false", "replace");
    if (replace->get<bool>()) submission.kind = Submission::Kind::version;
  }
  return submission;
}

Result<Scale> decode_scale(std::string_view body) {
  const Result<Tree> json = parse_object(body, {"min", "max"});
  if (!json) return tl::unexpected(json.error());
  const auto min = replicas_field(*json, "min");
  if (!min) return tl::unexpected(min.error());
  const auto max = replicas_field(*json, "max");
  if (!max) return tl::unexpected(max.error());
  if (*min == unknown && *max == unknown)
    return wrong_request("min, max or both are needed", "min");
  if (*max == 0) return wrong_request("is below 1; use min to let a service sleep", "max");
  if (*max != unknown && *min > *max) return wrong_request("is above max", "min");
  return Scale{*min, *max};
}

namespace {

// A whole number from 0 that is in the body, or not.
Result<void> whole_field(const Tree& json, const char* field, std::int64_t& into) {
  const auto found = json.find(field);
  if (found == json.end()) return {};
  if (!found->is_number_integer() || *found < 0 || *found > whole_max) {
    return wrong_request("is not a whole number from 0 to " + std::to_string(whole_max), field);
  }
  into = found->get<std::int64_t>();
  return {};
}

}  // namespace

Result<DrillOrder> decode_drill(std::string_view body) {
  const Result<Tree> json =
      parse_object(body, {"service", "replicas", "for_us", "max_preemptions", "max_lost_us",
                          "ready_within_us", "resume_within_us", "pause_us"});
  if (!json) return tl::unexpected(json.error());
  DrillOrder order;
  const auto service = text_field(*json, "service", file_name_max);
  if (!service) return tl::unexpected(service.error());
  order.service = *service;
  const auto replicas = replicas_field(*json, "replicas");
  if (!replicas) return tl::unexpected(replicas.error());
  if (*replicas == unknown) return wrong_request("is missing", "replicas");
  order.replicas = *replicas;
  if (!json->contains("for_us")) return wrong_request("is missing", "for_us");
  const std::array<std::pair<const char*, std::int64_t*>, 6> numbers{
      {{"for_us", &order.for_us},
       {"max_preemptions", &order.max_preemptions},
       {"max_lost_us", &order.max_lost_us},
       {"ready_within_us", &order.ready_within_us},
       {"resume_within_us", &order.resume_within_us},
       {"pause_us", &order.pause_us}}};
  for (const auto& [field, into] : numbers) {
    if (auto read = whole_field(*json, field, *into); !read) return tl::unexpected(read.error());
  }
  return order;
}

Result<std::string> decode_pause(std::string_view body) {
  if (body.empty()) return std::string();
  const Result<Tree> json = parse_object(body, {"reason"});
  if (!json) return tl::unexpected(json.error());
  if (!json->contains("reason")) return std::string();
  return text_field(*json, "reason", reason_max);
}

Result<StageChange> decode_stage_change(std::string_view body) {
  const Result<Tree> json = parse_object(body, {"to", "why", "force"});
  if (!json) return tl::unexpected(json.error());
  StageChange change;
  if (!json->contains("to")) return wrong_request("is needed: physical, memory or time", "to");
  const auto to = text_field(*json, "to", reason_max);
  if (!to) return tl::unexpected(to.error());
  change.to = *to;
  if (json->contains("why")) {
    const auto why = text_field(*json, "why", reason_max);
    if (!why) return tl::unexpected(why.error());
    change.why = *why;
  }
  if (!json->contains("force")) return change;
  if (!json->at("force").is_boolean()) return wrong_request("is neither true nor false", "force");
  change.forced = json->at("force").get<bool>();
  return change;
}

}  // namespace neap::api
