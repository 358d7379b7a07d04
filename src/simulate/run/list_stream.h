#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "simulate/run/source.h"

namespace neap::whatif {

// What was sorted, or drawn, as a whole.
class ListStream : public ArrivalStream {
 public:
  explicit ListStream(std::vector<trace::Arrival> arrivals, std::int64_t passed_over = 0)
      : arrivals_(std::move(arrivals)), passed_over_(passed_over) {
    std::stable_sort(arrivals_.begin(), arrivals_.end(),
                     [](const trace::Arrival& a, const trace::Arrival& b) { return a.at < b.at; });
    jobs_ = std::count_if(arrivals_.begin(), arrivals_.end(), [](const trace::Arrival& arrival) {
      return std::holds_alternative<trace::JobArrival>(arrival.what);
    });
  }
  [[nodiscard]] Result<bool> next(trace::Arrival& into) override {
    if (at_ == arrivals_.size()) return false;
    into = std::move(arrivals_[at_++]);
    return true;
  }
  [[nodiscard]] std::optional<std::int64_t> total() const override { return jobs_; }
  [[nodiscard]] std::int64_t passed_over() const override { return passed_over_; }

 private:
  std::vector<trace::Arrival> arrivals_;
  std::size_t at_ = 0;
  std::int64_t jobs_ = 0;
  std::int64_t passed_over_;
};

}  // namespace neap::whatif
