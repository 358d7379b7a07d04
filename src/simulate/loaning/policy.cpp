#include "simulate/loaning/policy.h"

#include <utility>

namespace neap::loaning {

namespace {

constexpr double usual_headroom = 1.3;
constexpr double lyra_headroom = 1.2;
constexpr std::int64_t lyra_every_s = 300;

Policy planned() {
  Policy policy;
  policy.name = "E*";
  policy.target = Policy::Target::planned;
  policy.dwell_s = 1'800;
  policy.buffer = 0.02;
  return policy;
}

}  // namespace

std::optional<Policy> policy_named(std::string_view name) {
  Policy policy;
  policy.name = name;
  if (name == "A") return policy;
  if (name == "A greedy") {
    policy.queue = Policy::Queue::greedy;
    return policy;
  }
  if (name == "B") {
    policy.target = Policy::Target::fixed;
    policy.headroom = usual_headroom;
    return policy;
  }
  if (name == "C2") {
    policy.target = Policy::Target::tracked;
    policy.victims = Policy::Victims::youngest;
    policy.leave = Policy::Leave::killed;
    policy.place.order = PlaceOrder::anywhere;
    policy.headroom = usual_headroom;
    return policy;
  }
  if (name == "D") {
    policy.target = Policy::Target::whole_nodes;
    policy.victims = Policy::Victims::cheapest_node;
    policy.leave = Policy::Leave::killed;
    policy.headroom = lyra_headroom;
    policy.every_s = lyra_every_s;
    return policy;
  }
  if (name == "E*") return planned();
  if (name == "O") {
    policy.target = Policy::Target::exact;
    policy.leave = Policy::Leave::free;
    policy.headroom = 1;
    return policy;
  }
  return {};
}

std::vector<Policy> ablations() {
  std::vector<Policy> all;
  const auto with = [&all](const char* what, auto change) {
    Policy policy = planned();
    policy.name = what;
    change(policy);
    all.push_back(std::move(policy));
  };
  with("no buffer", [](Policy& p) { p.buffer = 0; });
  with("no hourly plan", [](Policy& p) { p.plan_per_mille = 0; });
  with("gangs in pieces", [](Policy& p) { p.place.gangs = Gangs::uneven; });
  with("whoever fits passes", [](Policy& p) { p.queue = Policy::Queue::greedy; });
  with("no fixed cost of a preemption", [](Policy& p) { p.fixed_cost_s = 0; });
  with("no fixed cost, not core first", [](Policy& p) {
    p.fixed_cost_s = 0;
    p.place.order = PlaceOrder::anywhere;
  });
  with("not core first", [](Policy& p) { p.place.order = PlaceOrder::anywhere; });
  with("dwell 5 min", [](Policy& p) { p.dwell_s = 300; });
  with("planned at the 80 % quantile", [](Policy& p) { p.plan_per_mille = 800; });
  with("planned at the highest of 7 days", [](Policy& p) { p.plan_per_mille = 1'000; });
  with("killed, not saved on demand", [](Policy& p) { p.leave = Policy::Leave::killed; });
  return all;
}

}  // namespace neap::loaning
