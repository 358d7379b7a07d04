// What all services have in common: keys, certificate and the shared endpoint.
#include <fstream>
#include <sstream>
#include <utility>

#include "gateway/haproxy/membership.h"
#include "gateway/haproxy/port_check.h"

namespace neap::gateway {

std::string Membership::loaded_config() const {
  std::ifstream in(process_.files().config, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

Result<void> Membership::check_free(const Endpoint& endpoint) const {
  for (const auto& [name, service] : services_) {
    if (name != endpoint.service && service.endpoint.port == endpoint.port) {
      return fail(ErrorCode::conflict,
                  "port " + std::to_string(endpoint.port) + " belongs to service '" + name + "'",
                  "port");
    }
  }
  if (front_.port == endpoint.port) {
    return fail(ErrorCode::conflict,
                "port " + std::to_string(endpoint.port) + " is that of the shared endpoint",
                "port");
  }
  return check_port_free(endpoint.bind, endpoint.port);
}

Result<void> Membership::set_front(const Front& front) {
  if (Result<void> checked = check_front(front); !checked) {
    // What was asked for before goes on; without such nothing may be served.
    if (!front_known_) barred_ = checked.error();
    refused_ = checked.error();
    return checked;
  }
  barred_.reset();
  refused_.reset();
  front_known_ = true;
  if (front == front_ && !other_preamble_ && !unapplied_) return {};
  front_ = front;
  if (!process_.running()) return {};
  Result<void> applied = apply_configuration();
  if (applied && unshared_) return tl::unexpected(*unshared_);
  return applied;
}

// As far as others than the proxy itself have it.
Result<void> Membership::check_shared_port() const {
  if (front_.port == 0) return {};
  for (const auto& [name, service] : services_) {
    if (service.endpoint.port != front_.port) continue;
    return fail(ErrorCode::conflict,
                "the port of the shared endpoint belongs to service '" + name + "'", "port");
  }
  if (process_.running() && listens_at(loaded_config(), front_)) return {};
  return check_port_free(front_.bind, front_.port);
}

void Membership::retry() {
  if (unapplied_ || (unshared_ && check_shared_port())) {
    if (process_.running()) (void)apply_configuration();
  }
}

std::string Membership::trouble() const {
  if (services_.empty()) return {};
  if (refused_) return "keys and certificate are refused: " + to_string(*refused_);
  if (unapplied_) return "endpoints are not as configured: " + to_string(*unapplied_);
  if (unshared_) return "the shared endpoint is not served: " + to_string(*unshared_);
  return {};
}

bool Membership::front_at_fault() {
  return barred_ || !process_.check(render_probe(paths_, front_));
}

}  // namespace neap::gateway
