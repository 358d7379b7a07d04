// A training task: loads, steps, stops at boundaries to save, yields there when asked.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/simulated/process.h"

namespace neap::simulated {

class Training : public Process {
 public:
  using Process::Process;
  void ask_yield(ReleaseMode mode) override;
  void withdraw_yield() override;
  void ask_checkpoint() override;

 private:
  enum class Doing : std::uint8_t { loading, stepping, stalled, releasing };

  void begin() override;
  void on_term() override;
  void run_from(std::int64_t step);
  void plan();
  void arrive();
  bool misbehave();
  void report_steps();
  void save();
  void saved(std::int64_t step, Time captured);
  void release();
  void finish();
  [[nodiscard]] Micros step_time() const;
  [[nodiscard]] std::int64_t step_at(Time moment) const;
  [[nodiscard]] Time end_of(std::int64_t step) const;
  [[nodiscard]] Time next_boundary() const;
  [[nodiscard]] bool speaks() const { return order_.contract.sdk; }

  Doing doing_ = Doing::loading;
  std::int64_t step_ = 0;          // steps done; counted up to now only on arrival
  std::int64_t segment_step_ = 0;  // steps done when the current uninterrupted run began
  Time segment_start_;
  std::int64_t reported_ = 0;
  Time last_report_, last_boundary_;
  std::optional<ReleaseMode> yield_;
  bool save_now_ = false;  // at the end of the running step
  bool saving_ = false;
};

}  // namespace neap::simulated
