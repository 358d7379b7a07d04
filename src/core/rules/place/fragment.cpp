#include "core/rules/place/fragment.h"

#include <algorithm>
#include <bit>

namespace neap::leftover {

namespace {

// The score is 100/(1 + exp(-gained/1000)), cut off: it is at least 50 + i from gained milli of
// 1000*ln((50 + i)/(50 - i)) on, here in millionths, and 50 - i from the same below zero.
constexpr std::array<std::int64_t, 50> millionths = {
    0,          40005335,   80042708,   120144312,  160342650,  200670695,  241162057,  281851152,
    322773392,  363965377,  405465108,  447312218,  489548225,  532216814,  575364145,  619039208,
    663294217,  708185058,  753771802,  800119300,  847297860,  895384047,  944461609,  994622575,
    1045968555, 1098612289, 1152679510, 1208311206, 1265666373, 1324925415, 1386294361, 1450010176,
    1516347489, 1585627264, 1658228077, 1734601055, 1815289967, 1900958761, 1992430165, 2090741097,
    2197224577, 2313634929, 2442347035, 2586689344, 2751535313, 2944438979, 3178053830, 3476098690,
    3891820298, 4595119850};

// The least whole number of milli, over so many tasks, that reaches a limit.
std::int64_t limit_of(std::int64_t limit, std::int64_t tasks) {
  constexpr std::int64_t million = 1'000'000;
  const Wide exact = Wide{limit} * tasks;
  const Wide cut_off = exact / million;  // towards zero
  return static_cast<std::int64_t>(cut_off + (exact > cut_off * million ? 1 : 0));
}

Supply after(Supply node, const Demand& demand, DeviceMask devices) {
  node.cpu -= demand.cpu;
  node.free -= demand.milli();
  for (DeviceMask left = devices; left != 0; left &= left - 1) {
    std::int16_t& idle = node.idle[static_cast<std::size_t>(std::countr_zero(left))];
    idle = static_cast<std::int16_t>(idle - demand.each);
  }
  return node;
}

// The devices with the least that is enough, of equals the first.
DeviceMask tightest(const Supply& node, const Demand& demand, DeviceMask allowed) {
  DeviceMask chosen = 0;
  for (std::int32_t wanted = demand.count; wanted > 0; --wanted) {
    int best = -1;
    for (DeviceMask left = allowed & ~chosen; left != 0; left &= left - 1) {
      const int i = std::countr_zero(left);
      const std::int32_t idle = node.idle[static_cast<std::size_t>(i)];
      if (idle < demand.each) continue;
      if (best < 0 || idle < node.idle[static_cast<std::size_t>(best)]) best = i;
    }
    if (best >= 0) chosen |= DeviceMask{1} << best;
  }
  return chosen;
}

std::vector<TaskKind> typical(std::span<const TaskKind> kinds) {
  std::vector<TaskKind> sorted(kinds.begin(), kinds.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const TaskKind& a, const TaskKind& b) { return a.count > b.count; });
  std::int64_t all = 0, covered = 0;
  for (const TaskKind& kind : sorted) all += kind.count;
  std::size_t taken = 0;
  while (taken < sorted.size() && covered * 100 < all * 95) covered += sorted[taken++].count;
  sorted.resize(taken);
  return sorted;
}

}  // namespace

Fragments::Fragments(std::span<const TaskKind> kinds) {
  std::int64_t tasks = 0;
  for (const TaskKind& kind : typical(kinds)) {
    const Demand& demand = kind.demand;
    tasks += kind.count;
    auto alike = std::find_if(alike_.begin(), alike_.end(), [&](const Alike& a) {
      return a.each == demand.each && a.roles == demand.roles;
    });
    if (alike == alike_.end()) {
      alike_.push_back({demand.each, demand.roles, {}});
      alike = alike_.end() - 1;
    }
    alike->kinds.push_back({demand.cpu, demand.count, demand.models, kind.count});
  }
  tasks = std::max<std::int64_t>(tasks, 1);
  for (std::size_t i = 0; i < millionths.size(); ++i) {
    limits_[49 - i] = limit_of(-millionths[i], tasks);
    limits_[49 + i] = limit_of(millionths[i], tasks);
  }
}

std::int64_t Fragments::potential_of(const Supply& node) const {
  std::int64_t useless = 0;
  for (const Alike& alike : alike_) {
    std::int32_t enough = 0, usable = 0;
    Demand roles;
    roles.roles = alike.roles;
    for (DeviceMask left = node.allowed(roles); left != 0; left &= left - 1) {
      const std::int32_t idle = node.idle[static_cast<std::size_t>(std::countr_zero(left))];
      enough += idle >= alike.each ? 1 : 0;
      usable += idle >= alike.each ? idle : 0;
    }
    std::int64_t using_it = 0;  // tasks
    for (const Kind& kind : alike.kinds) {
      const bool uses = kind.count > 0 && enough >= kind.count && node.cpu >= kind.cpu &&
                        (kind.models == 0 || (kind.models >> node.model & 1U) != 0);
      useless += kind.tasks * node.free;
      using_it += uses ? kind.tasks : 0;
    }
    useless -= using_it * usable;
  }
  return useless;
}

std::int64_t Fragments::score(std::int64_t gained) const {
  return std::upper_bound(limits_.begin(), limits_.end(), gained) - limits_.begin();
}

Fragments::Best Fragments::best(const Supply& node, std::int64_t before,
                                const Demand& demand) const {
  const DeviceMask allowed = node.allowed(demand);
  const auto with = [&](DeviceMask devices) {
    return Best{score(before - potential_of(after(node, demand, devices))), devices};
  };
  if (demand.count == 0 || demand.each == whole)
    return with(lowest(node.unused & allowed, demand.count));
  // Several shares: one choice, since trying all would cost too much.
  if (demand.count > 1) return with(tightest(node, demand, allowed));
  Best best{-1, 0};
  DeviceMask seen = 0;
  for (DeviceMask left = allowed; left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(left));
    if (node.idle[i] < demand.each) continue;
    // A device as free as an earlier one gives the same, unless others may use other devices.
    const bool like_earlier = [&] {
      for (DeviceMask earlier = seen; earlier != 0; earlier &= earlier - 1) {
        const auto e = static_cast<std::size_t>(std::countr_zero(earlier));
        if (node.idle[e] != node.idle[i]) continue;
        bool same_roles = true;
        for (const std::uint16_t role : node.by_role) {
          same_roles = same_roles && (role >> e & 1U) == (role >> i & 1U);
        }
        if (same_roles) return true;
      }
      return false;
    }();
    seen |= DeviceMask{1} << i;
    if (like_earlier) continue;
    if (const Best one = with(DeviceMask{1} << i); one.score > best.score) best = one;
  }
  return best;
}

}  // namespace neap::leftover
