// How many requests one replica is given at once (E1): few at first, more on evidence, fewer at
// once when it answers late. Pure: time comes in, limits come out.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/units.h"

namespace neap::gateway {

struct ConcurrencyBounds {
  std::int32_t least = 1;
  std::int32_t most = 1;
  Micros target{
      0};  // p95 from dispatch to first byte that is still well; 0: no evidence is possible
  bool operator==(const ConcurrencyBounds&) const = default;
};

// One replica, since the last look.
struct ConcurrencyEvidence {
  Time at;
  bool queue = false;                    // requests waited for a replica
  bool full = false;                     // this one had as many as it may
  std::int64_t answers = 0;              // first bytes that came
  std::optional<Micros> first_byte_p95;  // of these, from dispatch
};

class ConcurrencyControl {
 public:
  // Begins at `least`. Without a target the limit is `most` from the start.
  explicit ConcurrencyControl(ConcurrencyBounds bounds);

  // A replica that is taken over goes on where it was.
  void resume(std::int32_t limit);
  void rebound(ConcurrencyBounds bounds);
  void look(const ConcurrencyEvidence& evidence);

  [[nodiscard]] std::int32_t limit() const { return limit_; }

 private:
  ConcurrencyBounds bounds_;
  std::int32_t limit_;
  bool fell_ = false;  // until then the limit doubles; afterwards it rises by an eighth
  Time calm_from_;     // no rise before
};

}  // namespace neap::gateway
