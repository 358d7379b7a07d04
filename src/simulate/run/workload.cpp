#include "simulate/run/workload.h"

#include <utility>

#include "config/problem.h"
#include "simulate/run/converted.h"
#include "simulate/run/recorded.h"
#include "simulate/run/tiers.h"
#include "trace/chance.h"

namespace neap::whatif {

namespace {

// Also of moments before 1970, whose remainder is negative.
Time midnight_before(Time at) {
  const Micros day = hours(24);
  return Time((at.us / day.value - (at.us % day.value < 0 ? 1 : 0)) * day.value);
}

// Several streams as one. Each keeps its time of day: it begins in the same first day.
class MergedStream : public IncomingStream {
 public:
  MergedStream(const WorkloadOptions& options, std::string where)
      : options_(options), where_(std::move(where)) {}

  Result<void> add(std::unique_ptr<IncomingStream> stream) {
    Part part{std::move(stream), {}, Micros(0), false};
    if (auto filled = fill(part); !filled) return filled;
    if (part.ended) {
      return fail(ErrorCode::invalid_argument, "holds no job and no request for a pool of devices",
                  where_);
    }
    part.back = midnight_before(part.ahead.at) - Time(0);
    part.ahead.at = part.ahead.at - part.back;
    parts_.push_back(std::move(part));
    return {};
  }

  [[nodiscard]] Result<bool> next(Incoming& into) override {
    while (true) {
      Part* first = nullptr;
      for (Part& part : parts_) {
        if (!part.ended && (first == nullptr || part.ahead.at < first->ahead.at)) first = &part;
      }
      if (first == nullptr) return false;
      into = std::move(first->ahead);
      if (auto filled = fill(*first); !filled) return tl::unexpected(filled.error());
      if (!first->ended) first->ahead.at = first->ahead.at - first->back;
      if (takes(into)) return true;
    }
  }

  [[nodiscard]] std::optional<std::int64_t> total() const override {
    if (options_.sample < all_ppm) return {};
    std::int64_t sum = 0;
    for (const Part& part : parts_) {
      const auto jobs = part.stream->total();
      if (!jobs) return {};
      sum += *jobs;
    }
    return sum;
  }
  [[nodiscard]] std::int64_t passed_over() const override {
    std::int64_t sum = 0;
    for (const Part& part : parts_) sum += part.stream->passed_over();
    return sum;
  }

 private:
  struct Part {
    std::unique_ptr<IncomingStream> stream;
    Incoming ahead;
    Micros back;  // taken from all its times
    bool ended = false;
  };

  static Result<void> fill(Part& part) {
    const auto more = part.stream->next(part.ahead);
    if (!more) return tl::unexpected(more.error());
    part.ended = !*more;
    return {};
  }

  // What chance does to a job depends on the seed and on its place in the workload alone, so that
  // two policies meet the same jobs.
  bool takes(Incoming& incoming) {
    auto* job = std::get_if<JobIncoming>(&incoming.what);
    if (job == nullptr) return true;
    trace::Chance chance(options_.seed * 0x9e3779b97f4a7c15ULL + jobs_++);
    const auto kept = static_cast<std::int64_t>(chance.below(1'000'000));
    const auto drawn = static_cast<std::int64_t>(chance.below(1'000'001));
    if (kept >= options_.sample.value) return false;
    const std::int64_t factor =
        all_ppm.value - options_.jitter.value + 2 * options_.jitter.value * drawn / all_ppm.value;
    job->duration =
        Micros(static_cast<std::int64_t>(Wide{job->duration.value} * factor / all_ppm.value));
    return true;
  }

  const WorkloadOptions options_;
  std::string where_;
  std::vector<Part> parts_;
  std::uint64_t jobs_ = 0;
};

Result<std::unique_ptr<IncomingStream>> open_file(const std::string& path,
                                                  const WorkloadOptions& options,
                                                  const PoolSpec& pool, const Tiers& tiers) {
  Format format = options.format;
  if (format == Format::automatic) {
    const auto found = detect_format(path);
    if (!found) return tl::unexpected(found.error());
    format = *found;
  }
  if (format == Format::journal) return open_journal(path, pool, tiers);
  auto arrivals = open_arrivals(path, format, options.replica.service);
  if (!arrivals) return tl::unexpected(arrivals.error());
  return std::make_unique<ConvertedStream>(std::move(*arrivals), options, tiers);
}

}  // namespace

bool depends_on_seed(const WorkloadOptions& options) {
  return options.generated || options.jitter.value > 0 || options.sample < all_ppm;
}

Result<std::unique_ptr<IncomingStream>> open_workload(const WorkloadOptions& options,
                                                      const PoolSpec& pool) {
  const auto tiers = tiers_for(pool, options.tier);
  if (!tiers) return tl::unexpected(tiers.error());
  std::string where;
  for (const std::string& file : options.files) where += (where.empty() ? "" : ", ") + file;
  auto merged = std::make_unique<MergedStream>(options, where);
  if (options.generated) {
    Generated what = *options.generated;
    what.seed = options.seed;
    auto stream = std::make_unique<ConvertedStream>(generate_arrivals(what), options, *tiers);
    if (auto added = merged->add(std::move(stream)); !added) return tl::unexpected(added.error());
  }
  for (const std::string& path : options.files) {
    auto stream = open_file(path, options, pool, *tiers);
    if (!stream) return tl::unexpected(stream.error());
    if (auto added = merged->add(std::move(*stream)); !added) return tl::unexpected(added.error());
  }
  return merged;
}

}  // namespace neap::whatif
