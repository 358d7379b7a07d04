#include "core/rules/profile.h"

#include <algorithm>

#include "core/model/check.h"
#include "core/rules/adoption.h"
#include "core/rules/place.h"

namespace neap {

namespace {

bool is_before(const TaskProfile& profile, std::string_view key) { return profile.name < key; }

// The one that was unused for longest, of equals the first by name.
void forget_oldest(std::vector<TaskProfile>& known) {
  const auto oldest =
      std::min_element(known.begin(), known.end(), [](const TaskProfile& a, const TaskProfile& b) {
        return a.used != b.used ? a.used < b.used : a.name < b.name;
      });
  known.erase(oldest);
}

TaskProfile& profile_called(PoolState& state, const std::string& key, Purpose purpose) {
  auto& known = state.profiles.known;
  auto at = std::lower_bound(known.begin(), known.end(), key, is_before);
  if (at == known.end() || at->name != key) {
    if (known.size() >= most_profiles) {
      forget_oldest(known);
      at = std::lower_bound(known.begin(), known.end(), key, is_before);
    }
    at = known.insert(at, TaskProfile{.name = key, .purpose = purpose});
  }
  at->used = state.now;
  return *at;
}

void declare(TaskProfile& profile, const MemorySplit& split, MiB memory) {
  if (split != MemorySplit()) profile.split = split;
  if (memory > MiB(0)) profile.declared = memory;
}

template <class Spec>
std::string profile_key_of(const Spec& spec) {
  return profile_key(spec.team, spec.profile);
}

// What is kept for the reserve of a device is not for tasks.
MiB capacity_of(const PoolState& state, const ModelState& model) {
  return model.memory - state.spec.device_reserve;
}

template <class Spec>
void fill_memory(const TaskProfile& profile, std::uint8_t open, Spec& spec) {
  const std::uint8_t bit = learned_bit(Learned::memory);
  const auto most = most_of(profile.memory);
  if ((open & bit) == 0 || !most) return;
  spec.request.memory = MiB(*most);
  spec.learned |= bit;
}

}  // namespace

std::string usual_profile(std::string_view name) {
  std::string_view stem = name;
  while (!stem.empty() && stem.back() >= '0' && stem.back() <= '9') stem.remove_suffix(1);
  while (!stem.empty() && (stem.back() == '-' || stem.back() == '_' || stem.back() == '.')) {
    stem.remove_suffix(1);
  }
  return std::string(stem.empty() ? name : stem);
}

std::string profile_key(std::string_view team, std::string_view profile) {
  return std::string(team) + "/" + std::string(profile);
}

const TaskProfile* find_profile(const PoolState& state, std::string_view key) {
  const auto& known = state.profiles.known;
  const auto at = std::lower_bound(known.begin(), known.end(), key, is_before);
  return at == known.end() || at->name != key ? nullptr : &*at;
}

std::optional<std::int64_t> p90_of(const Observed& observed) {
  if (observed.count < observations_needed) return std::nullopt;
  std::vector<std::int64_t> sorted = observed.last;
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() * 9 + 9) / 10 - 1];
}

std::optional<std::int64_t> most_of(const Observed& observed) {
  if (observed.count < observations_needed) return std::nullopt;
  return *std::max_element(observed.last.begin(), observed.last.end());
}

void fill_open(const PoolState& state, std::uint8_t open, TaskSpec& spec) {
  const TaskProfile* profile = find_profile(state, profile_key_of(spec));
  if (profile == nullptr) return;
  const auto fill = [&](Learned field, const Observed& observed, auto&& set) {
    const auto value = p90_of(observed);
    if ((open & learned_bit(field)) == 0 || !value) return;
    set(Micros(*value));
    spec.learned |= learned_bit(field);
  };
  ContractSpec& contract = spec.contract;
  fill(Learned::work, profile->work, [&](Micros work) { spec.work = work; });
  fill(Learned::save, profile->save, [&](Micros save) { contract.save = save; });
  fill(Learned::stall, profile->stall, [&](Micros stall) { contract.stall = stall; });
  fill(Learned::restore, profile->restore, [&](Micros restore) { contract.restore = restore; });
  fill_memory(*profile, open, spec);
  // The second condition of A4: a part of a device is predictable once its memory is known.
  if ((spec.learned & learned_bit(Learned::memory)) != 0) spec.predictable = true;
}

void fill_open(const PoolState& state, std::uint8_t open, ServiceSpec& spec) {
  const TaskProfile* profile = find_profile(state, profile_key_of(spec));
  if (profile != nullptr) fill_memory(*profile, open, spec);
}

MiB memory_known(const PoolState& state, std::string_view key, const MemorySplit& split) {
  if (split.sum() > MiB(0)) return split.sum();
  const TaskProfile* profile = find_profile(state, key);
  return profile == nullptr ? MiB(0) : profile->split.sum();
}

Result<void> choose_count(const PoolState& state, MiB memory, Request& request) {
  if (memory <= MiB(0)) {
    return fail(ErrorCode::invalid_argument,
                "auto needs the memory of the model: `memory: {weights: 140GiB}`, or a type "
                "(`profile`) that has declared it before",
                "gpus");
  }
  const ModelState* best = nullptr;
  std::int64_t fewest = 0;
  for (const ModelState& model : state.models) {
    const MiB capacity = capacity_of(state, model);
    const bool serves = model.per_node > 0 && names_model(request.models, model.name);
    if (!serves || capacity <= MiB(0)) continue;
    const std::int64_t count = (memory.value + capacity.value - 1) / capacity.value;
    const bool better =
        best == nullptr || count < fewest || (count == fewest && model.memory < best->memory);
    if (!better) continue;
    best = &model;
    fewest = count;
  }
  if (best == nullptr) {
    return fail(ErrorCode::invalid_argument, "auto found no device that may serve it", "gpus");
  }
  request.count = static_cast<std::int32_t>(std::min<std::int64_t>(fewest, 1'000'000));
  request.memory = MiB((memory.value + fewest - 1) / fewest);
  return {};
}

std::string memory_warning(const PoolState& state, std::string_view key, const Request& request) {
  const TaskProfile* profile = find_profile(state, key);
  if (profile == nullptr || request.memory <= MiB(0)) return {};
  const auto most = most_of(profile->memory);
  if (!most || MiB(*most) <= request.memory) return {};
  return std::to_string(request.memory.value) + " MiB are declared, and " + std::to_string(*most) +
         " MiB were in use in the newest " + std::to_string(profile->memory.last.size()) +
         " runs of " + profile->name + ": declare at least that";
}

// ---- for apply -------------------------------------------------------------------------------

void note_submission(PoolState& state, const TaskSpec& spec) {
  if (spec.profile.empty()) return;
  const auto purpose = [&] {
    for (const TierSpec& tier : state.spec.tiers) {
      if (tier.name == spec.tier) return tier.purpose;
    }
    return Purpose::batch;
  }();
  const bool declared = (spec.learned & learned_bit(Learned::memory)) == 0;
  declare(profile_called(state, profile_key_of(spec), purpose), spec.split,
          declared ? spec.request.memory : MiB(0));
}

void note_submission(PoolState& state, const ServiceSpec& spec, TierId tier) {
  if (spec.profile.empty()) return;
  const bool declared = (spec.learned & learned_bit(Learned::memory)) == 0;
  declare(profile_called(state, profile_key_of(spec), state.tier(tier).purpose), spec.split,
          declared ? spec.request.memory : MiB(0));
}

void observe(PoolState& state, const TaskState& task, Observation what, std::int64_t value) {
  if (task.spec.profile.empty() || value <= 0) return;
  TaskProfile& profile = profile_called(state, profile_key_of(task.spec), task.purpose);
  const auto into = [&]() -> Observed& {
    switch (what) {
      case Observation::memory:
        return profile.memory;
      case Observation::work:
        return profile.work;
      case Observation::save:
        return profile.save;
      case Observation::stall:
        return profile.stall;
      case Observation::restore:
        return profile.restore;
    }
    NEAP_CHECK(false);
    return profile.memory;
  };
  Observed& observed = into();
  ++observed.count;
  observed.last.push_back(value);
  if (observed.last.size() > observations_kept) observed.last.erase(observed.last.begin());
}

void observe_memory(PoolState& state, TaskState& task, MiB peak) {
  note_memory(state, task, peak);
  // A replica lives long: what it grew to is not kept back until its end.
  const bool grows = task.service.valid() && peak > task.seen_memory;
  if (grows) observe(state, task, Observation::memory, peak.value);
  task.seen_memory = std::max(task.seen_memory, peak);
}

void observe_end(PoolState& state, const TaskState& task) {
  if (!task.service.valid()) {
    observe(state, task, Observation::memory, task.seen_memory.value);
  }
  observe(state, task, Observation::save, task.seen_save.value);
  observe(state, task, Observation::stall, task.seen_stall.value);
  const bool finished = task.exit_signal == 0 && task.exit_code == 0;
  if (!finished || task.service.valid()) return;
  observe(state, task, Observation::work, (task.done + (state.now - task.started_at)).value);
}

}  // namespace neap
