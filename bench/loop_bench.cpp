// From an event to the action that follows it, through the real loop and a real journal, fsync
// included: a submission is posted and its StartTask comes out, at a steady rate of events.
//
//   loop_bench [--rate EVENTS_PER_S] [--seconds N] [--json]
//
// No target of its own: it stands beside the decision time of engine_bench, which excludes the
// fsync.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/measure.h"
#include "daemon/loop.h"
#include "daemon/recovery.h"

namespace {

using Clock = std::chrono::steady_clock;
using neap::Action;
using neap::AllocationId;
using neap::Event;

neap::Time system_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return neap::Time(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

struct Measured {
  std::mutex mutex;
  std::map<std::string, Clock::time_point> posted;
  neap::bench::Samples ms;
  std::vector<AllocationId> started;
};

neap::TaskSubmitted submission(int n) {
  neap::TaskSubmitted event;
  event.spec.name = "t" + std::to_string(n);
  event.spec.tier = "train_normal";
  event.spec.contract.sdk = event.spec.contract.on_demand = true;
  event.spec.contract.interval = neap::minutes(10);
  return event;
}

}  // namespace

int main(int argc, char** argv) {
  int rate = 500;
  int seconds = 5;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) json = true;
    if (std::strcmp(argv[i], "--rate") == 0 && i + 1 < argc) rate = std::atoi(argv[++i]);
    if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) seconds = std::atoi(argv[++i]);
  }
  const auto folder =
      std::filesystem::temp_directory_path() / ("neap-loop-bench-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  auto journal = neap::journal::Journal::open({.path = (folder / "journal.db").string()}, {});
  if (!journal) {
    std::fprintf(stderr, "loop_bench: %s\n", neap::to_string(journal.error()).c_str());
    return 1;
  }
  Measured measured;
  neap::daemon::Outlet outlet;
  outlet.carry_out = [&](const Action& action) {
    const auto* start = std::get_if<neap::StartTask>(&action);
    if (start == nullptr) return;
    const std::scoped_lock lock(measured.mutex);
    const auto posted = measured.posted.find(start->name);
    if (posted == measured.posted.end()) return;
    measured.ms.add(
        std::chrono::duration<double, std::milli>(Clock::now() - posted->second).count());
    measured.posted.erase(posted);
    measured.started.push_back(start->allocation);
  };
  outlet.acknowledge = [](const neap::ReportStamp&) {};
  outlet.publish = [](const neap::PoolState&, const neap::daemon::Record&) {};
  neap::daemon::Loop loop({}, {}, std::move(*journal), system_now, std::move(outlet), {});
  neap::PoolSpec spec;
  spec.tiers = {{"infer_core", 100, neap::Purpose::inference},
                {"train_normal", 40, neap::Purpose::batch}};
  neap::NodeJoined node{{"n", "d", {}}};
  for (int d = 0; d < 8; ++d) {
    node.spec.devices.push_back({"u" + std::to_string(d), "A100-80G", neap::MiB(81920), false});
  }
  for (const Event& event : {Event(node), Event(neap::PoolConfigured{spec})}) {
    if (auto applied = loop.apply_now(event); !applied) return 1;
  }
  std::thread runner([&] { (void)loop.run(); });

  // One submission in four events; what started ends again, so that devices are free.
  const auto begin = Clock::now();
  const int total = rate * seconds;
  int submitted = 0;
  for (int i = 0; i < total; ++i) {
    std::this_thread::sleep_until(begin + std::chrono::microseconds(1'000'000LL * i / rate));
    std::vector<AllocationId> ended;
    {
      const std::scoped_lock lock(measured.mutex);
      ended.swap(measured.started);
    }
    for (const AllocationId allocation : ended) {
      loop.post(neap::TaskStarted{{allocation, 1, 1}});
      loop.post(neap::StepsReported{{allocation, 1, 2}, 10, 10, neap::seconds(1)});
      neap::TaskExited exited;
      exited.stamp = {allocation, 1, 3};
      loop.post(exited);
    }
    if (i % 4 != 0) continue;
    const neap::TaskSubmitted event = submission(submitted++);
    {
      const std::scoped_lock lock(measured.mutex);
      measured.posted[event.spec.name] = Clock::now();
    }
    loop.post(event);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  loop.stop();
  runner.join();
  std::filesystem::remove_all(folder);
  const double p50 = measured.ms.at(0.5);
  const double p99 = measured.ms.at(0.99);
  if (json) {
    std::printf("{\"rate\":%d,\"actions\":%zu,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f}\n",
                rate, measured.ms.values.size(), p50, p99, measured.ms.at(1.0));
  } else {
    std::printf(
        "%d events/s: %zu actions, event to action p50 %.2f ms, p99 %.2f ms, max %.2f ms "
        "(fsync included)\n",
        rate, measured.ms.values.size(), p50, p99, measured.ms.at(1.0));
  }
  return measured.ms.empty() ? 1 : 0;
}
