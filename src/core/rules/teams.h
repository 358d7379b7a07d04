// Guarantees and limits of teams, and who may take from whom for them (SPEC D6, POLICIES 4).
// Nothing here restricts anybody where the pool has no teams.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/state.h"
#include "core/model/team_index.h"
#include "core/model/victim_bounds.h"

namespace neap {

inline constexpr std::size_t most_teams = 1000;

struct TeamFault {
  std::size_t team = 0;  // of the list
  const char* field = "";
  std::string message;
};
// Unknown parents and circles, guarantees above limits, children's above their parent's, and all of
// them above what the guard leaves of total_gpus: all that there are, those of single teams first.
[[nodiscard]] std::vector<TeamFault> faults_of_teams(const PoolSpec& spec);

[[nodiscard]] constexpr std::int64_t milli_of(const Request& request) {
  return std::int64_t{request.count} * request.share.value;
}

// The first team, the shape's own or one above it, that would have more than its limit with
// `more` milli-GPU; nothing: all stay within.
[[nodiscard]] std::optional<std::int32_t> limit_in_the_way(const PoolState& state,
                                                           const std::string& team,
                                                           std::int64_t more);

// milli-GPU that the team has or counts on: of what is kept for its tasks until others leave
// (docs/decisions/0011) only what they have left, for they may stay.
[[nodiscard]] std::int64_t expected_of(const PoolState& state, const Team& team);

// What a demand may take from whom, as the teams stand now. A task that it takes leaves no team
// with less than its guarantee. From its own tier it takes while its team (seen from below the
// first team that both have above them) stays within its guarantee. Inference is not bound.
class TeamRights {
 public:
  TeamRights(const PoolState& state, const Shape& demand);

  // Equal: somebody's tasks of its own tier may be asked.
  [[nodiscard]] Taking taking() const { return taking_; }
  // Whether this task may be among those asked at all: by tier, and for the guarantee alone. It
  // speaks of the task itself: of several see allows().
  [[nodiscard]] bool may_ask(const TaskState& task) const;
  // Whether room that is kept for a task that waits may be given to the demand instead: as if that
  // task ran there.
  [[nodiscard]] bool may_have_room_of(const Plan& reservation) const;
  [[nodiscard]] bool allows(std::span<const Victim> victims) const;
  // Of these, taken in turn, those that may be asked together.
  [[nodiscard]] std::vector<bool> together(std::span<const Victim> in_turn) const;

  // milli-GPU taken from each team.
  using Taken = std::map<std::int32_t, std::int64_t>;
  // So much of a task's. False, and `taken` is as before, when a guarantee is in the way.
  bool take(const TaskState& task, std::int64_t milli, Taken& taken) const;

 private:
  [[nodiscard]] bool is_bound() const { return teams_ != nullptr && !inference_; }
  [[nodiscard]] bool is_above_demand(std::int32_t team) const;
  [[nodiscard]] bool is_entitled_beside(std::int32_t team) const;
  [[nodiscard]] std::int64_t spare_of(std::int32_t team) const;
  bool take(const Victim& victim, Taken& taken) const;

  const PoolState& state_;
  const TeamIndex* teams_ = nullptr;
  TierId tier_;
  bool inference_ = false;
  std::int32_t team_ = -1;
  std::int64_t demand_ = 0;
  std::vector<std::int32_t> chain_;  // the demand's team and those above it
  Taking taking_ = Taking::lighter;
};

}  // namespace neap
