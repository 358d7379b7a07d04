// Who is looked at next (POLICIES 4): of the first task that waits in each shape, by tier, then
// teams below their guarantee, then by their share of the pool, then by virtual deadline.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/model/pool_index.h"
#include "core/model/team_index.h"

namespace neap {

// The first of those that wait in one shape. The members stand in the order that counts.
struct Head {
  TierId tier;
  QueueKey key;
  ShapeId shape;
  auto operator<=>(const Head&) const = default;
};

class HeadOrder {
 public:
  explicit HeadOrder(const PoolState& state);

  void add(const Head& head);
  [[nodiscard]] bool empty() const { return ranks_.empty(); }
  // The next one, as the teams stand now.
  [[nodiscard]] Head take();
  // Shapes of those that were not taken.
  [[nodiscard]] std::vector<ShapeId> left() const;

 private:
  // What comes before any fairness among teams.
  using Rank = TierId;
  static Rank rank_of(const Head& head) { return head.tier; }
  using ByTeam = std::map<std::int32_t, std::set<Head>>;  // by the number of the team

  // A part of the pool, comparable with another one.
  struct Share {
    std::int64_t part = 0;
    std::int64_t whole = 1;
    bool operator<(const Share& other) const;
  };
  struct Contender {
    Head head;
    std::int32_t team = -1;  // whose it is
    bool below = false;      // its team at this level has less than its guarantee
    Share share;
    bool operator<(const Contender& other) const;
  };
  [[nodiscard]] Contender first_of(const ByTeam& teams) const;
  [[nodiscard]] Share share_of(const TeamUse& use, std::int32_t weight) const;

  const PoolState& state_;
  const TeamIndex* teams_;
  std::map<Rank, ByTeam> ranks_;
  std::int64_t milli_ = 0, cpu_milli_ = 0, host_memory_ = 0;  // of the pool
};

}  // namespace neap
