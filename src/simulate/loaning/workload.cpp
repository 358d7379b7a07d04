#include "simulate/loaning/workload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "trace/chance.h"
#include "trace/read_all.h"

namespace neap::loaning {

namespace {

using trace::Chance;

constexpr std::int64_t second_us = 1'000'000;
constexpr std::int64_t recorded_from_s = 1'504'483'200 + 14 * day_s;  // 2017-09-04, 14 days on
constexpr std::int64_t recorded_days = 56;
constexpr std::int64_t week_days = 7;
constexpr std::int64_t longest_s = 7 * day_s;
constexpr double copies_above = 1.15, kept_above = 1.12, target_slack = 1.005;
constexpr double estimate_sigma = 0.5;
constexpr double interactive_part = 0.15;
constexpr std::int64_t interactive_most_s = 3'600;
constexpr double noise_sigma = 0.03, noise_memory = 0.8;
constexpr std::int64_t window_minutes = 10;
constexpr std::int64_t day_minutes = 1'440;

// Box and Muller.
double normal(Chance& chance) {
  const double radius = std::sqrt(-2 * std::log1p(-chance.unit()));
  return radius * std::cos(2 * std::numbers::pi * chance.unit());
}

std::int64_t restore_of(std::int32_t devices) {
  const double log2 = std::log2(static_cast<double>(devices));
  return std::min<std::int64_t>(180, std::llround(60 + 24 * log2));
}

// Jobs of one virtual cluster that came on one day.
struct Block {
  std::vector<const trace::Job*> jobs;
  std::int64_t day = 0;
  double work = 0;  // device-seconds
};

double work_of(const trace::Job& job) {
  return static_cast<double>(job.gpus) * static_cast<double>(job.duration.value / second_us);
}

std::vector<Block> blocks_of(const std::vector<trace::Job>& jobs, std::int32_t largest) {
  std::map<std::pair<std::string, std::int64_t>, Block> blocks;
  for (const trace::Job& job : jobs) {
    const std::int64_t since_s = job.submitted.us / second_us - recorded_from_s;
    const std::int64_t duration_s = job.duration.value / second_us;
    if (since_s < 0 || since_s >= recorded_days * day_s) continue;
    if (duration_s <= 0 || duration_s > longest_s || job.gpus < 1 || job.gpus > largest) continue;
    const std::int64_t day = since_s / day_s;
    Block& block = blocks[{job.group, day}];
    block.day = day;
    block.jobs.push_back(&job);
    block.work += work_of(job);
  }
  std::vector<Block> all;
  for (auto& [key, block] : blocks) all.push_back(std::move(block));
  return all;
}

Job job_of(const trace::Job& recorded, std::int64_t day, Chance& chance) {
  Job job;
  const std::int64_t second = (recorded.submitted.us / second_us - recorded_from_s) % day_s;
  job.arrival_s = day * day_s + second;
  job.duration_s = recorded.duration.value / second_us;
  job.devices = recorded.gpus;
  job.restore_s = restore_of(job.devices);
  job.phase_s = static_cast<std::int64_t>(chance.below(interval_s)) + 1;
  const double estimate =
      static_cast<double>(job.duration_s) * std::exp(estimate_sigma * normal(chance));
  job.estimate_s = std::max<std::int64_t>(1, std::llround(estimate));
  return job;
}

// 15 % of all jobs, drawn among those of one device and less than an hour.
void mark_interactive(std::vector<Job>& jobs, Chance& chance) {
  std::vector<std::size_t> possible;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].devices == 1 && jobs[i].duration_s < interactive_most_s) possible.push_back(i);
  }
  chance.shuffle(possible);
  const auto wanted =
      static_cast<std::size_t>(std::llround(interactive_part * static_cast<double>(jobs.size())));
  for (std::size_t i = 0; i < std::min(wanted, possible.size()); ++i) {
    jobs[possible[i]].interactive = true;
  }
}

std::vector<Job> draw_jobs(const Recorded& recorded, const WorkloadSpec& spec,
                           std::int32_t training_nodes) {
  const std::int32_t largest = std::min(spec.largest_gang, training_nodes / 2 * devices_per_node);
  const std::vector<Block> blocks = blocks_of(recorded.jobs, largest);
  double offered = 0;
  for (const Block& block : blocks) offered += block.work;
  const double target = spec.load * training_nodes * devices_per_node * double{span_s};
  const double ratio = offered > 0 ? target / offered : 0;
  const auto copies = static_cast<std::int64_t>(std::ceil(copies_above * ratio));

  Chance chance(spec.seed * 0x9e3779b97f4a7c15ULL + 1);
  std::vector<std::pair<const Block*, std::int64_t>> kept;  // with its day
  for (const Block& block : blocks) {
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      const bool keep = chance.unit() < kept_above * ratio / static_cast<double>(copies);
      const auto week = static_cast<std::int64_t>(chance.below(span_days / week_days));
      if (keep) kept.emplace_back(&block, week * week_days + block.day % week_days);
    }
  }
  chance.shuffle(kept);
  std::vector<Job> jobs;
  double sum = 0;
  for (const auto& [block, day] : kept) {
    if (sum >= target) break;
    if (sum + block->work > target * target_slack) continue;
    sum += block->work;
    for (const trace::Job* job : block->jobs) jobs.push_back(job_of(*job, day, chance));
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const Job& a, const Job& b) { return a.arrival_s < b.arrival_s; });
  mark_interactive(jobs, chance);
  return jobs;
}

// Whole days of windows, filled where the trace tells nothing.
std::vector<double> windows_of(const std::vector<trace::RateWindow>& recorded) {
  std::vector<double> rates;
  for (const trace::RateWindow& window : recorded) {
    const auto index = static_cast<std::size_t>((window.from - recorded.front().from).value /
                                                (window_minutes * 60 * second_us));
    rates.resize(std::max(rates.size(), index), rates.empty() ? 0 : rates.back());
    rates.push_back(window.per_second);
  }
  const std::size_t a_day = day_minutes / window_minutes;
  rates.resize(std::max(a_day, rates.size() / a_day * a_day), rates.empty() ? 1 : rates.back());
  return rates;
}

// A day curve between 5 % and 95 % of the peak, lower on days of rest: mean / peak 0.5.
double broad_rate(std::int64_t minute) {
  const double turn = static_cast<double>(minute % day_minutes) / day_minutes;
  const double height = minute / day_minutes % week_days >= 5 ? 0.85 : 1.0;
  return height * (0.55 - 0.45 * std::cos(2 * std::numbers::pi * turn));
}

std::vector<std::int32_t> draw_demand(const Recorded& recorded, const WorkloadSpec& spec,
                                      std::int32_t peak) {
  Chance chance(spec.seed * 0x9e3779b97f4a7c15ULL + 2);
  const std::vector<double> rates = windows_of(recorded.traffic);
  const std::size_t a_day = day_minutes / window_minutes;
  const std::size_t turned = chance.below(rates.size() / a_day) * a_day;
  std::vector<double> minutes(span_days * day_minutes);
  const double innovation = noise_sigma * std::sqrt(1 - noise_memory * noise_memory);
  double noise = noise_sigma * normal(chance);
  double most = 0;
  for (std::size_t m = 0; m < minutes.size(); ++m) {
    const std::size_t window = m / window_minutes + turned;
    const double here = rates[window % rates.size()];
    const double next = rates[(window + 1) % rates.size()];
    const double part = static_cast<double>(m % window_minutes) / window_minutes;
    const double base = spec.traffic == TrafficShape::broad
                            ? broad_rate(static_cast<std::int64_t>(m))
                            : here + (next - here) * part;
    minutes[m] = base * std::exp(noise);
    most = std::max(most, minutes[m]);
    noise = noise_memory * noise + innovation * normal(chance);
  }
  const double scale = most > 0 ? peak * double{demand_unit} / most : 0;
  std::vector<std::int32_t> demand;
  for (const double rate : minutes) {
    const bool flat = spec.traffic == TrafficShape::flat;
    demand.push_back(flat ? peak * static_cast<std::int32_t>(demand_unit)
                          : static_cast<std::int32_t>(std::floor(rate * scale)));
  }
  return demand;
}

}  // namespace

Result<Recorded> read_recorded(const std::string& folder) {
  Recorded recorded;
  auto jobs = trace::read_file<trace::Job, trace::PhillyReader>(folder +
                                                                "/philly/philly_sia_pollux.csv.gz");
  if (!jobs) return tl::unexpected(jobs.error());
  recorded.jobs = std::move(*jobs);
  auto bytes = trace::open_bytes(folder + "/servegen/language_m-small.traces.tgz");
  if (!bytes) return tl::unexpected(bytes.error());
  auto traffic = trace::read_servegen(std::move(*bytes));
  if (!traffic) return tl::unexpected(traffic.error());
  recorded.traffic = std::move(*traffic);
  return recorded;
}

Result<std::vector<trace::Request>> read_requests(const std::string& folder) {
  return trace::read_file<trace::Request, trace::AzureReader>(
      folder + "/azure/AzureLLMInferenceTrace_conv.csv.gz");
}

Workload make_workload(const Recorded& recorded, const WorkloadSpec& spec) {
  Workload workload;
  workload.nodes = spec.nodes;
  workload.inference_nodes =
      static_cast<std::int32_t>(std::lround(spec.inference_part * spec.nodes));
  workload.jobs = draw_jobs(recorded, spec, spec.nodes - workload.inference_nodes);
  workload.demand_milli = draw_demand(recorded, spec, workload.peak());
  return workload;
}

}  // namespace neap::loaning
