// In arbitrary pools under load never more than so many tasks load at once, their starts keep their
// distance, and nobody waits for a start for ever (D11). Counted from the decisions alone, without
// what the engine keeps of it.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "core/model/pool_index.h"
#include "core/testing/any_below.h"
#include "core/testing/script.h"

namespace neap::starts_property {
namespace {

using testing::any_below;
using testing::Script;

enum class Fault : std::uint8_t {
  none,
  all_at_once,  // starts are not held back
  forgets,      // who was preempted while it loaded no longer counts
};

class StaggeredPool {
 public:
  explicit StaggeredPool(Fault fault) {
    limits_.at_once = any_below(3);
    limits_.apart = seconds(any_below(3) * 20);
    if (limits_.at_once == 0 && limits_.apart == Micros(0)) limits_.at_once = 1;
    limits_.loading = minutes(1 + any_below(4));
    script_.spec.starts = limits_;
    if (fault == Fault::all_at_once) script_.spec.starts = {};
    if (fault == Fault::forgets) script_.spec.starts.loading = limits_.loading / 4;
    script_.spec.preempt.protect_min = Micros(0);
    script_.spec.inference_guard_min = any_below(2);
    script_.configure();
    for (int n = 0; n < 2; ++n) script_.node("n" + std::to_string(n), "d0", 2 + any_below(3));
    (void)script_.submit(Script::service("chat", 0, 4));
  }

  void anything() {
    switch (any_below(6)) {
      case 0:
      case 1:
        submit();
        break;
      case 2:
        happen(ServiceScaled{"chat", any_below(4), 4, "x"});
        break;
      case 3:
        wait(seconds(1 + any_below(90)));
        break;
      default:
        report();
        break;
    }
  }

  void drain() {
    for (int round = 0; round < 400 && fault_text_.empty(); ++round) {
      if (held_back().empty()) return;
      for (int i = 0; i < 8; ++i) report();
      wait(minutes(2));
    }
    const std::string stuck = held_back();
    if (!stuck.empty()) fault_text_ = stuck + " waits for a start for ever";
  }

  [[nodiscard]] const std::string& fault() const { return fault_text_; }
  [[nodiscard]] int held() const { return held_; }

 private:
  // One that would fit and may not start yet.
  [[nodiscard]] std::string held_back() const {
    std::string name;
    script_.state.tasks.for_each([&](const TaskState& t) {
      if (t.phase == Phase::waiting && wait_code(t) == WaitCode::starts) name = t.spec.name;
    });
    return name;
  }
  [[nodiscard]] WaitCode wait_code(const TaskState& t) const {
    return t.shape.valid() ? script_.state.wait_codes[t.shape.value] : WaitCode::none;
  }

  void submit() {
    TaskSpec spec = Script::training("t" + std::to_string(submitted_++), 1 + any_below(3));
    if (any_below(3) == 0) spec.tier = "train_deadline_near";
    spec.contract.restore = seconds(1);
    if (any_below(3) == 0) {
      spec.request.count = 1;
      spec.request.share = MilliGpu(300);
      spec.request.memory = MiB(1024);
    }
    happen(TaskSubmitted{spec});
  }

  // One live task says one thing.
  void report() {
    std::vector<TaskId> live;
    script_.state.tasks.for_each([&](const TaskState& t) {
      if (holds_devices(t.phase)) live.push_back(t.id);
    });
    if (live.empty()) return;
    const TaskState& t = script_.state.tasks.at(
        live[static_cast<std::size_t>(any_below(static_cast<int>(live.size())))]);
    const ReportStamp stamp{t.allocation, 1, t.report_epoch == 0 ? 1 : t.report_sequence + 1};
    if (t.phase == Phase::starting) {
      happen(TaskStarted{stamp});
    } else if (t.phase == Phase::stopping || t.phase == Phase::yielding) {
      loads_.erase(t.allocation);
      happen(TaskExited{stamp, t.service.valid() ? 0 : 75, 0, {}});
    } else if (t.service.valid()) {
      happen(ReplicaHealthy{stamp});
    } else if (any_below(3) == 0) {
      loads_.erase(t.allocation);
      happen(TaskExited{stamp, 0, 0, {}});
    } else {
      loads_.erase(t.allocation);
      happen(StepsReported{stamp, t.last_step + 1, 1, seconds(1)});
    }
  }

  void wait(Micros time) {
    const Time end = script_.now + time;
    while (next_timer(script_.state) <= end) {
      script_.now = std::max(script_.now, next_timer(script_.state));
      happen(TimerFired{});
    }
    script_.now = end;
  }

  void happen(const Event& event) {
    if (!script_.event(event)) return;
    std::erase_if(loads_,
                  [&](const auto& one) { return one.second + limits_.loading <= script_.now; });
    for (const Decision& decision : script_.last.decisions) {
      const auto* placed = std::get_if<TaskPlaced>(&decision);
      if (placed == nullptr) continue;
      if (script_.state.tasks.at(placed->task).service.valid()) continue;
      note_start(placed->allocation);
    }
    script_.state.tasks.for_each([&](const TaskState& t) {
      if (t.phase == Phase::waiting && wait_code(t) == WaitCode::starts) ++held_;
    });
    if (!index_is_current(script_.state)) fault_text_ = "the index is not what a rebuild makes";
  }

  void note_start(AllocationId allocation) {
    const bool near = last_ != Time::never() && script_.now - last_ < limits_.apart;
    if (near) fault_text_ = "two starts are too near";
    last_ = script_.now;
    loads_[allocation] = script_.now;
    const bool many =
        limits_.at_once > 0 && loads_.size() > static_cast<std::size_t>(limits_.at_once);
    if (many) fault_text_ = std::to_string(loads_.size()) + " load at once";
  }

  Script script_;
  StartsSpec limits_;
  std::map<AllocationId, Time> loads_;
  Time last_ = Time::never();
  int submitted_ = 0, held_ = 0;
  std::string fault_text_;
};

std::string fault_in(Fault fault, int events, int* held = nullptr) {
  StaggeredPool pool(fault);
  for (int i = 0; i < events && pool.fault().empty(); ++i) pool.anything();
  if (pool.fault().empty()) pool.drain();
  if (held != nullptr) *held += pool.held();
  return pool.fault();
}

TEST(StartsProperty, D11_AtMostSoManyLoadAndStartsKeepTheirDistance) {
  int held = 0;
  EXPECT_TRUE(rc::check([&] { RC_ASSERT(fault_in(Fault::none, 60, &held) == ""); }));
  EXPECT_GT(held, 100) << "starts were held back often enough to see";
}

TEST(StartsProperty, D11_APlantedFaultIsNoticed) {
  for (const Fault fault : {Fault::all_at_once, Fault::forgets}) {
    int found = 0;
    (void)rc::check([&] { found += fault_in(fault, 60).empty() ? 0 : 1; });
    EXPECT_GT(found, 5) << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace neap::starts_property
