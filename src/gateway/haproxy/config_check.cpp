// What the gateway takes: nothing of it may change the meaning of the configuration around it.
#include <arpa/inet.h>

#include <algorithm>

#include "gateway/haproxy/config.h"

namespace neap::gateway {
namespace {

constexpr std::int32_t concurrency_max = 100'000;
constexpr std::int32_t queue_max = 100'000;
constexpr std::size_t models_max = 64;

bool name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

bool valid_name(std::string_view name) {
  return !name.empty() && name.size() <= 63 && std::ranges::all_of(name, name_character) &&
         name.front() != '-' && name.front() != '.';
}

bool numeric_address(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool model_character(char c) {
  return name_character(c) || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' || c == '/' ||
         c == '+' || c == '@';
}

Result<void> check_admission(const Admission& a) {
  if (a.queue[2] < 0 || a.queue[1] < a.queue[2] || a.queue[0] < a.queue[1] ||
      a.queue[0] > queue_max) {
    return fail(ErrorCode::invalid_argument,
                "expected 0 to 100000 places, and never more for a lower class", "queue");
  }
  if (a.hold < 0 || a.hold > queue_max || a.hold_for <= Micros(0)) {
    return fail(ErrorCode::invalid_argument, "expected 0 to 100000 requests, for a time", "hold");
  }
  if (a.least < 1 || a.least > concurrency_max) {
    return fail(ErrorCode::invalid_argument, "expected 1 to 100000", "least");
  }
  if (a.input_cost < 0 || a.output_cost < 0 || a.output_tokens < 1) {
    return fail(ErrorCode::invalid_argument, "a cost is 0 or more, an answer 1 token or more",
                "cost");
  }
  return {};
}

}  // namespace

bool valid_model(std::string_view name) {
  return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, model_character);
}

Result<void> check_endpoint(const Endpoint& endpoint) {
  if (!valid_name(endpoint.service)) {
    return fail(ErrorCode::invalid_argument,
                "a service name is 1 to 63 of a-z, 0-9, '-' and '.', a letter or digit first",
                "service");
  }
  if (endpoint.port == 0) {
    return fail(ErrorCode::invalid_argument, "a port is 1 to 65535", "port");
  }
  if (!numeric_address(endpoint.bind)) {
    return fail(ErrorCode::invalid_argument,
                "expected a numeric IPv4 or IPv6 address, such as 127.0.0.1", "bind");
  }
  if (endpoint.queue_timeout <= Micros(0) || endpoint.slo_first_byte < Micros(0)) {
    return fail(ErrorCode::invalid_argument, "a length of time is above 0", "queue_timeout");
  }
  for (const std::string& model : endpoint.models) {
    if (!valid_model(model)) {
      return fail(ErrorCode::invalid_argument,
                  "a model's name is 1 to 128 letters, digits and any of . _ - : / + @", "models");
    }
  }
  if (endpoint.models.size() > models_max) {
    return fail(ErrorCode::invalid_argument, "a service has at most 64 names of models", "models");
  }
  return check_admission(endpoint.admission);
}

Result<void> check_replica(const Replica& replica) {
  if (!valid_name(replica.service)) {
    return fail(ErrorCode::invalid_argument, "no such service name", "service");
  }
  if (!replica.allocation.valid()) {
    return fail(ErrorCode::invalid_argument, "expected an allocation", "allocation");
  }
  if (replica.port == 0) {
    return fail(ErrorCode::invalid_argument, "a port is 1 to 65535", "port");
  }
  if (replica.max_concurrency < 1 || replica.max_concurrency > concurrency_max) {
    return fail(ErrorCode::invalid_argument, "expected 1 to 100000", "max_concurrency");
  }
  return {};
}

Result<void> check_front(const Front& front) {
  if (front.port != 0 && !numeric_address(front.bind)) {
    return fail(ErrorCode::invalid_argument,
                "expected a numeric IPv4 or IPv6 address, such as 127.0.0.1", "bind");
  }
  const auto plain = [](char c) {
    return c > ' ' && c < '\x7f' && c != '"' && c != '\'' && c != '#' && c != '\\' && c != '$' &&
           c != '%';
  };
  if (!std::ranges::all_of(front.certificate, plain)) {
    return fail(ErrorCode::invalid_argument, "expected a path without blanks and quotes",
                "certificate");
  }
  for (const TeamKey& key : front.known) {
    if (key.digest.size() == 64 && !key.team.empty() && std::ranges::all_of(key.team, plain)) {
      continue;
    }
    return fail(ErrorCode::invalid_argument, "a key has a digest and a team", "keys");
  }
  return {};
}

}  // namespace neap::gateway
