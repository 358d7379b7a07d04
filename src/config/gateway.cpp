#include "config/gateway.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace neap::config {

namespace {

constexpr std::int64_t places_max = 100'000;
constexpr std::int64_t weight_max = 1'000'000;
constexpr std::size_t models_max = 64;

bool is_model(const std::string& name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-:/+@").find(c) != std::string_view::npos;
  });
}

void read_queue(Fields queue, ServiceGateway& into) {
  queue.whole("high", into.queue_high, {0, places_max});
  // What is not stated does not stand above what is.
  into.queue_normal = std::min(into.queue_normal, into.queue_high);
  queue.whole("normal", into.queue_normal, {0, places_max});
  into.queue_low = std::min(into.queue_low, into.queue_normal);
  queue.whole("low", into.queue_low, {0, places_max});
  if (into.queue_normal > into.queue_high) {
    queue.refuse("normal",
                 "is more than gateway.queue.high (" + std::to_string(into.queue_high) +
                     "): a higher class would be refused while a lower one still gets in; "
                     "expected at most that");
  }
  if (into.queue_low > into.queue_normal) {
    queue.refuse("low", "is more than gateway.queue.normal (" + std::to_string(into.queue_normal) +
                            "): a higher class would be refused while a lower one still gets in; "
                            "expected at most that");
  }
  queue.close();
}

}  // namespace

void read_service_gateway(Fields& fields, const ServiceSays& says, ServiceGateway& into) {
  enum class Class : std::uint8_t { high, normal, low };
  Class usual = Class::normal;
  fields.choice<Class>("class", usual,
                       {{"high", Class::high}, {"normal", Class::normal}, {"low", Class::low}});
  into.usual_class = usual == Class::high ? "high" : usual == Class::low ? "low" : "normal";
  read_queue(fields.section("queue"), into);
  into.wait_within_slo = fields.says("wait", "slo");
  if (!into.wait_within_slo) fields.duration("wait", into.wait, milliseconds(1), hours(1));
  if (into.wait_within_slo && !says.slo_first_byte) {
    fields.refuse("wait", "is `slo`, and the service has no slo.ttft; expected a length of time");
  }
  enum class Mode : std::uint8_t { fixed, adaptive };
  Mode mode = says.slo_first_byte ? Mode::adaptive : Mode::fixed;
  fields.choice<Mode>("concurrency", mode, {{"adaptive", Mode::adaptive}, {"fixed", Mode::fixed}});
  into.adaptive = mode == Mode::adaptive;
  if (into.adaptive && !says.slo_first_byte) {
    fields.refuse("concurrency",
                  "is `adaptive`, which goes by slo.ttft, and the service has none; "
                  "expected fixed, or slo.ttft beside it");
  }
  fields.whole("least_concurrency", into.least_concurrency, {1, places_max});
  if (fields.present() && into.least_concurrency > says.concurrency) {
    fields.refuse("least_concurrency", "is more than concurrency (" +
                                           std::to_string(says.concurrency) +
                                           "); expected at most that");
  }
  Fields hold = fields.section("hold");
  hold.whole("requests", into.hold, {0, places_max});
  hold.duration("within", into.hold_for, seconds(1), hours(1));
  hold.close();
  Fields cost = fields.section("cost");
  cost.whole("input", into.input_cost, {0, weight_max});
  cost.whole("output", into.output_cost, {0, weight_max});
  cost.whole("output_tokens", into.output_tokens, {1, weight_max});
  cost.close();
  if (fields.texts("models", into.models, models_max)) {
    for (const std::string& model : into.models) {
      if (is_model(model)) continue;
      fields.refuse("models", "names " + in_quotes(model) +
                                  "; expected 1 to 128 letters, digits and any of . _ - : / + @");
    }
    std::vector<std::string> sorted = into.models;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      fields.refuse("models", "names " + in_quotes(*twice) + " twice; expected each model once");
    }
  }
  fields.close();
}

std::string gateway_to_json(const ServiceGateway& g) {
  nlohmann::ordered_json out;
  out["class"] = g.usual_class;
  out["queue"] = {g.queue_high, g.queue_normal, g.queue_low};
  out["wait_us"] = g.wait.value;
  out["within_slo"] = g.wait_within_slo;
  out["adaptive"] = g.adaptive;
  out["least"] = g.least_concurrency;
  out["hold"] = g.hold;
  out["hold_us"] = g.hold_for.value;
  out["cost"] = {g.input_cost, g.output_cost};
  out["output_tokens"] = g.output_tokens;
  out["models"] = g.models;
  return out.dump();
}

std::optional<ServiceGateway> gateway_of_launch(const std::string& launch) {
  const auto whole = nlohmann::json::parse(launch, nullptr, false);
  if (!whole.is_object() || !whole.contains("gateway")) return std::nullopt;
  ServiceGateway g;
  // Written by gateway_to_json; a journal of another version may lack a part.
  try {
    const nlohmann::json& in = whole.at("gateway");
    in.at("class").get_to(g.usual_class);
    in.at("queue").at(0).get_to(g.queue_high);
    in.at("queue").at(1).get_to(g.queue_normal);
    in.at("queue").at(2).get_to(g.queue_low);
    in.at("wait_us").get_to(g.wait.value);
    in.at("within_slo").get_to(g.wait_within_slo);
    in.at("adaptive").get_to(g.adaptive);
    in.at("least").get_to(g.least_concurrency);
    in.at("hold").get_to(g.hold);
    in.at("hold_us").get_to(g.hold_for.value);
    in.at("cost").at(0).get_to(g.input_cost);
    in.at("cost").at(1).get_to(g.output_cost);
    in.at("output_tokens").get_to(g.output_tokens);
    in.at("models").get_to(g.models);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  return g;
}

}  // namespace neap::config
