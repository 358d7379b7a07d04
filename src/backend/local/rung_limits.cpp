#include "backend/local/rung_limits.h"

#include <algorithm>

namespace neap::local {
namespace {

using measure::Resource;
using measure::Rung;

constexpr std::int64_t weight_most = 10'000;
constexpr std::int64_t weight_least = 10;
constexpr std::int64_t quota_least = 100;  // a tenth of a processor: it still gets on
constexpr std::int64_t io_least = 1'000'000;

std::string range(std::int64_t first, std::int64_t last) {
  return first == last ? std::to_string(first) : std::to_string(first) + "-" + std::to_string(last);
}

// The service's own: the last ones, as many as it takes; at least one is left to the others.
std::int64_t own_processors(const RungFacts& facts) {
  const std::int64_t wanted = (facts.service_cpu_milli + 999) / 1'000;
  return std::clamp<std::int64_t>(wanted, 1, facts.processors - 1);
}

auto not_here(const char* what) { return fail(ErrorCode::unavailable, what); }

Result<CgroupLimits> neighbour_cpu(const RungFacts& facts, CgroupLimits limits) {
  if (facts.rung == Rung::flow) {
    limits.cpu_weight = weight_least;
    return limits;
  }
  if (facts.rung == Rung::quota) {
    // What the service needs and a quarter more stays free at every moment.
    const std::int64_t free = facts.processors * 1'000 - facts.service_cpu_milli * 5 / 4;
    const std::int64_t each =
        std::max(free / std::max<std::int64_t>(facts.neighbours, 1), quota_least);
    limits.cpu_weight = weight_least;
    limits.cpu_quota_milli = std::min(each, limits.cpu_quota_milli.value_or(each));
    return limits;
  }
  if (facts.processors < 2) return not_here("one processor cannot be divided");
  limits.cpu_weight = weight_least;
  limits.cpus = range(0, facts.processors - own_processors(facts) - 1);
  if (facts.rung == Rung::dedicate) limits.cpu_quota_milli = quota_least;
  return limits;
}

Result<CgroupLimits> neighbour_memory(const RungFacts& facts, CgroupLimits limits) {
  if (facts.rung == Rung::flow) {
    limits.memory_high_bytes = facts.memory_bytes * 9 / 10;
    return limits;
  }
  if (facts.rung == Rung::quota) {
    // It keeps what it holds: less would end it as out of memory.
    limits.memory_max_bytes = facts.memory_bytes * 21 / 20;
    return limits;
  }
  return not_here(
      "memory of a host is not divided further: ask the neighbour to yield, or give "
      "the service a machine of its own");
}

Result<CgroupLimits> neighbour_storage(const RungFacts& facts, CgroupLimits limits) {
  if (facts.rung == Rung::partition) {
    return not_here("put the paths of the two on different disks");
  }
  if (facts.disk.empty()) return not_here("the disk is not known");
  if (!facts.io_bytes_per_s) return not_here("what the neighbour moves is not known");
  const std::int64_t divisor = facts.rung == Rung::flow ? 2 : 10;
  const std::int64_t bytes =
      facts.rung == Rung::dedicate ? io_least : std::max(*facts.io_bytes_per_s / divisor, io_least);
  auto known = std::ranges::find(limits.io, facts.disk, &IoLimit::device);
  if (known == limits.io.end()) {
    known = limits.io.insert(limits.io.end(), {facts.disk, {}, {}, {}, {}});
  }
  known->read_bytes = std::min(bytes, known->read_bytes.value_or(bytes));
  known->write_bytes = std::min(bytes, known->write_bytes.value_or(bytes));
  return limits;
}

Result<CgroupLimits> neighbour_network(const RungFacts& facts, CgroupLimits limits) {
  if (facts.rung == Rung::partition) return not_here("give the service a link of its own");
  if (!facts.link_bytes_per_s) return not_here("what the link carries is not known");
  const std::int64_t divisor =
      facts.rung == Rung::flow ? 2 : (facts.rung == Rung::quota ? 10 : 100);
  const std::int64_t bytes = *facts.link_bytes_per_s / divisor;
  limits.network_bytes = std::min(bytes, limits.network_bytes.value_or(bytes));
  return limits;
}

}  // namespace

Result<CgroupLimits> neighbour_limits(const RungFacts& facts, CgroupLimits usual) {
  if (facts.rung == Rung::none) return usual;
  switch (facts.resource) {
    case Resource::cpu:
      return neighbour_cpu(facts, std::move(usual));
    case Resource::memory:
      return neighbour_memory(facts, std::move(usual));
    case Resource::storage:
      return neighbour_storage(facts, std::move(usual));
    case Resource::network:
      return neighbour_network(facts, std::move(usual));
    case Resource::device_memory:
    case Resource::device_compute:
      return not_here(
          "devices are partitioned (MIG) or dedicated by the operator; neap mig plan "
          "says how");
    case Resource::none:
    case Resource::own_load:
      break;
  }
  return not_here("nobody else is to blame");
}

Result<CgroupLimits> service_limits(const RungFacts& facts, CgroupLimits usual) {
  if (facts.rung == Rung::none || facts.resource != Resource::cpu) return usual;
  usual.cpu_weight = weight_most;
  const bool divided = facts.rung == Rung::partition || facts.rung == Rung::dedicate;
  if (divided && facts.processors >= 2) {
    usual.cpus = range(facts.processors - own_processors(facts), facts.processors - 1);
  }
  return usual;
}

}  // namespace neap::local
