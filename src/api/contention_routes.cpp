#include "api/contention_routes.h"

namespace neap::api {
namespace {

using http::Request;
using http::Response;

}  // namespace

void add_contention_routes(http::Router& router, Control& control, const ContentionRoutes& its) {
  router.add("GET", its.path + "/contention", [its, &control](const Request& request) {
    return its.with(request, [&](std::uint64_t id) -> Response {
      const auto report = control.contention(its.kind, id);
      if (!report) return its.failure(report.error());
      return {200, encode(*report)};
    });
  });
  router.add("GET", its.path + "/baseline", [its, &control](const Request& request) {
    return its.with(request, [&](std::uint64_t id) -> Response {
      const auto report = control.baseline(its.kind, id);
      if (!report) return its.failure(report.error());
      return {200, encode(*report)};
    });
  });
  // Stops others for a while: only who administers the pool may.
  router.add("POST", its.path + "/baseline", [its, &control](const Request& request) -> Response {
    if (auto may = its.may_administer(request); !may) return its.failure(may.error());
    const Result<BaselineOrder> order = decode_baseline(request.body);
    if (!order) return its.failure(order.error());
    return its.with(request, [&](std::uint64_t id) -> Response {
      const auto done = control.measure_baseline(its.kind, id, *order);
      if (!done) return its.failure(done.error());
      return {200, "{}"};
    });
  });
}

}  // namespace neap::api
