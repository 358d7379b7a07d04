#include <algorithm>

#include "core/model/check.h"
#include "core/rules/partition/search.h"

namespace neap::mig {

namespace {

struct State {
  Counts served{};
  Cost cost;
  std::uint32_t before = 0;  // the state of the device before
  std::uint32_t option = 0;
};

bool earlier(const State& a, const State& b) {
  if (a.served != b.served) return a.served < b.served;
  if (a.cost != b.cost) return a.cost < b.cost;
  return a.before != b.before ? a.before < b.before : a.option < b.option;
}

// The cheapest state of each mix stays.
void fold(std::vector<State>& states) {
  std::sort(states.begin(), states.end(), earlier);
  const auto end = std::unique(states.begin(), states.end(),
                               [](const State& a, const State& b) { return a.served == b.served; });
  states.erase(end, states.end());
}

class Programme {
 public:
  Programme(const std::vector<Group>& groups, const Demand& demand, std::size_t states_max)
      : groups_(groups), demand_(demand), states_max_(states_max) {
    for (const Kind& kind : demand.kinds) {
      std::vector<std::int64_t> worth;
      const std::int64_t most = std::min<std::int64_t>(kind.count, counts_max);
      for (std::int64_t n = 0; n <= most; ++n) worth.push_back(kind.worth_of(n, demand.wants));
      worth_.push_back(std::move(worth));
    }
  }

  std::optional<Choice> run() {
    if (!counts_hold()) return std::nullopt;
    layers_.push_back({State{}});
    for (const Group& group : groups_) {
      for (std::size_t i = 0; i < group.devices.size(); ++i) {
        if (!extend(group)) return std::nullopt;
      }
    }
    const std::vector<State>& last = layers_.back();
    std::size_t best = 0;
    for (std::size_t i = 1; i < last.size(); ++i) {
      if (score_of(last[i]) > score_of(last[best])) best = i;
    }
    return trace(static_cast<std::uint32_t>(best));
  }

 private:
  static constexpr std::int64_t counts_max = 255;

  // Whether no device is kept from serving because a count ends at its largest.
  [[nodiscard]] bool counts_hold() const {
    std::size_t devices = 0;
    for (const Group& group : groups_) devices += group.devices.size();
    if (devices * slices_max <= counts_max) return true;
    return std::all_of(demand_.kinds.begin(), demand_.kinds.end(),
                       [](const Kind& kind) { return kind.count <= counts_max; });
  }

  [[nodiscard]] Score score_of(const State& state) const {
    Score score{0, state.cost};
    for (std::size_t k = 0; k < worth_.size(); ++k) score.worth += worth_[k][state.served[k]];
    return score;
  }

  // False when the sum would be more than is wanted.
  [[nodiscard]] bool add(Counts& served, const Counts& more) const {
    for (std::size_t k = 0; k < worth_.size(); ++k) {
      const std::size_t sum = std::size_t{served[k]} + more[k];
      if (sum >= worth_[k].size()) return false;
      served[k] = static_cast<std::uint8_t>(sum);
    }
    return true;
  }

  bool extend(const Group& group) {
    const std::vector<State>& before = layers_.back();
    const std::size_t buffer = 4 * states_max_;
    std::vector<State> next;
    for (std::size_t i = 0; i < before.size(); ++i) {
      for (std::size_t o = 0; o < group.options.size(); ++o) {
        State state = before[i];
        if (!add(state.served, group.options[o].counts)) continue;
        state.cost += group.options[o].cost;
        state.before = static_cast<std::uint32_t>(i);
        state.option = static_cast<std::uint32_t>(o);
        next.push_back(state);
      }
      if (next.size() > buffer) {
        fold(next);
        if (next.size() > states_max_) return false;
      }
    }
    fold(next);
    if (next.size() > states_max_) return false;
    layers_.push_back(std::move(next));
    return true;
  }

  [[nodiscard]] Choice trace(std::uint32_t at) const {
    Choice choice;
    choice.score = score_of(layers_.back()[at]);
    choice.worth_bound = choice.score.worth;
    choice.options.resize(groups_.size());
    std::size_t layer = layers_.size() - 1;
    for (std::size_t g = groups_.size(); g-- > 0;) {
      for (std::size_t i = 0; i < groups_[g].devices.size(); ++i, --layer) {
        choice.options[g].push_back(layers_[layer][at].option);
        at = layers_[layer][at].before;
      }
    }
    return choice;
  }

  const std::vector<Group>& groups_;
  const Demand& demand_;
  std::size_t states_max_;
  std::vector<std::vector<std::int64_t>> worth_;  // by kind and count
  std::vector<std::vector<State>> layers_;        // by number of devices decided
};

}  // namespace

std::optional<Choice> search_exact(const std::vector<Group>& groups, const Demand& demand,
                                   std::size_t states_max) {
  return Programme(groups, demand, states_max).run();
}

}  // namespace neap::mig
