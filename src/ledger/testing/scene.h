// A small stage for ledger tests: a pool, a clock in seconds, and the records that tasks cause.
#pragma once

#include <string>
#include <vector>

#include "ledger/ledger.h"

namespace neap::ledger::testing {

class Scene {
 public:
  explicit Scene(int devices, Options options = {}) : ledger(std::move(options)) {
    NodeSpec node;
    node.name = "n0";
    for (int i = 0; i < devices; ++i) node.devices.push_back({.uuid = "", .model = "A"});
    event(NodeJoined{node});
  }

  template <class E>
  void event(const E& e) {
    ledger.apply(now, Event{e});
  }
  template <class D>
  void decide(const D& d) {
    ledger.apply(now, Decision{d});
  }
  void wait(std::int64_t s) { now = now + seconds(s); }

  TaskId submit(const std::string& team, ContractSpec contract) {
    TaskSpec spec;
    spec.name = "t" + std::to_string(next_task);
    spec.team = team;
    spec.contract = contract;
    event(TaskSubmitted{spec});
    return TaskId(next_task++);
  }
  TaskId training(const std::string& team = "a") { return submit(team, {.sdk = true}); }
  TaskId watched(const std::string& team = "a") { return submit(team, {.watch = true}); }
  TaskId replica() {
    if (!has_service_) {
      ServiceSpec spec;
      spec.team = "serving";
      event(ServiceSubmitted{spec});
      has_service_ = true;
    }
    decide(ReplicaAdded{ServiceId(0), TaskId(next_task), ""});
    return TaskId(next_task++);
  }

  AllocationId place(TaskId task, std::uint32_t device, std::int64_t milli = 1000) {
    decide(TaskPlaced{
        task, AllocationId(next_allocation), {{DeviceId(device), MilliGpu(milli), MiB(1)}}});
    return AllocationId(next_allocation++);
  }
  void start(AllocationId a) { event(TaskStarted{{a, 0, 0}}); }
  void steps(AllocationId a, std::int64_t last, std::int64_t count, std::int64_t busy_s) {
    event(StepsReported{{a, 0, 0}, last, count, seconds(busy_s)});
  }
  // Durable now, of the state right now, after a stall of that many seconds.
  void checkpoint(AllocationId a, std::int64_t step, std::int64_t stall_s = 0) {
    CheckpointDurable e;
    e.stamp.source = a;
    e.step = step;
    e.captured = now - seconds(stall_s);
    e.stall = seconds(stall_s);
    event(e);
  }
  void healthy(AllocationId a) { event(ReplicaHealthy{{a, 0, 0}}); }
  void served(AllocationId a, std::int64_t responses, std::int64_t within, std::int64_t busy_s) {
    event(RequestsServed{a, responses, within, seconds(busy_s)});
  }
  void exit(AllocationId a, std::int32_t code, std::int32_t signal = 0) {
    event(TaskExited{{a, 0, 0}, code, signal, ""});
  }
  void ask_yield(TaskId task, AllocationId a, StopReason reason) {
    decide(YieldAsked{task, a, ReleaseMode::boundary, now, reason});
  }

  // Whole-device seconds of a category; a fraction shows as a wrong number.
  [[nodiscard]] std::int64_t seconds_of(Category category) const {
    return static_cast<std::int64_t>(ledger.pool(now).of(category).value() / 1'000'000'000);
  }
  // Every category that is not zero, in device seconds: "free 5 restore 3".
  [[nodiscard]] std::string show() const { return show(ledger.pool(now)); }
  [[nodiscard]] static std::string show(const Totals& totals) {
    std::string text;
    for (std::size_t i = 0; i < category_count; ++i) {
      const Amount amount = totals.by_category[i];
      if (amount == Amount()) continue;
      if (!text.empty()) text += ' ';
      text += std::string(name_of(static_cast<Category>(i))) + ' ';
      const auto whole = static_cast<std::int64_t>(amount.value() / 1'000'000);
      text += std::to_string(whole / 1000);
      if (whole % 1000 != 0) text += "." + std::to_string(whole % 1000 + 1000).substr(1);
    }
    return text;
  }

  Ledger ledger;
  Time now;
  std::uint32_t next_task = 0;
  std::uint64_t next_allocation = 0;

 private:
  bool has_service_ = false;
};

}  // namespace neap::ledger::testing
