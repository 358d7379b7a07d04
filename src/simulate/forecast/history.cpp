#include "simulate/forecast/history.h"

#include <algorithm>

#include "core/model/pool_index.h"

namespace neap::forecast {

namespace {

constexpr Micros least_base = minutes(10);
constexpr int most_doublings = 8;
constexpr std::int64_t most_factor_ppm = 1'000'000'000;

std::int64_t factor_of(Micros held, Micros declared) {
  const Wide ppm = Wide{held.value} * all_ppm.value / std::max<std::int64_t>(1, declared.value);
  return static_cast<std::int64_t>(std::min(ppm, Wide{most_factor_ppm}));
}

Micros scaled(Micros declared, std::int64_t factor_ppm) {
  return Micros(static_cast<std::int64_t>(Wide{declared.value} * factor_ppm / all_ppm.value));
}

void put(std::vector<std::int64_t>& sorted, std::int64_t value, std::int64_t sign) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), value);
  if (sign > 0) {
    sorted.insert(at, value);
  } else {
    sorted.erase(at);
  }
}

}  // namespace

std::int32_t size_class_of(const Request& request) {
  if (request.share < whole_device) return 1;
  if (request.count == 1) return 2;
  return request.count <= 8 ? 3 : 4;
}

void History::read(const PoolState& state) {
  const auto& ended = state.index->ended;
  auto at = ended.upper_bound(read_to_);
  if (ended.size() > kept) {
    const auto first = std::prev(ended.end(), static_cast<std::ptrdiff_t>(kept));
    if (at != ended.end() && *at < *first) at = first;
  }
  for (; at != ended.end(); ++at) {
    read_to_ = *at;
    const TaskState* task = state.tasks.find(at->second);
    if (task == nullptr || task->service.valid() || task->first_started == Time(0)) continue;
    Ended one;
    // `done` counts up to what was saved last; from there on it ran to its end.
    one.held = task->done + (task->phase_since - task->captured);
    one.tier = task->tier;
    one.size_class = size_class_of(task->spec.request);
    one.team = task->spec.team;
    one.declared = task->spec.work;
    one.how = task->phase == Phase::finished ? Ended::How::finished : Ended::How::otherwise;
    add(std::move(one));
  }
}

void History::add(Ended ended) {
  change(ended, 1);
  last_.push_back(std::move(ended));
  if (last_.size() <= kept) return;
  change(last_.front(), -1);
  last_.pop_front();
}

void History::change(const Ended& e, std::int64_t sign) {
  for (const Group& group :
       {Group{e.tier.value, e.size_class, e.team}, Group{e.tier.value, e.size_class, {}},
        Group{e.tier.value, 0, {}}, Group{}}) {
    put(lengths_[group], e.held.value, sign);
  }
  if (!e.declared || e.how != Ended::How::finished) return;
  put(factors_[Group{e.tier.value, 0, e.team}], factor_of(e.held, *e.declared), sign);
}

Micros History::draw_total(const TaskState& task, Micros held, trace::Chance& chance) const {
  return task.spec.work ? draw_declared(task, held, chance) : draw_undeclared(task, held, chance);
}

Micros History::draw_declared(const TaskState& task, Micros held, trace::Chance& chance) const {
  const Micros declared = *task.spec.work;
  const auto known = factors_.find(Group{task.tier.value, 0, task.spec.team});
  if (known == factors_.end() || known->second.size() < enough) {
    return declared > held ? declared : guess_total(held, chance);
  }
  const Sorted& factors = known->second;
  const auto longer = std::upper_bound(factors.begin(), factors.end(), factor_of(held, declared));
  const auto left = static_cast<std::uint64_t>(factors.end() - longer);
  if (left == 0) return guess_total(held, chance);
  const Micros total =
      scaled(declared, *(longer + static_cast<std::ptrdiff_t>(chance.below(left))));
  return std::max(total, held + Micros(1));
}

Micros History::draw_undeclared(const TaskState& task, Micros held, trace::Chance& chance) const {
  const std::int32_t size = size_class_of(task.spec.request);
  for (const Group& group :
       {Group{task.tier.value, size, task.spec.team}, Group{task.tier.value, size, {}},
        Group{task.tier.value, 0, {}}, Group{}}) {
    const auto known = lengths_.find(group);
    if (known == lengths_.end()) continue;
    const Sorted& lengths = known->second;
    const auto longer = std::upper_bound(lengths.begin(), lengths.end(), held.value);
    const auto left = static_cast<std::size_t>(lengths.end() - longer);
    const bool last = group == Group{};
    if (left < enough && !last) continue;
    // Few took longer than this one has: they speak for their part, the guess for the rest.
    const std::size_t pick = chance.below(std::max(left, enough));
    if (pick < left) return Micros(*(longer + static_cast<std::ptrdiff_t>(pick)));
  }
  return guess_total(held, chance);
}

Micros guess_total(Micros held, trace::Chance& chance) {
  Micros base = std::max(held, least_base);
  const Micros gone = base - held;  // of the ten minutes
  for (int n = 0; n < most_doublings && chance.below(2) == 0; ++n) base = base * 2;
  const Micros total =
      base +
      Micros(static_cast<std::int64_t>(chance.below(static_cast<std::uint64_t>(base.value))));
  return std::max(total - gone, held + Micros(1));
}

}  // namespace neap::forecast
