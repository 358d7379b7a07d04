#include "core/rules/order.h"

#include <algorithm>

#include "core/model/check.h"
#include "core/rules/teams.h"

namespace neap {

HeadOrder::HeadOrder(const PoolState& state) : state_(state), teams_(state.index->teams.get()) {
  if (teams_ == nullptr) return;
  milli_ = static_cast<std::int64_t>(state.devices.size()) * whole_device.value;
  for (const NodeState& node : state.nodes) {
    cpu_milli_ += node.cpu_milli;
    host_memory_ += node.memory.value;
  }
}

void HeadOrder::add(const Head& head) {
  const std::int32_t team =
      teams_ == nullptr ? -1 : teams_->find(state_.shape(head.shape).team).value_or(-1);
  ranks_[rank_of(head)][team].insert(head);
}

Head HeadOrder::take() {
  NEAP_CHECK(!empty());
  const auto rank = ranks_.begin();
  ByTeam& teams = rank->second;
  const auto from = teams_ == nullptr ? teams.begin() : teams.find(first_of(teams).team);
  std::set<Head>& heads = from->second;
  const Head head = *heads.begin();
  heads.erase(heads.begin());
  if (heads.empty()) teams.erase(from);
  if (teams.empty()) ranks_.erase(rank);
  return head;
}

std::vector<ShapeId> HeadOrder::left() const {
  std::vector<ShapeId> shapes;
  for (const auto& [rank, teams] : ranks_) {
    for (const auto& [team, heads] : teams) {
      for (const Head& head : heads) shapes.push_back(head.shape);
    }
  }
  return shapes;
}

bool HeadOrder::Share::operator<(const Share& other) const {
  return static_cast<Wide>(part) * other.whole < static_cast<Wide>(other.part) * whole;
}

bool HeadOrder::Contender::operator<(const Contender& other) const {
  if (below != other.below) return below;
  if (share < other.share) return true;
  if (other.share < share) return false;
  return head < other.head;
}

// The largest of its parts of devices and of hosts, by weight.
HeadOrder::Share HeadOrder::share_of(const TeamUse& use, std::int32_t weight) const {
  Share most{0, 1};
  const auto consider = [&](std::int64_t part, std::int64_t whole) {
    if (whole <= 0) return;
    const Share share{part, whole * weight};
    if (most < share) most = share;
  };
  consider(use.committed, milli_);
  consider(use.cpu_milli, cpu_milli_);
  consider(use.host_memory, host_memory_);
  return most;
}

// A tournament: siblings against each other, the winner for their parent against its siblings. The
// tasks of a parent itself contend with its children as a team of weight 1.
HeadOrder::Contender HeadOrder::first_of(const ByTeam& teams) const {
  std::map<std::int32_t, Contender, std::greater<>> best;  // by the team that it contends for
  const auto enter = [&](std::int32_t team, const Contender& one) {
    const auto [at, is_new] = best.try_emplace(team, one);
    if (!is_new && one < at->second) at->second = one;
  };
  for (const auto& [team, heads] : teams) {
    const Share own = team < 0 ? Share{} : share_of(teams_->at(team).own, 1);
    enter(team, {*heads.begin(), team, false, own});
  }
  // Children have the larger numbers: when a team's turn comes, all of its have been.
  while (best.begin()->first >= 0) {
    const auto [number, winner] = *best.begin();
    best.erase(best.begin());
    const Team& team = teams_->at(number);
    enter(team.parent, {winner.head, winner.team, expected_of(state_, team) < team.guarantee,
                        share_of(team.all, team.weight)});
  }
  return best.begin()->second;
}

}  // namespace neap
