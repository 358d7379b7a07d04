#include "core/rules/teams.h"

#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/preempt.h"

namespace neap {

// ---- the specification -----------------------------------------------------------------------

namespace {

std::string whole_devices_text(std::int64_t count) {
  return std::to_string(count) + (count == 1 ? " device" : " devices");
}

class TeamCheck {
 public:
  explicit TeamCheck(const PoolSpec& spec) : spec_(spec) {
    for (std::size_t i = 0; i < spec.teams.size(); ++i) known_.emplace(spec.teams[i].name, i);
  }

  std::vector<TeamFault> run() {
    for (std::size_t i = 0; i < spec_.teams.size(); ++i) alone(i);
    // Sums and circles are of teams that are known.
    if (!faults_.empty()) return std::move(faults_);
    for (std::size_t i = 0; i < spec_.teams.size(); ++i) circle(i);
    if (faults_.empty()) sums();
    return std::move(faults_);
  }

 private:
  void add(std::size_t team, const char* field, std::string message) {
    faults_.push_back({team, field, std::move(message)});
  }

  void alone(std::size_t i) {
    const TeamSpec& team = spec_.teams[i];
    if (team.name.empty()) {
      add(i, "name", "a team has a name");
    } else if (known_.at(team.name) != i) {
      add(i, "name", "\"" + team.name + "\" is the name of another team");
    }
    if (!team.parent.empty() && !known_.contains(team.parent)) {
      add(i, "parent", "no team \"" + team.parent + "\" is listed; expected one of this list");
    }
    if (team.guarantee < 0) add(i, "guarantee", "expected 0 devices or more");
    if (team.weight < 1) add(i, "weight", "expected 1 or more");
    if (team.limit && *team.limit < team.guarantee) {
      add(i, "guarantee",
          whole_devices_text(team.guarantee) + ", more than its limit of " +
              whole_devices_text(*team.limit));
    }
  }

  void circle(std::size_t i) {
    std::size_t at = i;
    for (std::size_t steps = 0; !spec_.teams[at].parent.empty(); ++steps) {
      at = known_.at(spec_.teams[at].parent);
      if (at == i) {
        return add(i, "parent",
                   "\"" + spec_.teams[i].name + "\" is above itself: " + spec_.teams[i].name +
                       " < " + spec_.teams[i].parent + " < ...");
      }
      if (steps == spec_.teams.size()) return;  // a circle above it, told of those in it
    }
  }

  void sums() {
    std::map<std::string, std::int64_t> children;
    const std::int64_t devices = spec_.total_gpus - spec_.inference_guard_min;
    for (std::size_t i = 0; i < spec_.teams.size(); ++i) {
      const TeamSpec& team = spec_.teams[i];
      const std::int64_t sum = children[team.parent] += team.guarantee;
      if (team.parent.empty()) {
        if (spec_.total_gpus == 0 || sum <= devices) continue;
        add(i, "guarantee",
            "makes " + whole_devices_text(sum) +
                " guaranteed in all; total_gpus less inference_guard_min leaves " +
                std::to_string(devices));
        continue;
      }
      const TeamSpec& parent = spec_.teams[known_.at(team.parent)];
      if (sum <= parent.guarantee) continue;
      add(i, "guarantee",
          "makes " + whole_devices_text(sum) + " guaranteed below \"" + parent.name +
              "\", which is guaranteed " + std::to_string(parent.guarantee));
    }
  }

  const PoolSpec& spec_;
  std::map<std::string, std::size_t> known_;
  std::vector<TeamFault> faults_;
};

}  // namespace

std::vector<TeamFault> faults_of_teams(const PoolSpec& spec) {
  if (spec.teams.size() > most_teams) {
    return {{most_teams, "name", "a pool has " + std::to_string(most_teams) + " teams at most"}};
  }
  return TeamCheck(spec).run();
}

// ---- limits ----------------------------------------------------------------------------------

std::optional<std::int32_t> limit_in_the_way(const PoolState& state, const std::string& team,
                                             std::int64_t more) {
  const TeamIndex* teams = state.index->teams.get();
  if (teams == nullptr || !teams->has_limits()) return std::nullopt;
  std::optional<std::int32_t> found;
  teams->for_chain(teams->find(team).value_or(-1), [&](std::int32_t n) {
    const Team& one = teams->at(n);
    if (!found && one.limit && one.all.committed + more > *one.limit) found = n;
  });
  return found;
}

// ---- guarantees ------------------------------------------------------------------------------

namespace {

// Of what a plan claims, that which others have who are not leaving.
std::int64_t held_by_tenants(const PoolState& state, const Plan& plan) {
  std::int64_t held = 0;
  for (const Slot& slot : plan.slots) {
    std::int64_t here = 0;
    for (const Tenant& tenant : state.device(slot.device).tenants) {
      const TaskState& task = state.tasks.at(tenant.task);
      const bool stays = task.phase == Phase::starting || task.phase == Phase::running;
      if (stays && task.id != plan.task) here += tenant.share.value;
    }
    held += std::min(here, std::int64_t{slot.share.value});
  }
  return held;
}

}  // namespace

std::int64_t expected_of(const PoolState& state, const Team& team) {
  std::int64_t expected = team.all.expected;
  // For order and rights alike it matters only to a team that has a guarantee.
  if (team.guarantee == 0) return expected;
  const TeamIndex& teams = *state.index->teams;
  for (const TaskId id : state.index->reserved) {
    bool its_own = false;
    teams.for_chain(teams.find(state.tasks.at(id).spec.team).value_or(-1),
                    [&](std::int32_t n) { its_own = its_own || &teams.at(n) == &team; });
    if (its_own) expected -= held_by_tenants(state, state.plans.at(id));
  }
  return expected;
}

TeamRights::TeamRights(const PoolState& state, const Shape& demand)
    : state_(state),
      teams_(state.index->teams.get()),
      tier_(demand.tier),
      inference_(demand.purpose == Purpose::inference),
      demand_(milli_of(demand.request)) {
  if (!is_bound()) return;
  team_ = teams_->find(demand.team).value_or(-1);
  teams_->for_chain(team_, [&](std::int32_t n) { chain_.push_back(n); });
  const bool entitled = std::any_of(chain_.begin(), chain_.end(),
                                    [&](std::int32_t n) { return is_entitled_beside(n); });
  if (entitled) taking_ = Taking::equal;
}

bool TeamRights::is_above_demand(std::int32_t team) const {
  return std::find(chain_.begin(), chain_.end(), team) != chain_.end();
}

bool TeamRights::is_entitled_beside(std::int32_t team) const {
  const Team& one = teams_->at(team);
  return expected_of(state_, one) + demand_ <= one.guarantee;
}

std::int64_t TeamRights::spare_of(std::int32_t team) const {
  const Team& one = teams_->at(team);
  const std::int64_t above = std::max<std::int64_t>(0, expected_of(state_, one) - one.guarantee);
  // What a team has above it and the demand alike stays within, up to the demand.
  return is_above_demand(team) ? above + demand_ : above;
}

bool TeamRights::may_ask(const TaskState& task) const {
  const auto weight = state_.tier(task.tier).weight;
  const auto own = state_.tier(tier_).weight;
  if (weight < own) return true;
  if (weight > own || taking_ != Taking::equal || task.purpose != Purpose::batch) return false;
  const auto from = teams_->find(task.spec.team);
  if (!from || *from == team_) return false;
  // The demand's team as seen from below the first team that is above both.
  std::int32_t seen = -1;
  for (const std::int32_t n : chain_) {
    bool both = false;
    teams_->for_chain(*from, [&](std::int32_t above) { both = both || above == n; });
    if (both) break;
    seen = n;
  }
  return seen >= 0 && is_entitled_beside(seen);
}

bool TeamRights::may_have_room_of(const Plan& reservation) const {
  const TaskState& task = state_.tasks.at(reservation.task);
  if (!may_ask(task)) return false;
  if (state_.tier(task.tier).weight < state_.tier(tier_).weight) return true;
  std::int64_t kept = -held_by_tenants(state_, reservation);
  for (const Slot& slot : reservation.slots) kept += slot.share.value;
  Taken taken;
  return take(task, kept, taken);
}

bool TeamRights::take(const TaskState& task, std::int64_t milli, Taken& taken) const {
  if (!is_bound()) return true;
  const auto from = teams_->find(task.spec.team);
  if (!from || *from == team_) return true;  // its own affair
  bool within = true;
  teams_->for_chain(*from,
                    [&](std::int32_t n) { within = within && taken[n] + milli <= spare_of(n); });
  if (!within) return false;
  teams_->for_chain(*from, [&](std::int32_t n) { taken[n] += milli; });
  return true;
}

bool TeamRights::take(const Victim& victim, Taken& taken) const {
  if (victim.mode == ReleaseMode::finish) return true;  // nobody is asked
  const TaskState& task = state_.tasks.at(victim.task);
  return take(task, held_milli(task), taken);
}

bool TeamRights::allows(std::span<const Victim> victims) const {
  if (!is_bound()) return true;
  Taken taken;
  return std::all_of(victims.begin(), victims.end(),
                     [&](const Victim& victim) { return take(victim, taken); });
}

std::vector<bool> TeamRights::together(std::span<const Victim> in_turn) const {
  std::vector<bool> may(in_turn.size(), true);
  if (!is_bound()) return may;
  Taken taken;
  for (std::size_t i = 0; i < in_turn.size(); ++i) may[i] = take(in_turn[i], taken);
  return may;
}

}  // namespace neap
