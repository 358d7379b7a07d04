// The search for room, for place() and for what tells why there is none. For rules/place alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/id_set.h"
#include "core/rules/place.h"

namespace neap {

// Models that a shape may use, in the order in which they are tried.
[[nodiscard]] std::vector<ModelId> allowed_models(const PoolState& state, const Shape& shape);

// Slots in the first of these stages that has room; empty: in none.
[[nodiscard]] std::vector<Slot> find_slots(const PoolState& state, const Shape& shape,
                                           const std::vector<std::uint8_t>& stages);

// What stands in the way of a shape for which place() finds no room.
[[nodiscard]] WaitCode diagnose(const PoolState& state, const Shape& shape);

// One search: for one shape, in one state.
class Search {
 public:
  Search(const PoolState& state, const Shape& shape) : state_(state), shape_(shape) {}

  // On devices of one model and of the roles in `mask`; `new_roles` are those of them that
  // earlier stages had not.
  [[nodiscard]] std::vector<Slot> at_stage(ModelId model, std::uint8_t mask,
                                           std::uint8_t new_roles);

 private:
  [[nodiscard]] std::vector<Slot> ask(NodeId node, ModelId model, std::int32_t count,
                                      std::uint8_t roles);
  [[nodiscard]] bool gives_up() const;
  [[nodiscard]] std::vector<Slot> share_on_partial(ModelId model, Role role, Take take);
  [[nodiscard]] std::vector<Slot> on_whole(ModelId model, std::uint8_t mask, std::int32_t count);
  [[nodiscard]] std::vector<Slot> shares_on_node(ModelId model, std::uint8_t mask);

  // Training fills from the first node, inference from the last, so that they meet late.
  [[nodiscard]] bool from_last() const { return shape_.purpose == Purpose::inference; }
  [[nodiscard]] std::optional<std::uint32_t> first_of(const IdSet& set) const;
  [[nodiscard]] std::optional<std::uint32_t> next_of(const IdSet& set, std::uint32_t at) const;

  const PoolState& state_;
  const Shape& shape_;
  int refused_ = 0;
};

}  // namespace neap
