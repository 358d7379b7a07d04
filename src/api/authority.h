// Who may do what (SPEC G5). The daemon's own user and root administer the pool; over TCP the
// token's holder does. Everybody else who may open the socket sees the pool's devices and
// manages what is their own.
#pragma once

#include <cstdint>

#include "api/control.h"
#include "core/model/result.h"

namespace neap::api {

class Authority {
 public:
  explicit Authority(std::uint32_t daemon_uid) : daemon_uid_(daemon_uid) {}

  [[nodiscard]] bool administers(const Caller& caller) const;
  [[nodiscard]] bool sees(const Caller& caller, std::uint32_t owner_uid) const;
  // permission_denied, naming what was asked for.
  [[nodiscard]] Result<void> may_manage(const Caller& caller, const Subject& subject) const;
  [[nodiscard]] Result<void> may_administer(const Caller& caller) const;

 private:
  std::uint32_t daemon_uid_;
};

}  // namespace neap::api
