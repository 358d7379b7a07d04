#include "daemon/engine_watch.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "daemon/fetch_text.h"

namespace neap::daemon {
namespace {

constexpr auto ask_every = std::chrono::seconds(5);
constexpr auto metrics_patience = std::chrono::milliseconds(500);
constexpr Micros without_counters = seconds(60);  // then asked again: it may be another engine
constexpr Micros rate_span = seconds(60);
constexpr Micros gap_span = minutes(5);
constexpr Micros fresh = seconds(30);

using measure::EngineCounters;

std::int64_t add_known(std::int64_t sum, std::int64_t more) {
  return sum == api::unknown ? more : sum + more;
}

// Of one engine; nothing where it began anew, or was read once.
std::optional<std::int64_t> milli_per_second(const std::optional<std::uint64_t>& before,
                                             const std::optional<std::uint64_t>& after,
                                             Micros length) {
  if (!before || !after || *after < *before || length <= Micros(0)) return {};
  return static_cast<std::int64_t>(static_cast<double>(*after - *before) * 1e9 /
                                   static_cast<double>(length.value));
}

// Adds up histograms of one shape; others are left out.
void add_up(std::map<Micros, std::uint64_t>& into, const std::map<Micros, std::uint64_t>& more) {
  const bool same = into.empty() || std::ranges::equal(
                                        into, more, {}, [](const auto& b) { return b.first; },
                                        [](const auto& b) { return b.first; });
  if (!same) return;
  for (const auto& [bound, count] : more) into[bound] += count;
}

}  // namespace

void EngineWatch::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, ask_every, [&] { return stop.stop_requested(); })) look();
  });
}

void EngineWatch::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void EngineWatch::look() {
  std::vector<Replica> there = replicas_();
  if (there.size() > replicas_max) there.resize(replicas_max);
  std::vector<Replica> due;
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(engines_, [&](const auto& engine) {
      return std::ranges::find(there, engine.first, &Replica::allocation) == there.end();
    });
    for (const Replica& replica : there) {
      Engine& engine = engines_[replica.allocation];
      engine.replica = replica;
      if (engine.ask_at <= now_()) due.push_back(replica);
    }
  }
  for (const Replica& replica : due) {
    const auto text =
        fetch_text(replica.port, "/metrics", measure::metrics_text_max, metrics_patience);
    std::optional<EngineCounters> counters;
    if (text) {
      const auto read = measure::read_engine_metrics(*text);
      if (read && read->says_anything()) counters = *read;
    }
    note(replica.allocation, std::move(counters));
  }
}

void EngineWatch::note(AllocationId allocation, std::optional<EngineCounters> counters) {
  const std::scoped_lock lock(mutex_);
  const auto found = engines_.find(allocation);
  if (found == engines_.end()) return;
  Engine& engine = found->second;
  const Time now = now_();
  if (!counters) {
    // One that has told before is busy rather than without counters.
    if (engine.readings.empty()) engine.ask_at = now + without_counters;
    return;
  }
  engine.readings.push_back({now, std::move(*counters)});
  while (engine.readings.front().at + gap_span < now) engine.readings.pop_front();
}

EngineWatch::Gaps EngineWatch::gaps(const std::string& service, Micros span) const {
  constexpr std::uint64_t gaps_min = 20;
  const std::scoped_lock lock(mutex_);
  std::map<Micros, std::uint64_t> before;
  std::map<Micros, std::uint64_t> after;
  for (const auto& [allocation, engine] : engines_) {
    if (engine.replica.service != service || engine.readings.size() < 2) continue;
    const Reading& newest = engine.readings.back();
    if (newest.at + fresh < now_()) continue;
    auto since = std::ranges::find_if(
        engine.readings, [&](const Reading& one) { return one.at + span >= newest.at; });
    if (&*since == &newest) since = std::prev(since);
    if (!measure::bucket_count(since->counters.inter_token, newest.counters.inter_token)) continue;
    add_up(before, since->counters.inter_token);
    add_up(after, newest.counters.inter_token);
  }
  if (measure::bucket_count(before, after).value_or(0) < gaps_min) return {};
  return {measure::bucket_quantile(before, after, Ppm(500'000)),
          measure::bucket_quantile(before, after, Ppm(990'000))};
}

api::EngineRow EngineWatch::row(const std::string& service) const {
  const std::scoped_lock lock(mutex_);
  const Time now = now_();
  api::EngineRow row;
  std::map<Micros, std::uint64_t> before;
  std::map<Micros, std::uint64_t> after;
  for (const auto& [allocation, engine] : engines_) {
    if (engine.replica.service != service) continue;
    ++row.asked;
    if (engine.readings.empty() || engine.readings.back().at + fresh < now) continue;
    const Reading& newest = engine.readings.back();
    const EngineCounters& c = newest.counters;
    ++row.replicas;
    row.age_us = std::max(row.age_us, (now - newest.at).value);
    if (c.running) row.running = add_known(row.running, *c.running);
    if (c.waiting) row.waiting = add_known(row.waiting, *c.waiting);
    if (c.kv_use) row.kv_use_ppm = std::max(row.kv_use_ppm, c.kv_use->value);
    const auto since = std::ranges::find_if(
        engine.readings, [&](const Reading& one) { return one.at + rate_span >= newest.at; });
    const Micros length = newest.at - since->at;
    if (const auto rate =
            milli_per_second(since->counters.prompt_tokens, c.prompt_tokens, length)) {
      row.prompt_tokens_milli_per_s = add_known(row.prompt_tokens_milli_per_s, *rate);
    }
    if (const auto rate =
            milli_per_second(since->counters.generated_tokens, c.generated_tokens, length)) {
      row.generated_tokens_milli_per_s = add_known(row.generated_tokens_milli_per_s, *rate);
    }
    const EngineCounters& oldest = engine.readings.front().counters;
    // One that began anew meanwhile is left out until its old readings are gone.
    if (engine.readings.size() < 2 || !measure::bucket_count(oldest.inter_token, c.inter_token)) {
      continue;
    }
    add_up(before, oldest.inter_token);
    add_up(after, c.inter_token);
  }
  const auto count = measure::bucket_count(before, after);
  if (!count) return row;
  row.inter_token_count = static_cast<std::int64_t>(*count);
  const auto quantile = [&](std::int64_t ppm) {
    const auto found = measure::bucket_quantile(before, after, Ppm(ppm));
    return found ? found->value : api::unknown;
  };
  row.inter_token_p50_us = quantile(500'000);
  row.inter_token_p95_us = quantile(950'000);
  row.inter_token_p99_us = quantile(990'000);
  return row;
}

}  // namespace neap::daemon
