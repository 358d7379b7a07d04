#include "daemon/team_view.h"

#include "core/model/team_index.h"

namespace neap {

std::vector<api::TeamRow> view_teams(const PoolState& state) {
  // Counted anew: where the pool has no teams, no sums are kept.
  TeamIndex teams(state.spec.teams);
  struct Count {
    std::int64_t holding = 0, waiting = 0;
  };
  std::vector<Count> counts;
  state.tasks.for_each([&](const TaskState& task) {
    if (has_ended(task.phase)) return;
    static_cast<void>(teams.note(task.id, task.spec.team, team_use_of(state, task)));
    const std::int32_t number = teams.number_of(task.spec.team);
    counts.resize(teams.teams().size());
    teams.for_chain(number, [&](std::int32_t n) {
      Count& count = counts[static_cast<std::size_t>(n)];
      ++(task.phase == Phase::waiting ? count.waiting : count.holding);
    });
  });
  counts.resize(teams.teams().size());
  std::vector<api::TeamRow> rows;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Team& team = teams.teams()[i];
    api::TeamRow& row = rows.emplace_back();
    row.name = team.name;
    if (team.parent >= 0) row.parent = teams.at(team.parent).name;
    row.held_milli = team.all.held;
    row.claimed_milli = team.all.committed - team.all.held;
    row.leaving_milli = std::max<std::int64_t>(0, team.all.committed - team.all.expected);
    row.guarantee_milli = team.guarantee;
    if (team.limit) row.limit_milli = *team.limit;
    row.weight = team.weight;
    row.tasks_holding = counts[i].holding;
    row.tasks_waiting = counts[i].waiting;
  }
  return rows;
}

}  // namespace neap
