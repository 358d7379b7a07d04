#include "tests/sim/weather.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "tests/sim/work.h"

namespace neap::sim {

using simulated::Machines;
using simulated::Random;

namespace {

Site::Options options_of(std::uint64_t seed, Random& random) {
  Site::Options options;
  options.seed = seed;
  if (random.chance(Ppm(700'000))) {
    options.network = {.least = milliseconds(1),
                       .most = random.between(milliseconds(2), milliseconds(800)),
                       .lost = Ppm(random.between(0, 150'000)),
                       .doubled = Ppm(random.between(0, 150'000)),
                       .late = Ppm(random.between(0, 50'000)),
                       .latest = random.between(seconds(1), seconds(30))};
  }
  if (random.chance(Ppm(600'000))) {
    options.crashes.at_each_point = Ppm(random.between(100, 4'000));
  }
  options.watch_most = random.between(seconds(1), seconds(20));
  return options;
}

// Breaks and mends things at random until it is told to stop.
class BadLuck {
 public:
  BadLuck(Site& site, Random random, Micros mean) : site_(site), random_(random), mean_(mean) {
    for (const auto& [name, node] : site.machines().nodes()) names_.push_back(name);
  }

  void start() {
    site_.timeline().after(random_.wait(mean_), [this] {
      if (over_) return;
      strike();
      start();
    });
  }
  void stop() { over_ = true; }

 private:
  void strike() {
    const std::string& node = random_.pick(std::span<const std::string>(names_));
    const auto devices = static_cast<std::int64_t>(site_.machines().node(node).devices.size());
    const auto index = static_cast<std::int32_t>(random_.below(devices));
    const Micros mend = random_.between(seconds(20), minutes(30));
    switch (random_.below(10)) {
      case 0:
        site_.fail_device(node, index);
        later(mend, [this, node, index] { site_.repair_device(node, index); });
        break;
      case 1:
        site_.cut_node(node);
        later(mend / 4, [this, node] { site_.reconnect_node(node); });
        break;
      case 2:
        site_.lose_node(node);
        later(mend, [this, node] { site_.return_node(node); });
        break;
      case 3:
        lose_domain(site_.machines().node(node).spec.fault_domain, mend);
        break;
      case 4: {
        const MiB memory = site_.machines().node(node).devices[0].spec.memory;
        site_.set_foreign_memory(node, index, MiB(random_.below(memory.value)));
        later(mend, [this, node, index] { site_.set_foreign_memory(node, index, MiB(0)); });
        break;
      }
      case 5:
        crash_some_task();
        break;
      case 6:
        site_.daemon().crash();
        break;
      case 7:
        site_.ask(PauseRequested{"operator", "an incident"});
        later(mend / 4, [this] { site_.ask(ResumeRequested{"operator"}); });
        break;
      default:
        change_minds();
        break;
    }
  }

  template <class Act>
  void later(Micros wait, Act act) {
    site_.timeline().after(wait, [this, act] {
      if (!over_) act();
    });
  }

  void lose_domain(const std::string& domain, Micros mend) {
    for (const std::string& name : names_) {
      if (site_.machines().node(name).spec.fault_domain != domain) continue;
      site_.lose_node(name);
      later(mend, [this, name] { site_.return_node(name); });
    }
  }

  void crash_some_task() {
    std::vector<AllocationId> running;
    for (const std::string& name : names_) {
      for (const AllocationId a : site_.machines().on_node(name)) running.push_back(a);
    }
    if (running.empty()) return;
    site_.backend().crash_task(random_.pick(std::span<const AllocationId>(running)),
                               "somebody killed it");
  }

  void configure_anew() {
    if (!site_.daemon().is_up() || !site_.state().configured) return;
    PoolSpec pool = site_.state().spec;
    const auto devices = static_cast<std::int64_t>(site_.state().devices.size());
    pool.total_gpus = 0;
    pool.inference_guard_min = static_cast<std::int32_t>(random_.below(devices / 2 + 1));
    pool.elastic_buffer = static_cast<std::int32_t>(random_.below(5));
    site_.ask(PoolConfigured{pool});
  }

  // People cancel tasks, and scale and remove services.
  void change_minds() {
    if (!site_.daemon().is_up()) return;
    std::vector<std::string> tasks, services;
    site_.state().tasks.for_each([&](const TaskState& task) {
      if (!has_ended(task.phase) && !task.service.valid()) tasks.push_back(task.spec.name);
    });
    for (const ServiceState& service : site_.state().services) {
      if (!service.removed) services.push_back(service.spec.name);
    }
    if (!services.empty() && random_.chance(Ppm(400'000))) {
      const std::string& name = random_.pick(std::span<const std::string>(services));
      if (random_.chance(Ppm(200'000))) return site_.ask(ServiceRemoveRequested{name, "somebody"});
      const auto least = static_cast<std::int32_t>(random_.below(3));
      return site_.ask(ServiceScaled{
          name, least, least + static_cast<std::int32_t>(random_.below(4)), "somebody"});
    }
    if (tasks.empty()) return;
    site_.ask(TaskCancelRequested{random_.pick(std::span<const std::string>(tasks)), "somebody"});
  }

  Site& site_;
  Random random_;
  Micros mean_;
  std::vector<std::string> names_;
  bool over_ = false;
};

bool at_rest(Site& site) {
  if (!site.daemon().is_up() || site.state().pause.active) return false;
  if (site.backend().unacknowledged() > 0) return false;
  bool rest = true;
  site.state().tasks.for_each([&](const TaskState& task) {
    if (has_ended(task.phase)) return;
    const bool serves = task.service.valid() && task.phase == Phase::running && task.ready;
    const bool backs_off = task.phase == Phase::waiting && task.not_before > site.state().now;
    const bool waits =
        task.phase == Phase::waiting && !backs_off && !site.state().plans.contains(task.id);
    if (!serves && !waits) rest = false;
  });
  return rest;
}

void count(const PoolState& state, Outcome& outcome) {
  state.tasks.for_each([&](const TaskState& task) {
    outcome.preempted += static_cast<std::uint64_t>(task.preemptions);
    if (task.service.valid()) return;
    outcome.finished += task.phase == Phase::finished ? 1 : 0;
    outcome.failed += task.phase == Phase::failed ? 1 : 0;
    outcome.refused += task.phase == Phase::refused ? 1 : 0;
    outcome.waiting += task.phase == Phase::waiting ? 1 : 0;
  });
}

// Faults are over. Load goes, then services: now everything that can end must end.
void drain(Site& site, BadLuck& luck, Outcome& outcome) {
  luck.stop();
  site.calm();
  site.ask(ResumeRequested{"operator"});
  const Time end = site.now() + hours(60);
  bool ended = site.run_until(site.now() + minutes(15)) &&
               site.run_until(end, [&] { return at_rest(site); });
  if (ended && at_rest(site)) {
    site.invariants().check_at_rest(site.state());
    for (const ServiceState& service : site.state().services) {
      if (!service.removed) site.ask(ServiceRemoveRequested{service.spec.name, "operator"});
    }
    ended = site.run_for(minutes(15)) && site.run_until(end, [&] { return at_rest(site); });
  }
  outcome.violations = site.invariants().violations();
  if (!outcome.violations.empty()) return;
  if (!ended || !at_rest(site)) {
    outcome.violations.push_back("faults are over and the pool does not come to rest");
    site.state().tasks.for_each([&](const TaskState& task) {
      if (has_ended(task.phase)) return;
      outcome.violations.push_back("  " + task.spec.name + " " + std::string(name_of(task.phase)) +
                                   " allocation " + std::to_string(task.allocation.value));
    });
    return;
  }
  site.invariants().check_at_rest(site.state());
  site.invariants().check_all(site.state(), site.daemon().journal());
  outcome.violations = site.invariants().violations();
}

}  // namespace

Outcome run_seed(std::uint64_t seed, const Planted& planted) {
  Random random(seed);
  const Site::Options options = options_of(seed, random);
  const Work work = any_work(random);
  Site site(options);
  if (planted.step) site.daemon().set_step(planted.step);
  if (planted.rewrite) site.daemon().rewrite_events(planted.rewrite);
  site.daemon().plant(planted.loop);
  site.open(work.pool, work.nodes);
  for (const auto& [when, task] : work.tasks) {
    site.timeline().at(when, [&site, spec = task] { site.submit(spec); });
  }
  for (const auto& [when, service, load] : work.services) {
    site.timeline().at(when, [&site, spec = service, load = load] { site.submit(spec, load); });
  }
  BadLuck luck(site, random.fork(), random.between(minutes(3), minutes(40)));
  luck.start();
  Outcome outcome;
  if (site.run_until(work.horizon)) {
    drain(site, luck, outcome);
  } else {
    outcome.violations = site.invariants().violations();
    if (outcome.violations.empty()) outcome.violations.push_back("too many events");
  }
  outcome.events = site.daemon().events();
  outcome.crashes = site.daemon().crashes();
  outcome.reserved = site.invariants().reserved();
  outcome.moved = site.invariants().moved();
  outcome.lent = site.invariants().lent();
  if (site.daemon().is_up()) count(site.state(), outcome);
  return outcome;
}

}  // namespace neap::sim
