// The workload of the lending experiment as what the engine is told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "simulate/loaning/workload.h"
#include "simulate/run/incoming.h"
#include "simulate/run/loaning/engine_run.h"
#include "simulate/run/tiers.h"

namespace neap::whatif {

class LoaningStream : public IncomingStream {
 public:
  LoaningStream(const loaning::Workload& workload, Tiers tiers, const EngineRun& run);
  [[nodiscard]] Result<bool> next(Incoming& into) override;
  [[nodiscard]] std::optional<std::int64_t> total() const override {
    return static_cast<std::int64_t>(workload_.jobs.size());
  }
  [[nodiscard]] std::int64_t passed_over() const override { return 0; }

 private:
  [[nodiscard]] Incoming service() const;
  [[nodiscard]] Incoming job(std::size_t index) const;

  const loaning::Workload& workload_;
  Tiers tiers_;
  EngineRun::Saves saves_;
  bool begun_;
  std::size_t minute_;
  std::size_t job_ = 0;
};

}  // namespace neap::whatif
