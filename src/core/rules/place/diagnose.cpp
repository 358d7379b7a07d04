#include <algorithm>

#include "core/model/pool_index.h"
#include "core/rules/place/search.h"

namespace neap {

namespace {

bool is_share(const PoolState& state, const Request& request, MiB capacity) {
  return take_of(state, request, capacity).share < whole_device;
}

// Which of compute and memory is short for a share (S2), over all devices it may use.
WaitCode short_of(const PoolState& state, const Shape& shape) {
  bool compute = false, memory = false;
  const std::uint8_t roles = allowed_roles(state, shape);
  for (const ModelId m : allowed_models(state, shape.request)) {
    const Take take = take_of(state, shape.request, state.models[m.value].memory);
    for (std::size_t r = 0; r < role_count; ++r) {
      if ((roles & (1U << r)) == 0) continue;
      const auto& by_share = state.index->models[m.value].partial[r];
      if (by_share.empty()) continue;
      compute = compute || by_share.rbegin()->first >= take.share.value;
      for (auto it = by_share.begin(); it != by_share.end() && !memory; ++it) {
        memory = it->second.rbegin()->first >= take.memory.value;
      }
    }
  }
  if (memory && !compute) return WaitCode::compute;
  if (compute && !memory) return WaitCode::memory;
  return compute ? WaitCode::fragmented : WaitCode::whole_devices;
}

bool would_fit(const PoolState& state, const Shape& shape) {
  return !find_slots(state, shape, role_stages(state, shape)).empty();
}

// Which of the things that a request says beside its devices keeps it waiting: the one without
// which it would fit, or the first of several.
WaitCode kept_by(const PoolState& state, const Shape& shape) {
  const Nearness& near = shape.request.near;
  Shape free = shape;
  WaitCode first = WaitCode::none;
  const auto is_it = [&](WaitCode code, auto&& lift) {
    Shape lifted = shape;
    lift(lifted.request);
    lift(free.request);
    if (first == WaitCode::none) first = code;
    return would_fit(state, lifted);
  };
  if (needs_host(shape.request) && is_it(WaitCode::host, [](Request& r) {
        r.cpu_milli = 0;
        r.host_memory = MiB(0);
      })) {
    return WaitCode::host;
  }
  if (!near.group.empty() && is_it(WaitCode::apart, [](Request& r) { r.near.group.clear(); })) {
    return WaitCode::apart;
  }
  if (!near.exclude.empty() &&
      is_it(WaitCode::excluded, [](Request& r) { r.near.exclude.clear(); })) {
    return WaitCode::excluded;
  }
  if (near.within != Cell::any &&
      is_it(WaitCode::cell, [](Request& r) { r.near.within = Cell::any; })) {
    return WaitCode::cell;
  }
  return first != WaitCode::none && would_fit(state, free) ? first : WaitCode::none;
}

// It would fit on devices that a later stage of adoption gives it.
bool kept_by_stage(const PoolState& state, const Shape& shape) {
  const AdoptionStage stage = state.adoption.stage;
  if (stage == AdoptionStage::time || shape.dedicated) return false;
  Shape other = shape;  // whom these devices are for
  if (shape.purpose == Purpose::inference) {
    other.purpose = Purpose::batch;
    other.releasable = false;
    return stage == AdoptionStage::physical && would_fit(state, other);
  }
  other.purpose = Purpose::inference;
  return shape.releasable && !find_slots(state, other, {role_bit(Role::buffer)}).empty();
}

}  // namespace

WaitCode diagnose(const PoolState& state, const Shape& shape) {
  std::uint32_t usable = 0, free_whole = 0;
  const std::uint8_t roles = allowed_roles(state, shape);
  const auto models = allowed_models(state, shape.request);
  for (const ModelId m : models) {
    const ModelIndex& index = state.index->models[m.value];
    for (std::size_t r = 0; r < role_count; ++r)
      usable += (roles & (1U << r)) != 0 ? index.usable[r] : 0;
    free_whole = std::max(free_whole, index.free_whole[mask_slot(roles)]);
  }
  if (kept_by_stage(state, shape)) return WaitCode::adoption;
  if (shape.purpose != Purpose::inference && !shape.dedicated) {
    // The same request with wider rights says whether the buffer or the guard is what stands
    // in the way.
    Shape wider = shape;
    wider.releasable = true;
    if (!shape.releasable && !find_slots(state, wider, role_stages(state, wider)).empty()) {
      return WaitCode::buffer;
    }
    wider.purpose = Purpose::inference;
    if (!find_slots(state, wider, role_stages(state, wider)).empty()) return WaitCode::guard;
  }
  if (usable == 0) return WaitCode::no_such_device;
  if (const WaitCode kept = kept_by(state, shape); kept != WaitCode::none) return kept;
  if (shape.dedicated) return WaitCode::dedicated_full;
  if (shape.request.count == 1 && !models.empty() &&
      is_share(state, shape.request, state.models[models.front().value].memory)) {
    return short_of(state, shape);
  }
  return free_whole >= static_cast<std::uint32_t>(shape.request.count) ? WaitCode::fragmented
                                                                       : WaitCode::whole_devices;
}

}  // namespace neap
