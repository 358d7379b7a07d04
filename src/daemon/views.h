// The state as the API shows it.
#pragma once

#include <functional>

#include "api/view.h"
#include "core/model/state.h"
#include "daemon/books.h"
#include "simulate/forecast/forecast.h"

namespace neap::daemon {

// What the views need to know beside the state; constant while the daemon runs.
struct ViewContext {
  std::string device_source;
  Time started;
  std::uint32_t pool_owner = 0;
  // What is shown has an age even while nothing happens; without it the state's own time counts.
  std::function<Time()> clock;
  // What is wrong beside what the state says.
  std::function<std::vector<api::Condition>()> conditions;
};

[[nodiscard]] api::PoolStatus view_status(const PoolState& state, const ViewContext& context);
[[nodiscard]] api::TaskRow view_task(const PoolState& state, const TaskState& task);
[[nodiscard]] api::ServiceRow view_service(const PoolState& state, const ServiceState& service);
[[nodiscard]] api::DeviceRow view_device(const PoolState& state, const DeviceState& device,
                                         const ViewContext& context);
[[nodiscard]] api::TaskDetail view_task_detail(const PoolState& state, const Books& books,
                                               const TaskState& task, const ViewContext& context);
[[nodiscard]] api::WhyReport view_why(const PoolState& state, const TaskState& task, Time now,
                                      const ViewContext& context);
// Of those who wait still.
[[nodiscard]] api::ForecastReport view_forecast(const PoolState& state,
                                                const forecast::Forecast& forecast, Time now);
// What the forecast says of one task.
void view_start(const forecast::Forecast& forecast, std::uint64_t task, Time now,
                api::WhyReport& into);
[[nodiscard]] api::UsageReport view_usage(const PoolState& state, const Books& books, Time now,
                                          const ViewContext& context);
[[nodiscard]] api::EventRow view_event(const PoolState& state, const Record& record);

}  // namespace neap::daemon
