#include "core/model/events.h"

namespace neap {

AllocationId allocation_of(const Action& action) {
  return std::visit([](const auto& a) { return a.allocation; }, action);
}

const ReportStamp* stamp_of(const Event& event) {
  return std::visit(
      [](const auto& e) -> const ReportStamp* {
        if constexpr (requires { e.stamp; }) {
          return &e.stamp;
        } else {
          return nullptr;
        }
      },
      event);
}

}  // namespace neap
