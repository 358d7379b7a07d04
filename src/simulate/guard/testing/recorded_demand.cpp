#include "simulate/guard/testing/recorded_demand.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "core/model/lead_time/whole.h"
#include "trace/jobs.h"
#include "trace/rates.h"
#include "trace/read_all.h"
#include "trace/requests.h"
#include "trace/tar.h"

namespace neap::simulate::testing {

namespace {

constexpr std::int64_t million = 1'000'000;
const lead_time::GuardSpec ten_minutes{100, 600, 600, 10};

std::optional<std::string> folder() {
  const char* traces = std::getenv("NEAP_TRACES");
  if (traces == nullptr) return {};
  return std::string(traces) + "/";
}

// Of each client, by window.
std::vector<Offered> servegen_clients() {
  const auto traces = folder();
  if (!traces) return {};
  auto bytes = trace::open_bytes(*traces + "servegen/language_m-small.traces.tgz");
  trace::TarReader members(std::move(bytes.value()));
  std::vector<Offered> clients;
  while (true) {
    auto member = members.next();
    if (!member.value()) return clients;
    Offered offered;
    const auto rows =
        trace::read_all<trace::Rate>(trace::ServeGenReader(std::move(*member.value())));
    for (const trace::Rate& row : rows.value()) {
      offered.emplace_back(std::llround(row.per_second * 1e6));
    }
    clients.push_back(std::move(offered));
  }
}

Offered sum_of(const std::vector<Offered>& clients, std::size_t first, std::size_t step) {
  Offered sum(clients.front().size(), 0);
  for (std::size_t c = first; c < clients.size(); c += step) {
    for (std::size_t s = 0; s < sum.size(); ++s) *sum[s] += *clients[c][s];
  }
  return sum;
}

// Highest of each `width` values.
Offered highest(const Offered& values, std::size_t width) {
  Offered found;
  for (std::size_t s = 0; s + width <= values.size(); s += width) {
    found.push_back(*std::max_element(values.begin() + static_cast<std::ptrdiff_t>(s),
                                      values.begin() + static_cast<std::ptrdiff_t>(s + width)));
  }
  return found;
}

// ServeGen's windows in minutes, each with the swing of a recorded minute of requests.
Offered with_minutes_of(const Offered& windows, const std::vector<trace::Request>& requests) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const trace::Request& r : requests)
    ++counts[(r.at - requests.front().at).value / 60'000'000];
  counts.erase(std::prev(counts.end()));  // not whole
  const auto minutes = static_cast<std::int64_t>(counts.size());
  std::int64_t sum = 0;
  for (const auto& [minute, count] : counts) sum += count;
  Offered offered;
  for (const auto& window : windows) {
    for (int i = 0; i < 10; ++i) {
      const auto at = static_cast<std::int64_t>(offered.size()) % minutes;
      auto entry = counts.begin();
      std::advance(entry, at);
      offered.emplace_back(scaled_up(*window, entry->second * minutes, sum));
    }
  }
  return offered;
}

HeldOut scaled(std::string name, lead_time::GuardSpec rule, const Offered& offered) {
  return {std::move(name), rule, scaled_demand(rule, offered, rule.devices)};
}

void add_servegen(std::vector<HeldOut>& all, const std::vector<Offered>& clients) {
  const Offered sum = sum_of(clients, 0, 1);
  Offered reversed(sum.rbegin(), sum.rend());
  all.push_back(scaled("servegen backwards", ten_minutes, reversed));
  for (const std::size_t by : {300U, 700U}) {
    Offered rotated = sum;
    std::rotate(rotated.begin(), rotated.begin() + by, rotated.end());
    all.push_back(scaled("servegen rotated by " + std::to_string(by), ten_minutes, rotated));
  }
  all.push_back(scaled("servegen even clients", ten_minutes, sum_of(clients, 0, 2)));
  all.push_back(scaled("servegen odd clients", ten_minutes, sum_of(clients, 1, 2)));
  all.push_back(scaled("servegen 1000 devices", {1'000, 600, 600, 10}, sum));
  all.push_back(scaled("servegen lead 1800 s", {100, 600, 1'800, 10}, sum));
  all.push_back(scaled("servegen slots of 1800 s", {100, 1'800, 600, 10}, highest(sum, 3)));
}

void add_requests(std::vector<HeldOut>& all, const std::string& traces, const Offered& sum) {
  const lead_time::GuardSpec minutes{100, 60, 600, 10};
  const auto azure = trace::read_file<trace::Request, trace::AzureReader>(
      traces + "azure/AzureLLMInferenceTrace_conv.csv.gz");
  const auto mooncake = trace::read_file<trace::Request, trace::MooncakeReader>(
      traces + "mooncake/conversation_trace.jsonl.gz");
  all.push_back(scaled("azure minutes on servegen", minutes, with_minutes_of(sum, azure.value())));
  all.push_back(
      scaled("mooncake minutes on servegen", minutes, with_minutes_of(sum, mooncake.value())));
}

void add_helios(std::vector<HeldOut>& all, const std::string& traces) {
  const auto rows = trace::read_file<trace::Occupancy, trace::HeliosReader>(
      traces + "helios/Earth_vchbv.cluster_sequence.csv.gz");
  Offered running;
  for (const trace::Occupancy& row : rows.value()) running.emplace_back(row.running_gpus);
  // These are devices, and the virtual cluster has 64.
  all.push_back({"helios, slots of 600 s", {64, 600, 600, 10}, highest(running, 10)});
  all.push_back({"helios, slots of 300 s", {64, 300, 600, 10}, highest(running, 5)});
}

// What Philly's jobs would hold if each began at once, and how many arrive.
void add_philly(std::vector<HeldOut>& all, const std::string& traces) {
  const auto jobs =
      trace::read_file<trace::Job, trace::PhillyReader>(traces + "philly/philly_sia_pollux.csv.gz");
  Time from = jobs->front().submitted, to = from;
  for (const trace::Job& job : *jobs) {
    from = std::min(from, job.submitted);
    to = std::max(to, job.submitted);
  }
  const auto slot_of = [&](Time at) {
    return static_cast<std::size_t>((at - from).value / (600 * million));
  };
  std::vector<std::int64_t> steps(slot_of(to) + 2, 0), arrived(slot_of(to) + 1, 0);
  for (const trace::Job& job : *jobs) {
    ++arrived[slot_of(job.submitted)];
    steps[slot_of(job.submitted)] += job.gpus;
    const std::size_t end = slot_of(job.submitted + job.duration) + 1;
    steps[std::min(end, steps.size() - 1)] -= job.gpus;
  }
  Offered held;
  std::int64_t now = 0;
  for (std::size_t s = 0; s < arrived.size(); ++s) held.emplace_back(now += steps[s]);
  all.push_back(scaled("philly devices held", ten_minutes, held));
  all.push_back(scaled("philly arrivals", ten_minutes, Offered(arrived.begin(), arrived.end())));
}

}  // namespace

std::optional<Recorded> Recorded::servegen() {
  const auto traces = folder();
  if (!traces) return {};
  auto bytes = trace::open_bytes(*traces + "servegen/language_m-small.traces.tgz");
  const auto windows = trace::read_servegen(std::move(bytes.value()));
  Recorded recorded;
  for (const trace::RateWindow& w : windows.value())
    recorded.offered.emplace_back(w.micro_per_second);
  return recorded;
}

std::vector<Offered> servegen_parts(std::size_t services) {
  const std::vector<Offered> clients = servegen_clients();
  std::vector<Offered> parts;
  for (std::size_t i = 0; i < services && !clients.empty(); ++i) {
    parts.push_back(sum_of(clients, i, services));
  }
  return parts;
}

std::vector<HeldOut> held_out() {
  const auto traces = folder();
  if (!traces) return {};
  const std::vector<Offered> clients = servegen_clients();
  std::vector<HeldOut> all;
  add_servegen(all, clients);
  add_requests(all, *traces, sum_of(clients, 0, 1));
  add_helios(all, *traces);
  add_philly(all, *traces);
  return all;
}

std::vector<std::int64_t> same_hour_guard(const lead_time::GuardSpec& spec,
                                          const SlotDemand& demand) {
  const std::int64_t n = spec.slots_per_hour();
  std::vector<std::int64_t> guard(demand.size(), spec.devices);
  for (std::size_t s = 0; s < demand.size(); ++s) {
    const std::int64_t hour = static_cast<std::int64_t>(s) / n;
    std::vector<std::int64_t> seen;
    for (std::int64_t day = 1; day <= 14 && hour - 24 * day >= 0; ++day) {
      for (std::int64_t i = 0; i < n; ++i) {
        const auto& slot = demand[static_cast<std::size_t>((hour - 24 * day) * n + i)];
        if (slot) seen.push_back(*slot);
      }
    }
    if (seen.empty()) continue;
    std::sort(seen.begin(), seen.end());
    const auto rank = (95 * static_cast<std::int64_t>(seen.size()) + 99) / 100;
    const std::int64_t percentile = seen[static_cast<std::size_t>(rank - 1)];
    guard[s] = std::min(spec.devices, (percentile * 115 + 99) / 100);
  }
  return guard;
}

Held held_against(const lead_time::GuardSpec& spec, const SlotDemand& demand,
                  const std::vector<std::int64_t>& guard, Slots scored) {
  Held held;
  std::int64_t violated = -1;  // the last hour that was
  for (std::int64_t s = scored.first; s <= scored.last; ++s) {
    const auto at = static_cast<std::size_t>(s);
    if (!demand[at]) continue;
    held.demand += *demand[at];
    held.idle += std::max<std::int64_t>(0, guard[at] - *demand[at]);
    const std::int64_t hour = s / spec.slots_per_hour();
    if (*demand[at] <= guard[at] || hour == violated) continue;
    violated = hour;
    ++held.violated_hours;
  }
  return held;
}

}  // namespace neap::simulate::testing
