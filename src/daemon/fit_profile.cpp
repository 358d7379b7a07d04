#include "daemon/fit_profile.h"

#include "core/rules/profile.h"

namespace neap::daemon {

Result<void> fit_to_profile(const PoolState& state, config::TaskFile& file) {
  const std::uint8_t open = file.open_fields();
  return std::visit(
      [&](auto& spec) -> Result<void> {
        if (file.auto_gpus) {
          const std::string key = profile_key(spec.team, spec.profile);
          const MiB memory = memory_known(state, key, spec.split);
          if (auto chosen = choose_count(state, memory, spec.request); !chosen) return chosen;
          spec.learned |= learned_bit(Learned::count);
        }
        fill_open(state, open, spec);
        return {};
      },
      file.spec);
}

}  // namespace neap::daemon
