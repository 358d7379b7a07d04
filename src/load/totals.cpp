#include "load/totals.h"

#include <algorithm>
#include <array>

namespace neap::load {

std::string_view name_of(Outcome outcome) {
  constexpr std::array<std::string_view, outcome_count> names{
      "ok", "refused", "bad status", "cut off", "timed out", "dropped", "interrupted"};
  return names[static_cast<std::size_t>(outcome)];
}

std::uint64_t LoadTotals::failed() const {
  std::uint64_t all = 0;
  for (const std::uint64_t part : by_outcome) all += part;
  return all - count(Outcome::ok) - count(Outcome::interrupted);
}

void add(LoadTotals& totals, const RequestResult& result, std::span<const Micros> gaps,
         const LoadObjective& objective) {
  ++totals.by_outcome[static_cast<std::size_t>(result.outcome)];
  if (result.status > 0) ++totals.by_status[result.status];
  if (result.status == 429 && result.retry_after) ++totals.retry_after;
  if (result.sent_again) ++totals.sent_again;
  totals.tokens += static_cast<std::uint64_t>(result.tokens);
  if (result.outcome != Outcome::ok) return;
  const Micros first_byte = result.first_byte.value_or(result.finished) - result.scheduled;
  const Micros total = result.finished - result.scheduled;
  totals.first_byte.record(first_byte);
  totals.total.record(total);
  for (const Micros gap : gaps) totals.inter_token.record(gap);
  const bool in_time = (objective.first_byte == Micros(0) || first_byte <= objective.first_byte) &&
                       (objective.total == Micros(0) || total <= objective.total);
  if (in_time) ++totals.within_objective;
}

ClassChoice::ClassChoice(const std::vector<LoadClass>& classes, std::uint64_t seed)
    : random_(seed ^ 0xc1a55e5U) {  // not the sequence of the arrivals
  std::uint64_t sum = 0;
  for (const LoadClass& one : classes) upto_.push_back(sum += one.weight);
}

std::uint32_t ClassChoice::choose() {
  if (upto_.empty()) return 0;
  const std::uint64_t drawn = random_.next() % upto_.back();
  return static_cast<std::uint32_t>(std::ranges::upper_bound(upto_, drawn) - upto_.begin());
}

}  // namespace neap::load
