#include "gateway/haproxy/config.h"

#include <gtest/gtest.h>

namespace neap::gateway {
namespace {

const ConfigPaths paths{.admin_socket = "/run/x/admin.sock",
                        .idle_socket = "/run/x/idle.sock",
                        .admission = "/run/x/admission.lua",
                        .folder = "/run/x"};

TEST(HaproxyConfig, EndpointsAreReadBack) {
  std::vector<ServiceSection> sections{
      {.endpoint = {.service = "chat",
                    .port = 8000,
                    .slo_first_byte = milliseconds(250),
                    .queue_timeout = seconds(7)},
       .replicas = {{"chat", AllocationId(12), 9201, 4}}},
      {.endpoint = {.service = "code.v2", .bind = "::1", .port = 8001}, .replicas = {}}};
  const std::string text = render_config(paths, {}, sections);
  const auto endpoints = endpoints_in(text);
  ASSERT_TRUE(endpoints) << to_string(endpoints.error());
  ASSERT_EQ(endpoints->size(), 2U);
  EXPECT_EQ((*endpoints)[0], sections[0].endpoint);
  EXPECT_EQ((*endpoints)[1], sections[1].endpoint);
  EXPECT_NE(text.find("server a12 127.0.0.1:9201 maxconn 4"), std::string::npos);
  EXPECT_NE(text.find("bind [::1]:8001"), std::string::npos);
  EXPECT_NE(text.find("timeout queue 7000ms"), std::string::npos);
  EXPECT_EQ(came_header_in(text), "");
  ConfigPaths with = paths;
  with.came_header = new_came_header();
  EXPECT_EQ(came_header_in(render_config(with, {}, sections)), with.came_header);
  EXPECT_TRUE(text.starts_with(render_preamble(paths, {})));
}

TEST(HaproxyConfig, E1_AbandonedRequestsLeaveTheQueue) {
  const std::string text = render_preamble(paths, {});
  const std::size_t defaults = text.find("defaults");
  EXPECT_NE(text.find("option abortonclose", defaults), std::string::npos);
}

TEST(HaproxyConfig, ADamagedFileIsAnError) {
  EXPECT_FALSE(endpoints_in("#neap endpoint chat 127.0.0.1 8000\n"));
  EXPECT_FALSE(endpoints_in("#neap endpoint chat 127.0.0.1 99999 0 1\n"));
  EXPECT_FALSE(endpoints_in("#neap endpoint ../x 127.0.0.1 80 0 1\n"));
  EXPECT_TRUE(endpoints_in("")->empty());
}

TEST(HaproxyConfig, ServerNamesAreAllocations) {
  EXPECT_EQ(allocation_of_server(server_name(AllocationId(7))), AllocationId(7));
  for (const char* other : {"", "a", "b7", "a7x", "<NOSRV>", "a-7"}) {
    EXPECT_FALSE(allocation_of_server(other).valid()) << other;
  }
}

TEST(HaproxyConfig, RefusalsNameTheField) {
  const Endpoint good{.service = "chat", .port = 80};
  EXPECT_TRUE(check_endpoint(good));
  Endpoint bad = good;
  bad.port = 0;
  EXPECT_EQ(check_endpoint(bad).error().context, "port");
  bad = good;
  bad.bind = "localhost";
  EXPECT_EQ(check_endpoint(bad).error().context, "bind");
  bad = good;
  bad.service = std::string(64, 'a');
  EXPECT_EQ(check_endpoint(bad).error().context, "service");
  EXPECT_EQ(check_replica({"chat", AllocationId(1), 0, 1}).error().context, "port");
  EXPECT_EQ(check_replica({"chat", AllocationId(1), 80, 0}).error().context, "max_concurrency");
  EXPECT_EQ(check_replica({"chat", AllocationId(), 80, 1}).error().context, "allocation");
}

}  // namespace
}  // namespace neap::gateway
