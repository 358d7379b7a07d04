#include "ledger/account.h"

namespace neap::ledger {
namespace {

constexpr std::array<std::string_view, category_count> category_names = {
    "useful_training",
    "useful_inference",
    "unverified",
    "lost_and_replayed",
    "checkpoint_stall",
    "drain",
    "restore",
    "interference",
    "slo_missed",
    "held_idle",
    "guard_idle",
    "fragmented_idle",
    "free",
    "fault",
    "pending",
};

}  // namespace

std::int64_t ppm_of(Amount part, Amount all) {
  if (all <= Amount()) return 0;
  return static_cast<std::int64_t>(part.value() * 1'000'000 / all.value());
}

std::string_view name_of(Category category) {
  return category_names[static_cast<std::size_t>(category)];
}

std::int64_t Totals::effective_utilisation_ppm() const { return ppm_of(useful(), provisioned); }

std::int64_t Totals::unverified_ppm() const {
  return ppm_of(of(Category::unverified), provisioned);
}

}  // namespace neap::ledger
