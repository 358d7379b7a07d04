// The section `gateway` of a service: how requests wait for its replicas. Handed on in the launch
// text, which only the daemon's router looks at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/fields.h"
#include "core/model/units.h"

namespace neap::config {

struct ServiceGateway {
  std::string usual_class = "normal";  // high, normal or low
  std::int32_t queue_high = 256;
  std::int32_t queue_normal = 192;
  std::int32_t queue_low = 128;
  Micros wait = seconds(60);
  bool wait_within_slo = false;
  bool adaptive = false;
  std::int32_t least_concurrency = 1;
  std::int32_t hold = 64;
  Micros hold_for = minutes(5);
  std::int32_t input_cost = 0;
  std::int32_t output_cost = 0;
  std::int64_t output_tokens = 256;
  std::vector<std::string> models;  // empty: the service's name
};

// What the service says beside the section.
struct ServiceSays {
  bool slo_first_byte = false;
  std::int32_t concurrency = 1;
};

// Closes the section.
void read_service_gateway(Fields& fields, const ServiceSays& says, ServiceGateway& into);

// The entry "gateway" of a launch text, and back; nothing where the text has none.
[[nodiscard]] std::string gateway_to_json(const ServiceGateway& gateway);
[[nodiscard]] std::optional<ServiceGateway> gateway_of_launch(const std::string& launch);

}  // namespace neap::config
