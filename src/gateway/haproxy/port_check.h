// Whether a port can be bound. HAProxy binds with SO_REUSEPORT and would silently share a port
// with another proxy of the same user, so this asks first, without that option.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/result.h"

namespace neap::gateway {

[[nodiscard]] Result<void> check_port_free(const std::string& address, std::uint16_t port);

}  // namespace neap::gateway
