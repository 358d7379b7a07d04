#include "tests/sim/work.h"

#include <algorithm>
#include <array>

namespace neap::sim {

using simulated::Behaviour;
using simulated::Fault;
using simulated::Random;

namespace {

constexpr MiB large_card{81'920};
constexpr MiB small_card{24'576};

// Half of the seeds are about getting along, half about a pool that is too small for its work.
enum class Mood : std::uint8_t { calm, crowded };

PoolSpec any_pool(Random& random, std::int64_t devices, Mood mood) {
  PoolSpec pool;
  pool.tiers = field_tiers();
  pool.inference_guard_min = static_cast<std::int32_t>(random.below(devices / 3 + 1));
  pool.elastic_buffer = static_cast<std::int32_t>(random.below(4));
  pool.total_gpus = random.chance(Ppm(500'000)) ? static_cast<std::int32_t>(devices) : 0;
  pool.preempt.checkpoint_interval = random.between(minutes(2), minutes(15));
  pool.preempt.grace = random.between(seconds(10), seconds(60));
  pool.preempt.term_grace = random.between(seconds(5), seconds(30));
  pool.preempt.protect_min =
      random.between(seconds(30), mood == Mood::crowded ? minutes(5) : minutes(30));
  pool.preempt.budget_per_day = static_cast<std::int32_t>(random.between(1, 6));
  pool.preempt.guard_reclaim = random.between(seconds(20), minutes(3));
  pool.preempt.enabled = !random.chance(Ppm(50'000));
  pool.preempt.break_glass = random.chance(Ppm(100'000));
  pool.scale.stale_after = minutes(2);
  pool.prefilter.back_after = random.between(seconds(30), minutes(5));
  if (random.chance(Ppm(200'000))) pool.device_reserve = MiB(512);
  if (random.chance(Ppm(200'000))) pool.share_min_memory = MiB(32'768);
  if (random.chance(Ppm(200'000))) pool.baseline = "cuda-12.2";
  pool.reserve.after = random.between(seconds(30), minutes(15));
  pool.reserve.most = static_cast<std::int32_t>(random.below(5));
  pool.defragment.enabled = !random.chance(Ppm(200'000));
  pool.defragment.every = random.between(minutes(1), minutes(10));
  pool.defragment.quiet_below = Ppm(random.between(100'000, 1'000'000));
  pool.defragment.cooldown = static_cast<std::int32_t>(random.below(11));
  return pool;
}

std::vector<NodeSpec> any_nodes(Random& random) {
  std::vector<NodeSpec> nodes;
  const std::int64_t count = random.between(1, 6);
  const std::int64_t domains = random.between(1, 3);
  std::int64_t left = 20;  // small pools meet corners more often, and run faster
  for (std::int64_t n = 0; n < count && left > 0; ++n) {
    NodeSpec node;
    node.name = "n" + std::to_string(n);
    node.fault_domain = "rack" + std::to_string(n % domains);
    const std::int64_t devices = std::min(left, random.between(1, 8));
    left -= devices;
    const bool small = random.chance(Ppm(200'000));
    const bool dedicated = n > 0 && random.chance(Ppm(100'000));
    for (std::int64_t d = 0; d < devices; ++d) {
      node.devices.push_back({.uuid = "GPU-" + node.name + "-" + std::to_string(d),
                              .model = small ? "L4" : "A100-80G",
                              .memory = small ? small_card : large_card,
                              .dedicated = dedicated});
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

ContractSpec any_contract(Random& random, const Behaviour& behaviour) {
  ContractSpec contract;
  const std::int64_t kind = random.below(10);
  contract.sdk = kind < 6;
  contract.signals = kind == 6 || kind == 7;
  contract.watch = kind >= 7 && kind < 9;  // kind 9: none at all, which A4 does not admit
  contract.on_demand = contract.sdk && random.chance(Ppm(600'000));
  contract.interval = contract.sdk || contract.watch ? behaviour.interval : Micros(0);
  contract.save = behaviour.save;
  contract.stall = behaviour.stall;
  contract.release = behaviour.release;
  contract.restore = behaviour.load + behaviour.restore;
  return contract;
}

Behaviour any_behaviour(Random& random, Mood mood) {
  constexpr std::array steps{seconds(10), seconds(30), seconds(60), seconds(120)};
  Behaviour b;
  b.spawn = random.between(milliseconds(100), seconds(10));
  // The protected window is nine times the restore time: short ones make for many preemptions.
  const Micros longest = mood == Mood::crowded ? seconds(15) : minutes(2);
  b.load = random.between(seconds(5), longest);
  b.step = random.pick(steps);
  b.steps = std::max<std::int64_t>(2, random.between(minutes(3), minutes(80)).value / b.step.value);
  b.interval = random.between(minutes(1), minutes(12));
  b.save = random.between(seconds(1), seconds(30));
  b.stall = random.chance(Ppm(500'000)) ? b.save : b.save / 3;
  b.restore = random.between(seconds(5), longest);
  b.release = random.between(seconds(1), seconds(8));
  if (random.chance(Ppm(250'000))) {
    b.fault = static_cast<Fault>(random.between(1, 9));
    b.fault_at = random.between(1, b.steps);
    b.fault_times = random.chance(Ppm(700'000)) ? random.between(1, 2) : 1'000'000;
  }
  return b;
}

Request any_request(Random& random) {
  Request request;
  if (random.chance(Ppm(350'000))) {
    request.share = MilliGpu(random.between(1, 9) * 100);
    request.memory = MiB(random.between(1, 24) * 1'024);
    if (random.chance(Ppm(150'000))) request.trust_domain = "tenant-b";
    if (random.chance(Ppm(100'000))) request.count = 2;
    return request;
  }
  const std::int64_t size = random.below(10);
  request.count = static_cast<std::int32_t>(size < 6   ? 1
                                            : size < 9 ? random.between(2, 4)
                                                       : random.between(5, 12));
  if (random.chance(Ppm(100'000))) request.models = {"A100-80G"};
  return request;
}

TaskSpec any_task(Random& random, std::int64_t number, Mood mood) {
  constexpr std::array tiers{"train_interactive", "train_deadline_near", "train_normal",
                             "train_normal", "train_normal"};
  Behaviour behaviour = any_behaviour(random, mood);
  TaskSpec task;
  task.name = "t" + std::to_string(number);
  task.team = random.chance(Ppm(500'000)) ? "red" : "blue";
  task.tier = random.pick(tiers);
  task.request = any_request(random);
  task.contract = any_contract(random, behaviour);
  const bool reports = task.contract.sdk || task.contract.watch;
  if (behaviour.fault == Fault::yields_unasked && !reports) {
    // Nobody can tell it from one that saved each time; it would go on for ever.
    behaviour.fault_times = 2;
  }
  task.interruptible = !random.chance(Ppm(30'000));
  task.predictable = !random.chance(Ppm(30'000));
  if (random.chance(Ppm(800'000))) {
    // Some declare less or more than it will be.
    task.work = simulated::undisturbed_work(behaviour) * random.between(60, 130) / 100;
  }
  if (random.chance(Ppm(100'000))) {
    task.windows.push_back({random.between(Micros(0), hours(24)), hours(3)});
  }
  if (random.chance(Ppm(150'000))) task.deadline = Time(0) + random.between(minutes(20), hours(6));
  if (random.chance(Ppm(100'000))) task.baseline = "cuda-11.8";
  task.launch = launch_text(behaviour);
  return task;
}

// A base, a day-shaped swing and bursts; now and then no metrics at all.
Load any_load(Random& random, std::int32_t replicas) {
  const std::int64_t most = std::int64_t{replicas} * 5;
  const std::int64_t base = random.below(most + 1);
  const std::int64_t swing = random.below(most + 1);
  const Micros period = random.between(minutes(30), hours(4));
  const Micros burst_every = random.between(minutes(20), hours(2));
  const std::int64_t noise_seed = random.between(0, 1'000'000);
  return [=](Time t) -> std::optional<std::int64_t> {
    const std::int64_t minute = t.us / minutes(1).value;
    auto noise = static_cast<std::uint64_t>(noise_seed + minute);
    const auto draw = static_cast<std::int64_t>(simulated::split_mix(noise) % 100);
    if (draw < 4) return std::nullopt;
    const std::int64_t phase = t.us % period.value * 2;
    const std::int64_t wave =
        phase < period.value ? phase : 2 * period.value - phase;  // 0 .. period .. 0
    const bool burst = t.us % burst_every.value < minutes(8).value;
    return base / 2 + swing * wave / period.value + (burst ? most : 0);
  };
}

ServiceSpec any_service(Random& random, std::int64_t number) {
  Behaviour behaviour;
  behaviour.spawn = random.between(milliseconds(100), seconds(5));
  behaviour.load = random.between(seconds(5), minutes(3));
  behaviour.drain = random.between(seconds(1), seconds(40));
  if (random.chance(Ppm(300'000))) behaviour.sick_every = minutes(40);
  if (random.chance(Ppm(100'000))) {
    behaviour.fault = random.chance(Ppm(500'000)) ? Fault::crashes : Fault::fails_to_start;
    behaviour.fault_at = random.between(1, 2'000);
    behaviour.fault_times = random.between(1, 3);
  }
  if (random.chance(Ppm(100'000))) behaviour.fault = Fault::ignores_term;
  ServiceSpec service;
  service.name = "s" + std::to_string(number);
  service.team = "web";
  service.tier = "infer_core";
  if (random.chance(Ppm(500'000))) {
    service.request.share = MilliGpu(random.between(1, 6) * 100);
    service.request.memory = MiB(random.between(1, 20) * 1'024);
  } else if (random.chance(Ppm(200'000))) {
    service.request.count = 2;
  }
  service.min_replicas = static_cast<std::int32_t>(random.below(3));
  service.max_replicas = service.min_replicas + static_cast<std::int32_t>(random.between(1, 5));
  service.concurrency = 4;
  service.start_timeout = random.between(minutes(4), minutes(10));
  service.drain_timeout = random.between(seconds(20), seconds(60));
  service.launch = launch_text(behaviour);
  return service;
}

}  // namespace

std::vector<TierSpec> field_tiers() {
  return {{"infer_core", 100, Purpose::inference},
          {"train_interactive", 90, Purpose::interactive},
          {"train_deadline_near", 80, Purpose::batch},
          {"train_normal", 40, Purpose::batch}};
}

Work any_work(Random& random) {
  Work work;
  work.nodes = any_nodes(random);
  std::int64_t devices = 0;
  for (const NodeSpec& node : work.nodes) devices += static_cast<std::int64_t>(node.devices.size());
  const Mood mood = random.chance(Ppm(500'000)) ? Mood::crowded : Mood::calm;
  work.pool = any_pool(random, devices, mood);
  const Micros horizon = random.between(minutes(60), hours(4));
  work.horizon = Time(0) + horizon;
  const std::int64_t tasks = random.between(3, 4 + 2 * devices);
  const Micros last_task = mood == Mood::crowded ? horizon / 4 : horizon * 3 / 4;
  for (std::int64_t i = 0; i < tasks; ++i) {
    work.tasks.emplace_back(Time(0) + random.between(seconds(1), last_task),
                            any_task(random, i, mood));
  }
  const std::int64_t services = mood == Mood::crowded ? random.between(1, 3) : random.below(3);
  for (std::int64_t i = 0; i < services; ++i) {
    const Micros first = mood == Mood::crowded ? horizon / 4 : seconds(1);
    ServiceSpec service = any_service(random, i);
    Load load = any_load(random, service.max_replicas);
    work.services.emplace_back(Time(0) + random.between(first, horizon * 2 / 3), std::move(service),
                               std::move(load));
  }
  return work;
}

}  // namespace neap::sim
