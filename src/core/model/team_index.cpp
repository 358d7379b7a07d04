#include "core/model/team_index.h"

#include <algorithm>

#include "core/model/check.h"
#include "core/model/pool_index.h"

namespace neap {

namespace {

std::int64_t milli_of(const std::vector<Slot>& slots) {
  std::int64_t sum = 0;
  for (const Slot& slot : slots) sum += slot.share.value;
  return sum;
}

}  // namespace

TeamUse& TeamUse::operator+=(const TeamUse& other) {
  held += other.held;
  expected += other.expected;
  committed += other.committed;
  cpu_milli += other.cpu_milli;
  host_memory += other.host_memory;
  return *this;
}

TeamUse TeamUse::negative() const {
  return {-held, -expected, -committed, -cpu_milli, -host_memory};
}

TeamIndex::TeamIndex(const std::vector<TeamSpec>& specs) {
  // Those whose parents are there, until all are: check_teams() has seen that none is left over.
  while (teams_.size() < specs.size()) {
    const std::size_t before = teams_.size();
    for (const TeamSpec& spec : specs) {
      if (numbers_.contains(spec.name)) continue;
      const auto parent = find(spec.parent);
      if (!spec.parent.empty() && !parent) continue;
      Team& team = teams_.emplace_back();
      team.name = spec.name;
      team.parent = parent.value_or(-1);
      team.guarantee = std::int64_t{spec.guarantee} * whole_device.value;
      if (spec.limit) team.limit = std::int64_t{*spec.limit} * whole_device.value;
      team.weight = spec.weight;
      has_limits_ = has_limits_ || spec.limit.has_value();
      numbers_.emplace(spec.name, static_cast<std::int32_t>(teams_.size() - 1));
    }
    NEAP_CHECK(teams_.size() > before);
  }
}

std::int32_t TeamIndex::number_of(const std::string& name) {
  const auto [entry, is_new] = numbers_.emplace(name, static_cast<std::int32_t>(teams_.size()));
  if (is_new) teams_.emplace_back().name = name;
  return entry->second;
}

std::optional<std::int32_t> TeamIndex::find(std::string_view name) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

bool TeamIndex::note(TaskId task, const std::string& team, const TeamUse& use) {
  const auto [at, is_new] = entries_.try_emplace(task);
  Entry& entry = at->second;
  if (is_new) entry.team = number_of(team);
  TeamUse change = use;
  change += entry.use.negative();
  const std::int32_t number = entry.team;
  entry.use = use;
  if (use == TeamUse{}) entries_.erase(at);
  if (change == TeamUse{}) return false;
  bool relieved = false;
  teams_[static_cast<std::size_t>(number)].own += change;
  for_chain(number, [&](std::int32_t n) {
    Team& above = teams_[static_cast<std::size_t>(n)];
    above.all += change;
    relieved = relieved || (above.limit && change.committed < 0);
  });
  return relieved;
}

bool TeamIndex::equals(const TeamIndex& other) const {
  const auto has_same = [](const TeamIndex& a, const TeamIndex& b) {
    return std::all_of(a.teams_.begin(), a.teams_.end(), [&](const Team& team) {
      const auto number = b.find(team.name);
      const Team other_team = number ? b.at(*number) : Team{};
      return team.all == other_team.all && team.own == other_team.own;
    });
  };
  return entries_.size() == other.entries_.size() && has_same(*this, other) &&
         has_same(other, *this);
}

TeamUse team_use_of(const PoolState& state, const TaskState& task) {
  const auto plan = state.plans.find(task.id);
  const bool planned = plan != state.plans.end() && !has_ended(task.phase);
  const bool holds = holds_devices(task.phase);
  TeamUse use;
  if (!holds && !planned) return use;
  const std::int64_t claimed = planned ? milli_of(plan->second.slots) : 0;
  use.held = holds ? milli_of(task.slots) : 0;
  use.committed = std::max(use.held, claimed);
  const bool leaves = task.phase == Phase::yielding || task.phase == Phase::stopping;
  use.expected = leaves || !holds ? claimed : use.committed;
  const std::size_t devices =
      std::max(holds ? task.slots.size() : 0, planned ? plan->second.slots.size() : 0);
  const HostPart host = host_part(task.spec.request, static_cast<std::int32_t>(devices));
  use.cpu_milli = host.cpu;
  use.host_memory = host.memory.value;
  return use;
}

void refresh_team(PoolState& state, const TaskState& task) {
  auto& index = *state.index;
  if (!index.teams) return;
  if (!index.teams->note(task.id, task.spec.team, team_use_of(state, task))) return;
  for (auto s = index.waiting_shapes.first(); s; s = index.waiting_shapes.at_or_after(*s + 1)) {
    if (state.wait_codes[*s] == WaitCode::team_limit) index.agenda.shapes.insert(*s);
  }
}

void rebuild_teams(PoolState& state) {
  auto& teams = state.index->teams;
  teams.reset();
  if (state.spec.teams.empty()) return;
  teams = std::make_shared<TeamIndex>(state.spec.teams);
  for (const Shape& shape : state.shapes) teams->number_of(shape.team);
  state.tasks.for_each([&](const TaskState& task) {
    if (!has_ended(task.phase)) {
      static_cast<void>(teams->note(task.id, task.spec.team, team_use_of(state, task)));
    }
  });
}

bool teams_are_equal(const PoolState& a, const PoolState& b) {
  const auto& x = a.index->teams;
  const auto& y = b.index->teams;
  if (!x || !y) return !x && !y;
  return x->equals(*y);
}

}  // namespace neap
