#include "simulate/run/converted.h"

#include <algorithm>
#include <utility>

namespace neap::whatif {

namespace {

constexpr std::int64_t milli = 1'000;

std::vector<std::string> split_models(const std::string& models) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  while (begin < models.size()) {
    const std::size_t end = std::min(models.find('|', begin), models.size());
    if (end > begin) out.push_back(models.substr(begin, end - begin));
    begin = end + 1;
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

ConvertedStream::ConvertedStream(std::unique_ptr<ArrivalStream> arrivals,
                                 const WorkloadOptions& options, Tiers tiers)
    : arrivals_(std::move(arrivals)), options_(options), tiers_(std::move(tiers)) {}

Result<bool> ConvertedStream::next(Incoming& into) {
  while (ready_.empty() && !ended_) {
    trace::Arrival arrival;
    const auto more = arrivals_->next(arrival);
    if (!more) return tl::unexpected(more.error());
    if (*more) {
      take(std::move(arrival));
    } else {
      ended_ = true;
      // The last window, and one after it in which nothing comes any more.
      if (window_end_ != Time::never()) close_windows(window_end_ + options_.replica.load);
    }
  }
  if (ready_.empty()) return false;
  into = std::move(ready_.front());
  ready_.pop_front();
  return true;
}

void ConvertedStream::take(trace::Arrival arrival) {
  close_windows(arrival.at);
  if (const auto* job = std::get_if<trace::JobArrival>(&arrival.what)) {
    add_job(arrival.at, *job);
  } else if (const auto* rate = std::get_if<trace::RateChange>(&arrival.what)) {
    add_rate(arrival.at, rate->service, rate->micro_per_second);
  } else {
    const auto& request = std::get<trace::RequestArrival>(arrival.what);
    if (window_end_ == Time::never()) window_end_ = arrival.at + options_.replica.load;
    ++counts_[request.service];
  }
}

// The load is known when its window has passed, as it is of a real service.
void ConvertedStream::close_windows(Time until) {
  const Micros length = options_.replica.load;
  while (window_end_ <= until && window_end_ != Time::never()) {
    bool any = false;
    for (auto& [service, count] : counts_) {
      any = any || count > 0;
      const Wide rate = Wide{std::exchange(count, 0)} * 1'000'000 * 1'000'000 / length.value;
      add_rate(window_end_, service, static_cast<std::int64_t>(rate));
    }
    // A long silence is one window.
    window_end_ = any || until < window_end_ + length ? window_end_ + length : until + length;
  }
}

void ConvertedStream::add_job(Time at, const trace::JobArrival& job) {
  if (job.gpus == 0) {
    ++passed_over_;
    return;
  }
  JobIncoming incoming;
  TaskSpec& spec = incoming.spec;
  spec.name = job.name;
  spec.team = job.group.empty() ? "default" : job.group;
  spec.tier = job.deadline ? tiers_.deadline : tiers_.job;
  spec.request.count = job.gpus;
  spec.request.share = job.each;
  spec.request.cpu_milli = job.cpu_milli;
  spec.request.host_memory = job.memory;
  spec.request.models = split_models(job.models);
  spec.contract = options_.contract;
  if (options_.work == WorkloadOptions::Work::declared) spec.work = job.duration;
  incoming.duration = job.duration;
  incoming.deadline = job.deadline;
  ready_.push_back({at, std::move(incoming)});
}

void ConvertedStream::add_rate(Time at, const std::string& service, std::int64_t micro_per_second) {
  const ReplicaOptions& replica = options_.replica;
  const Wide asked = Wide{micro_per_second} * milli;
  const auto in_use =
      static_cast<std::int64_t>((asked + replica.rate_micro - 1) / replica.rate_micro);
  const auto [known, added] = services_.emplace(service, -1);
  if (added) {
    ServiceSpec spec;
    spec.name = service;
    spec.team = service;
    spec.tier = tiers_.inference;
    spec.request.count = replica.gpus;
    spec.min_replicas = replica.min;
    spec.max_replicas = std::max(replica.min, replica.max);
    spec.concurrency = static_cast<std::int32_t>(milli);
    ready_.push_back({at, ServiceIncoming{std::move(spec)}});
  }
  if (std::exchange(known->second, in_use) == in_use) return;
  ready_.push_back({at, LoadIncoming{service, in_use}});
}

}  // namespace neap::whatif
