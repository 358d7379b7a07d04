// What each team has (D6): sums over its tasks and those of its children. Derived from the state,
// kept by apply; there is none where the pool has no teams.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/state.h"

namespace neap {

// milli-GPU, and of hosts.
struct TeamUse {
  std::int64_t held = 0;       // by tasks that have devices
  std::int64_t expected = 0;   // the same without those that are leaving, with what is claimed
  std::int64_t committed = 0;  // the more of what each has and what is claimed for it
  std::int64_t cpu_milli = 0, host_memory = 0;  // of those that have devices or a claim
  bool operator==(const TeamUse&) const = default;
  TeamUse& operator+=(const TeamUse& other);
  [[nodiscard]] TeamUse negative() const;
};

struct Team {
  std::string name;
  std::int32_t parent = -1;           // -1: the pool; else an index, less than its own
  std::int64_t guarantee = 0;         // milli-GPU
  std::optional<std::int64_t> limit;  // milli-GPU
  std::int32_t weight = 1;
  TeamUse all, own;  // with its children's tasks, and without
};

class TeamIndex {
 public:
  explicit TeamIndex(const std::vector<TeamSpec>& teams);

  // A team that no file names is one below the pool, without guarantee or limit.
  std::int32_t number_of(const std::string& name);
  [[nodiscard]] std::optional<std::int32_t> find(std::string_view name) const;
  // Parents before children.
  [[nodiscard]] const std::vector<Team>& teams() const { return teams_; }
  [[nodiscard]] const Team& at(std::int32_t number) const {
    return teams_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] bool has_limits() const { return has_limits_; }
  // The team itself, then those above it.
  template <class Visit>
  void for_chain(std::int32_t number, Visit&& visit) const {
    for (; number >= 0; number = at(number).parent) visit(number);
  }

  // What this task has is now `use`. True when a team with a limit, its own or one above it, has
  // less than before.
  bool note(TaskId task, const std::string& team, const TeamUse& use);

  // Who has what, whatever the order in which teams were met.
  [[nodiscard]] bool equals(const TeamIndex& other) const;

 private:
  struct Entry {
    std::int32_t team = -1;
    TeamUse use;
  };
  std::vector<Team> teams_;
  std::map<std::string, std::int32_t, std::less<>> numbers_;
  std::unordered_map<TaskId, Entry> entries_;  // of tasks that have something
  bool has_limits_ = false;
};

[[nodiscard]] TeamUse team_use_of(const PoolState& state, const TaskState& task);

// ---- for apply -------------------------------------------------------------------------------

// After any change of a task's phase, slots or plan.
void refresh_team(PoolState& state, const TaskState& task);
// From nothing, after a change of the specification and for rebuild_index().
void rebuild_teams(PoolState& state);
[[nodiscard]] bool teams_are_equal(const PoolState& a, const PoolState& b);

}  // namespace neap
