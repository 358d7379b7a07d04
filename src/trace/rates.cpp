#include "trace/rates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "trace/tar.h"

namespace neap::trace {

namespace {

constexpr std::size_t most_windows = 10'000'000;
constexpr std::int64_t most = 1'000'000'000;
constexpr std::int64_t most_micro = 1'000'000'000'000'000'000;  // a further client still fits

namespace servegen {
enum : std::size_t { start, rate, variation, pattern, first, second };
}
namespace helios {
enum : std::size_t { time, gpus, running_gpus, pending_gpus, running_jobs, pending_jobs };
}

}  // namespace

ServeGenReader::ServeGenReader(Bytes bytes)
    : rows_(CsvReader::without_header(
          std::move(bytes),
          {{"start"}, {"rate"}, {"cv"}, {"pattern"}, {"parameter 1"}, {"parameter 2"}})) {}

Result<bool> ServeGenReader::next(Rate& into) {
  const auto more = rows_.next();
  if (!more || !*more) return more;
  into.from = Time(rows_.decimal(servegen::start, 6, {0, longest_s}));
  into.per_second = rows_.real(servegen::rate, 0, 1e9);
  into.variation = rows_.real(servegen::variation, 0, 1e9);
  into.first = rows_.real(servegen::first, -1e12, 1e12);
  into.second = rows_.real(servegen::second, -1e12, 1e12);
  const std::string_view pattern = rows_.text(servegen::pattern);
  into.arrivals = pattern == "Gamma"     ? Arrivals::gamma
                  : pattern == "Weibull" ? Arrivals::weibull
                                         : Arrivals::untold;
  if (into.arrivals == Arrivals::untold && !pattern.empty()) {
    rows_.reject(servegen::pattern, "Gamma, Weibull or nothing");
  }
  if (auto row = rows_.finish(); !row) return tl::unexpected(row.error());
  return true;
}

Result<std::vector<RateWindow>> read_servegen(Bytes archive, std::string_view suffix) {
  TarReader members(std::move(archive));
  std::map<Time, RateWindow> sums;
  while (true) {
    auto member = members.next();
    if (!member) return tl::unexpected(member.error());
    if (!*member) break;
    if (!(**member)->name().ends_with(suffix)) continue;
    ServeGenReader rows(std::move(**member));
    Rate rate;
    while (true) {
      const auto more = rows.next(rate);
      if (!more) return tl::unexpected(more.error());
      if (!*more) break;
      RateWindow& sum = sums[rate.from];
      sum.from = rate.from;
      sum.per_second += rate.per_second;
      sum.micro_per_second = std::min(most_micro, sum.micro_per_second) +
                             static_cast<std::int64_t>(std::llround(rate.per_second * 1e6));
      if (sums.size() > most_windows) {
        return fail(ErrorCode::too_large, "more than " + std::to_string(most_windows) + " windows");
      }
    }
  }
  std::vector<RateWindow> windows;
  windows.reserve(sums.size());
  for (const auto& [from, sum] : sums) windows.push_back(sum);
  return windows;
}

HeliosReader::HeliosReader(Bytes bytes)
    : rows_(std::move(bytes), {{"time"},
                               {"total_gpu_num"},
                               {"running_gpu_num"},
                               {"pending_gpu_num"},
                               {"running_gpujob_num"},
                               {"pending_gpujob_num"}}) {}

Result<bool> HeliosReader::next(Occupancy& into) {
  const auto more = rows_.next();
  if (!more || !*more) return more;
  into.at = rows_.moment(helios::time);
  into.gpus = rows_.whole(helios::gpus, {0, most});
  into.running_gpus = rows_.whole(helios::running_gpus, {0, most});
  into.pending_gpus = rows_.whole(helios::pending_gpus, {0, most});
  into.running_jobs = rows_.whole(helios::running_jobs, {0, most});
  into.pending_jobs = rows_.whole(helios::pending_jobs, {0, most});
  if (auto row = rows_.finish(); !row) return tl::unexpected(row.error());
  return true;
}

}  // namespace neap::trace
