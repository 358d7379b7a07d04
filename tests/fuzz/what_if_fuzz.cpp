// Any bytes as what `neap simulate` is given: a cluster, a policy with what is set, a workload of
// any format. Understood within the limits, or an error with text. The first byte says which of
// them. A workload that was understood runs for an hour on two devices.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/model/codec.h"
#include "simulate/run/cluster.h"
#include "simulate/run/policy.h"
#include "simulate/run/run.h"
#include "simulate/run/workload.h"
#include "tests/fuzz/memory_file.h"

namespace {

using namespace neap;
using namespace neap::whatif;

constexpr std::size_t most_read = 10'000;
constexpr std::size_t most_run = 200;

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const Error& error) { require(!error.message.empty()); }

void check(const Result<ClusterSpec>& cluster) {
  if (!cluster) return check(cluster.error());
  require(!cluster->nodes.empty() && cluster->nodes.size() <= 20'000);
  for (const NodeSpec& node : cluster->nodes) {
    require(!node.name.empty() && node.devices.size() <= 64);
    for (const DeviceSpec& device : node.devices) require(device.memory > MiB(0));
  }
}

// Lines of key=value, and after a zero byte the file.
void read_policy(const std::string& text) {
  const std::size_t zero = std::min(text.find('\0'), text.size());
  std::vector<std::string> sets;
  for (std::size_t begin = 0; begin < zero && sets.size() < 8;) {
    const std::size_t end = std::min(text.find('\n', begin), zero);
    sets.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::string file = zero < text.size() ? text.substr(zero + 1) : "pool: {}\n";
  const fuzz::MemoryFile policy_file(file);
  const auto policy = load_policy(policy_file.path(), sets);
  if (!policy) return check(policy.error());
  const PoolSpec& pool = policy->pool;
  require(pool.total_gpus == 0 || pool.inference_guard_min <= pool.total_gpus);
  require(pool.inference_guard_min >= 0 && pool.elastic_buffer >= 0 && !pool.tiers.empty());
}

void check(const JobIncoming& job) {
  const Request& request = job.spec.request;
  require(!job.spec.name.empty() && !job.spec.tier.empty());
  require(request.count >= 1 && request.share.value >= 1 && request.share <= whole_device);
  require(request.cpu_milli >= 0 && request.host_memory >= MiB(0));
  require(job.duration >= Micros(0) && (!job.deadline || *job.deadline >= Micros(0)));
}
void check(const ServiceIncoming& service) {
  require(!service.spec.name.empty() && service.spec.min_replicas <= service.spec.max_replicas);
}
void check(const LoadIncoming& load) { require(!load.service.empty() && load.in_use_milli >= 0); }
void check(const ServiceLeaving& leaving) { require(!leaving.service.empty()); }

// How many arrivals there are, of those that are looked at.
Result<std::size_t> read_all(const WorkloadOptions& options, const PoolSpec& pool) {
  auto stream = open_workload(options, pool);
  if (!stream) return tl::unexpected(stream.error());
  Time last;
  for (std::size_t count = 0; count < most_read; ++count) {
    Incoming incoming;
    const auto more = (*stream)->next(incoming);
    if (!more) return tl::unexpected(more.error());
    if (!*more) return count;
    require(incoming.at >= last);
    last = incoming.at;
    std::visit([](const auto& what) { check(what); }, incoming.what);
  }
  return most_read;
}

void run(RunSpec spec) {
  spec.cluster = *cluster_of_text("1x2xA100-80G");
  spec.until = hours(1);
  const auto outcome = run_once(spec, {});
  if (!outcome) return check(outcome.error());
  const JobFigures& all = outcome->all;
  require(all.jobs == all.refused + all.finished + all.failed + all.unfinished);
  require(outcome->allocated_ppm >= 0 && outcome->allocated_ppm <= all_ppm.value);
}

// The second byte chooses the format and what is drawn by chance.
void read_workload(const std::string& text) {
  if (text.empty()) return;
  static const PolicySpec policy = *load_policy("", {});
  const auto choice = static_cast<unsigned char>(text.front());
  const fuzz::MemoryFile file(std::string_view(text).substr(1));
  RunSpec spec;
  spec.policy = policy;
  spec.workload.files = {file.path()};
  spec.workload.format = static_cast<Format>(choice % 10);
  spec.workload.contract.sdk = true;
  spec.workload.replica.max = 2;
  if ((choice & 0x80U) != 0) {
    spec.workload.jitter = all_ppm;
    spec.workload.sample = Ppm(500'000);
  }
  const auto count = read_all(spec.workload, spec.policy.pool);
  if (!count) return check(count.error());
  if (*count <= most_run) run(std::move(spec));
}

// What a journal holds: what is decoded is written the same.
void read_records(const std::string& text) {
  const auto event = decode_event(text);
  if (!event) check(event.error());
  if (event) require(decode_event(encode(*event)).has_value() && !name_of(*event).empty());
  const auto decision = decode_decision(text);
  if (!decision) check(decision.error());
  if (decision) require(decode_decision(encode(*decision)).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      check(cluster_of_text(text));
      break;
    case 1:
      check(load_cluster(fuzz::MemoryFile(text).path()));
      break;
    case 2:
      read_policy(text);
      break;
    case 3:
      read_records(text);
      break;
    default:
      read_workload(text);
  }
  return 0;
}
