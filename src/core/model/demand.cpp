#include "core/model/demand.h"

#include <algorithm>
#include <bit>

namespace neap {

namespace {

// Up to the next eighth of the power of two below.
MiB rounded_up(MiB memory) {
  if (memory.value <= 8) return memory;
  const auto bits = std::bit_width(static_cast<std::uint64_t>(memory.value));
  const std::int64_t step = std::int64_t{1} << (bits - 4);
  return MiB((memory.value + step - 1) / step * step);
}

void halve(DemandBook& book) {
  for (DemandCount& count : book.kinds) count.tasks /= 2;
  std::erase_if(book.kinds, [](const DemandCount& count) { return count.tasks == 0; });
}

}  // namespace

void note_demand(DemandBook& book, const Request& request) {
  const DemandKind kind{request.cpu_milli, request.count, request.share, rounded_up(request.memory),
                        request.models};
  ++book.seen;
  auto at = std::lower_bound(book.kinds.begin(), book.kinds.end(), kind,
                             [](const DemandCount& c, const DemandKind& k) { return c.kind < k; });
  if (at != book.kinds.end() && at->kind == kind) {
    ++at->tasks;
  } else {
    at = book.kinds.insert(at, DemandCount{kind, 1});
    if (book.kinds.size() > most_demand_kinds) {
      // The rarest but the new one goes.
      auto rarest = book.kinds.end();
      for (auto c = book.kinds.begin(); c != book.kinds.end(); ++c) {
        if (c != at && (rarest == book.kinds.end() || c->tasks < rarest->tasks)) rarest = c;
      }
      book.kinds.erase(rarest);
    }
  }
  std::int64_t tasks = 0;
  for (const DemandCount& count : book.kinds) tasks += count.tasks;
  if (tasks > most_demand_tasks) halve(book);
}

}  // namespace neap
