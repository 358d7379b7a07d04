// Arbitrary small pools under load, for properties of preemption. `Any` draws a number below its
// argument, so that the caller brings the source of chance.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/testing/pool_builder.h"

namespace neap::testing {

template <class Any>
class PoolDraw {
 public:
  explicit PoolDraw(Any& any) : any_(any) {}

  // At most `most` tasks that run.
  PoolState pool(int most) {
    std::string text = nodes();
    for (int i = 0; i < most; ++i) text += task(i);
    PoolState state = pool_of(text);
    state.spec.preempt.break_glass = any_(4) == 0;
    state.spec.preempt.protect_min = minutes(any_(2) * 30);
    if (any_(8) == 0) state.spec.preempt.fixed_cost = 0;
    return state;
  }

  Shape demand(const PoolState& state) {
    std::string text = any_(4) > 0 ? "infer" : "near";
    text += " count=" + std::to_string(1 + any_(any_(3) == 0 ? 2 : 8));
    if (any_(2) == 0) {
      text += " share=" + std::to_string(100 * (1 + any_(9)));
      text += " memory=" + std::to_string(100 * any_(8));
      if (any_(4) == 0) text += " trust=other";
    }
    if (any_(3) == 0) text += " releasable";
    return demand_of(state, text);
  }

  Micros wait() {
    constexpr int choices[] = {10, 30, 200, 660, 660, 5'000};
    return seconds(choices[any_(6)]);
  }

 private:
  struct Device {
    int share = 1000, memory = 1000;
  };

  std::string nodes() {
    std::string text;
    const int count = 1 + any_(4);
    const int size = 1 + any_(count > 2 ? 3 : 4);
    const bool two_models = any_(4) == 0;
    for (int n = 0; n < count; ++n) {
      std::string roles;
      const int devices = any_(4) == 0 ? 1 + any_(size) : size;
      for (int d = 0; d < devices; ++d) roles += any_(7) > 0 ? 'c' : any_(2) == 0 ? 'b' : 'g';
      free_.emplace_back(devices);
      text += "node n" + std::to_string(n) + " r0 " + std::to_string(devices) +
              (two_models && any_(2) == 0 ? " H100 1000" : " A100 1000") + " roles=" + roles + "\n";
    }
    return text;
  }

  // Takes a share of some devices of one node, or of several; nothing when there is no room.
  std::string task(int number) {
    const bool whole = any_(2) == 0;
    const int share = whole ? 1000 : 100 * (1 + any_(6));
    const int memory = whole ? 1000 : 50 * any_(10);
    const bool over_nodes = any_(4) == 0;
    const int count = any_(2) == 0 ? 1 : 1 + any_(5);
    std::string on;
    int taken = 0;
    const int start = any_(static_cast<int>(free_.size()));
    for (std::size_t i = 0; i < free_.size() && taken < count; ++i) {
      const std::size_t n = (static_cast<std::size_t>(start) + i) % free_.size();
      for (std::size_t d = 0; d < free_[n].size() && taken < count; ++d) {
        Device& device = free_[n][d];
        if (device.share < share || device.memory < memory || any_(6) == 0) continue;
        device.share -= share;
        device.memory -= memory;
        on += (on.empty() ? "" : ",") + ("n" + std::to_string(n)) + ":" + std::to_string(d);
        ++taken;
      }
      if (taken > 0 && !over_nodes) break;
    }
    if (taken == 0) return {};
    return "task t" + std::to_string(number) + " " + tier() + " on=" + on +
           " share=" + std::to_string(share) + " memory=" + std::to_string(memory) + nature() +
           "\n";
  }

  std::string tier() {
    constexpr const char* tiers[] = {"normal", "normal", "normal", "normal",
                                     "normal", "near",   "talk",   "infer"};
    return tiers[any_(8)];
  }

  std::string nature() {
    constexpr const char* contracts[] = {"sdk", "sdk", "sdk+ondemand", "signals", "watch", "none"};
    std::string text = std::string(" contract=") + contracts[any_(6)];
    const int age = any_(4) > 0 ? 7'200 : 600 * any_(12);
    text += " started=-" + std::to_string(age);
    text += " captured=-" + std::to_string(60 * any_(11));
    text += " restore=" + std::to_string(60 * (1 + any_(6)));
    text += " preemptions=" + std::to_string(any_(7));
    if (any_(3) == 0) text += " stall=" + std::to_string(any_(40));
    // Nearly done, or anything.
    if (any_(4) == 0)
      text += " work=" + std::to_string(any_(2) == 0 ? age + 30 * any_(20) : 600 * any_(14));
    if (any_(12) == 0) text += " today=" + std::to_string(any_(6));
    if (any_(6) == 0) text += " deadline=" + std::to_string(300 * any_(20));
    if (any_(12) == 0) text += " window=" + std::to_string(300 * any_(4)) + "-3600";
    if (any_(6) == 0) text += " trust=other";
    if (any_(12) == 0) text += " interruptible=0";
    if (any_(12) == 0) text += " phase=yielding";
    return text;
  }

  Any& any_;
  std::vector<std::vector<Device>> free_;
};

}  // namespace neap::testing
