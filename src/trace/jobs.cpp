#include "trace/jobs.h"

#include <string_view>
#include <utility>

namespace neap::trace {

namespace {

constexpr std::int64_t most_gpus = 100'000;
constexpr std::int64_t most_units = std::int64_t{100} * 365 * 1'440;

namespace philly {
enum : std::size_t { timestamp, duration, gpus, cluster };
}
namespace chronus {
enum : std::size_t { id, user, gpus, submitted, model, duration, deadline, best_effort };
}

}  // namespace

PhillyReader::PhillyReader(Bytes bytes)
    : rows_(std::move(bytes),
            {{"timestamp"}, {"duration"}, {"num_gpus"}, {"cluster", Column::Need::optional}}) {}

Result<bool> PhillyReader::next(Job& into) {
  const auto more = rows_.next();
  if (!more || !*more) return more;
  into = {};
  into.submitted = rows_.moment(philly::timestamp);
  into.duration = Micros(rows_.decimal(philly::duration, 6, {0, longest_s}));
  into.gpus = static_cast<std::int32_t>(rows_.whole(philly::gpus, {1, most_gpus}));
  into.group = rows_.text(philly::cluster);
  if (auto row = rows_.finish(); !row) return tl::unexpected(row.error());
  return true;
}

ChronusReader::ChronusReader(Bytes bytes, Micros unit)
    : rows_(std::move(bytes), {{"job_id"},
                               {"user"},
                               {"num_gpu"},
                               {"submit_time"},
                               {"model_name"},
                               {"duration"},
                               {"expect_time_list"},
                               {"best_effort"}}),
      unit_(unit) {}

Result<bool> ChronusReader::next(Job& into) {
  while (true) {
    const auto more = next_row(into);
    if (!more || !*more || into.gpus > 0) return more;
    ++passed_over_;
  }
}

Result<bool> ChronusReader::next_row(Job& into) {
  const auto more = rows_.next();
  if (!more || !*more) return more;
  into = {};
  into.name = rows_.text(chronus::id);
  into.group = rows_.text(chronus::user);
  into.gpus = static_cast<std::int32_t>(rows_.whole(chronus::gpus, {0, most_gpus}));
  into.submitted = Time(rows_.whole(chronus::submitted, {0, most_units}) * unit_.value);
  into.model = rows_.text(chronus::model);
  into.duration = unit_ * rows_.whole(chronus::duration, {0, most_units});
  // Best-effort rows hold a number there too, which means nothing.
  if (rows_.whole(chronus::best_effort, {0, 1}) == 0) {
    into.deadline = unit_ * rows_.whole(chronus::deadline, {0, most_units});
  }
  if (auto row = rows_.finish(); !row) return tl::unexpected(row.error());
  return true;
}

}  // namespace neap::trace
