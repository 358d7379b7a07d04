// A second ledger, written apart from the first and in another way: it keeps all records, and
// when asked lays every allocation out on a line of time and paints it. Slow and plain. The two
// must agree bit for bit; where they do not, one of them misreads POLICIES 7.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/model/events.h"
#include "ledger/account.h"

namespace neap::ledger::testing {

using Record = std::variant<Event, Decision>;
using Journal = std::vector<std::pair<Time, Record>>;

struct Answers {
  Totals pool;
  std::map<std::uint32_t, Totals> tasks;
  std::map<std::string, Totals> teams;
  std::map<std::uint32_t, Totals> services;
  std::int64_t waiting_tasks = 0;
  Amount waited;
};

[[nodiscard]] Answers reduce(const Journal& journal, Time end,
                             const std::map<std::string, std::int64_t>& price_milli = {});

}  // namespace neap::ledger::testing
