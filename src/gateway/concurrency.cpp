#include "gateway/concurrency.h"

#include <algorithm>

namespace neap::gateway {
namespace {

// A p95 of fewer answers is chance.
constexpr std::int64_t answers_to_rise = 5;
constexpr std::int64_t answers_to_fall = 3;
constexpr Micros calm = seconds(5);  // after a fall: what was sent before it still answers late

}  // namespace

ConcurrencyControl::ConcurrencyControl(ConcurrencyBounds bounds)
    : bounds_(bounds), limit_(bounds.target > Micros(0) ? bounds.least : bounds.most) {}

void ConcurrencyControl::resume(std::int32_t limit) {
  if (bounds_.target > Micros(0)) limit_ = std::clamp(limit, bounds_.least, bounds_.most);
}

void ConcurrencyControl::rebound(ConcurrencyBounds bounds) {
  if (bounds == bounds_) return;
  bounds_ = bounds;
  limit_ = bounds.target > Micros(0) ? std::clamp(limit_, bounds.least, bounds.most) : bounds.most;
}

void ConcurrencyControl::look(const ConcurrencyEvidence& evidence) {
  if (bounds_.target <= Micros(0) || !evidence.first_byte_p95) return;
  const Micros p95 = *evidence.first_byte_p95;
  if (p95 > bounds_.target && evidence.answers >= answers_to_fall) {
    if (evidence.at < calm_from_ && p95.value < 2 * bounds_.target.value) return;
    limit_ = std::max(bounds_.least, limit_ * 3 / 4);
    fell_ = true;
    calm_from_ = evidence.at + calm;
    return;
  }
  // Only who had no place left has shown that it could do more.
  const bool well = p95.value * 10 <= bounds_.target.value * 8;
  if (!well || !evidence.queue || !evidence.full || evidence.answers < answers_to_rise) return;
  if (evidence.at < calm_from_) return;
  limit_ = std::min(bounds_.most, limit_ + (fell_ ? std::max(1, limit_ / 8) : limit_));
}

}  // namespace neap::gateway
