// A model is one service's: G5.
#include "daemon/model_claims.h"

#include <gtest/gtest.h>

#include "config/gateway.h"
#include "core/testing/script.h"

namespace neap::daemon {
namespace {

using neap::testing::Script;

ServiceSpec service_for(const std::string& name, const std::vector<std::string>& models) {
  ServiceSpec spec = Script::service(name, 1, 1);
  config::ServiceGateway gateway;
  gateway.models = models;
  spec.launch = "{\"gateway\": " + config::gateway_to_json(gateway) + "}";
  return spec;
}

Script pool_with(const std::vector<ServiceSpec>& services) {
  Script script;
  script.configure();
  script.node("n0", "d0", 4);
  for (const ServiceSpec& spec : services) EXPECT_TRUE(script.submit(spec));
  return script;
}

std::string refused(const Script& script, ServiceSpec spec) {
  config::TaskFile file;
  file.spec = std::move(spec);
  const auto checked = check_models(script.state, file);
  if (checked) return "";
  EXPECT_EQ(checked.error().code, ErrorCode::conflict);
  return to_string(checked.error());
}

TEST(ModelClaims, G5_TheSecondServiceOfAModelIsRefusedAndTheFirstNamed) {
  const Script script = pool_with({service_for("first", {"llama", "llama-70b"})});
  EXPECT_EQ(refused(script, service_for("second", {"qwen", "llama"})),
            "gateway.models: model llama belongs to service first; expected models that no other "
            "service answers for");
  EXPECT_NE(refused(script, Script::service("llama", 1, 1)), "") << "it is asked for by its name";
  EXPECT_EQ(refused(script, service_for("second", {"qwen"})), "");
  EXPECT_EQ(refused(script, Script::service("first-too", 1, 1)), "");
  EXPECT_EQ(refused(script, service_for("first", {"llama"})), "") << "its next version";
}

TEST(ModelClaims, G5_WhatAJournalHoldsTwiceIsTold) {
  const Script script =
      pool_with({service_for("first", {"llama"}), service_for("second", {"llama", "qwen"})});
  const auto twice = models_claimed_twice(script.state);
  ASSERT_EQ(twice.size(), 1U);
  EXPECT_TRUE(twice[0].starts_with("model llama: services first and second both claim it"));
}

}  // namespace
}  // namespace neap::daemon
