#include "config/ladder.h"

#include "config/fields.h"

namespace neap::config {

std::string_view name_of(LadderMode mode) {
  switch (mode) {
    case LadderMode::off:
      return "off";
    case LadderMode::recommend:
      return "recommend";
    case LadderMode::automatic:
      return "auto";
  }
  return "off";
}

void read_ladder(Fields ladder, LadderSettings& into) {
  ladder.choice<LadderMode>("mode", into.mode,
                            {{"off", LadderMode::off},
                             {"recommend", LadderMode::recommend},
                             {"auto", LadderMode::automatic}});
  ladder.choice<CpuGroups>("groups", into.groups,
                           {{"per_task", CpuGroups::per_task}, {"shared", CpuGroups::shared}});
  ladder.duration("settle", into.settle, seconds(5), hours(1));
  ladder.duration("calm", into.calm, seconds(10), hours(24));
  ladder.close();
}

}  // namespace neap::config
