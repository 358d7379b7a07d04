#include "simulate/assess/use_trace.h"

#include <algorithm>

#include "trace/csv.h"

namespace neap::assess {

namespace {

constexpr std::int64_t longest_seconds = 10LL * 366 * 24 * 3600;
constexpr std::int64_t limit = 200 * longest_seconds;  // any epoch
constexpr int time_digits = 6;                         // µs
constexpr int devices_digits = 3;                      // thousandths of a device

struct Row {
  std::int64_t at = 0, milli = 0;
};

tl::unexpected<Error> wrong(const trace::CsvReader& csv, const std::string& message) {
  return fail(ErrorCode::invalid_argument, message, csv.lines().name());
}

}  // namespace

bool UseFiller::hold(std::int64_t from, std::int64_t until, std::int64_t milli) {
  while (from < until) {
    const std::int64_t at = from / slot_.value;
    if (at >= most_use_slots) return false;
    if (static_cast<std::size_t>(at) >= sums_.size()) {
      sums_.resize(static_cast<std::size_t>(at) + 1);
    }
    const std::int64_t end = std::min(until, (at + 1) * slot_.value);
    sums_[static_cast<std::size_t>(at)] += static_cast<Wide>(milli) * (end - from);
    from = end;
  }
  covered_ = std::max(covered_, until);
  return true;
}

UseTrace UseFiller::take() const {
  UseTrace trace{slot_, {}};
  const std::int64_t whole = covered_ / slot_.value;
  for (std::int64_t i = 0; i < whole; ++i) {
    const Wide sum = sums_[static_cast<std::size_t>(i)];
    trace.milli.push_back(static_cast<std::int64_t>((sum + slot_.value - 1) / slot_.value));
  }
  return trace;
}

Result<UseTrace> read_use(trace::Bytes bytes, Micros slot) {
  trace::CsvReader csv(std::move(bytes), {{"time"}, {"devices"}});
  UseFiller filler(slot);
  std::int64_t first = 0, rows = 0, held = 0;
  Row before;
  while (true) {
    const auto more = csv.next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    Row row;
    row.at = csv.decimal(0, time_digits, {0, limit});
    row.milli = csv.decimal(1, devices_digits, {0, most_use_devices});
    if (rows > 0 && row.at <= before.at) csv.reject(0, "a time after that of the row before");
    if (rows > 0 && row.at - first > longest_seconds * 1'000'000) {
      csv.reject(0, "a time within ten years of the first");
    }
    if (++rows > most_use_rows) csv.reject(0, "at most 10000000 rows");
    if (auto good = csv.finish(); !good) return tl::unexpected(good.error());
    if (rows == 1) {
      first = row.at;
    } else {
      held = row.at - before.at;
      if (!filler.hold(before.at - first, row.at - first, before.milli)) {
        return wrong(csv, "expected at most 1000000 slots; take longer ones");
      }
    }
    before = row;
  }
  if (rows < 2) return wrong(csv, "expected two rows or more of time,devices");
  if (!filler.hold(before.at - first, before.at - first + held, before.milli)) {
    return wrong(csv, "expected at most 1000000 slots; take longer ones");
  }
  return filler.take();
}

Result<UseTrace> read_use(const std::string& path, Micros slot) {
  auto bytes = trace::open_bytes(path);
  if (!bytes) return tl::unexpected(bytes.error());
  return read_use(std::move(*bytes), slot);
}

}  // namespace neap::assess
