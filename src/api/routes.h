// The REST routes of docs/operators/api.md: each checks who asks, decodes, calls the daemon and
// encodes its answer.
#pragma once

#include "api/authority.h"
#include "api/control.h"
#include "api/event_feed.h"
#include "api/http/router.h"
#include "api/log_feed.h"

namespace neap::api {

// All must outlive the router.
struct RouteContext {
  Control& control;
  EventFeed& events;
  LogFeed& logs;
  Authority authority;
  std::uint32_t daemon_uid = 0;
  std::uint32_t daemon_gid = 0;
};

[[nodiscard]] http::Router make_router(const RouteContext& context);

}  // namespace neap::api
