#include "config/teams.h"

#include <algorithm>
#include <map>

#include "core/rules/teams.h"

namespace neap::config {

namespace {

struct Entry {
  TeamSpec team;
  std::size_t index = 0;  // in the file
  std::map<std::string, int> lines;
};

}  // namespace

void read_teams(Fields& top, PoolSpec& pool) {
  std::vector<Entry> entries;
  top.each("teams", most_teams, [&](Fields& item) {
    Entry& entry = entries.emplace_back();
    TeamSpec& team = entry.team;
    entry.index = entries.size() - 1;
    const bool named = item.word("name", team.name, Need::required);
    item.word("parent", team.parent);
    item.whole("guarantee", team.guarantee, {0, devices_max});
    std::int32_t limit = 0;
    if (item.whole("limit", limit, {0, devices_max})) team.limit = limit;
    item.whole("weight", team.weight, {1, 1'000'000});
    for (const char* field : {"name", "parent", "guarantee", "weight"}) {
      entry.lines[field] = item.line_of(field);
    }
    item.close();
    if (!named) entries.pop_back();
  });
  if (!top.reading().problems.empty()) return;
  // In the order of the file, so that of two that clash the later one is named.
  for (const Entry& entry : entries) pool.teams.push_back(entry.team);
  for (const TeamFault& fault : faults_of_teams(pool)) {
    const Entry& entry = entries[fault.team];
    top.reading().problems.add(entry.lines.at(fault.field),
                               "teams[" + std::to_string(entry.index) + "]." + fault.field,
                               fault.message);
  }
  std::sort(pool.teams.begin(), pool.teams.end(),
            [](const TeamSpec& a, const TeamSpec& b) { return a.name < b.name; });
}

}  // namespace neap::config
