// The search for room, for place() and for what tells why there is none. For rules/place alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/id_set.h"
#include "core/rules/place.h"

namespace neap {

// Slots in the first of these stages that has room; empty: in none.
[[nodiscard]] std::vector<Slot> find_slots(const PoolState& state, const Shape& shape,
                                           const std::vector<std::uint8_t>& stages);

// What stands in the way of a shape for which place() finds no room.
[[nodiscard]] WaitCode diagnose(const PoolState& state, const Shape& shape);

// One search: for one shape, in one state.
class Search {
 public:
  Search(const PoolState& state, const Shape& shape) : state_(state), shape_(shape) {}

  // On devices of the roles in `mask`.
  [[nodiscard]] std::vector<Slot> at_stage(std::uint8_t mask);

 private:
  [[nodiscard]] bool is_share(ModelId model) const;
  [[nodiscard]] std::vector<std::vector<ModelId>> alike() const;
  [[nodiscard]] std::vector<Slot> on_any(const std::vector<ModelId>& models, std::uint8_t mask);
  [[nodiscard]] std::vector<Slot> on_best_ranked(const std::vector<ModelId>& models,
                                                 std::uint8_t mask);
  [[nodiscard]] std::vector<Slot> on_unranked(ModelId model, std::uint8_t mask);
  [[nodiscard]] std::vector<Slot> ask(NodeId node, ModelId model, std::int32_t count,
                                      std::uint8_t roles) const;

  // Training fills from the first node, inference from the last, so that they meet late.
  [[nodiscard]] bool from_last() const { return shape_.purpose == Purpose::inference; }
  [[nodiscard]] std::optional<std::uint32_t> first_of(const IdSet& set) const;
  [[nodiscard]] std::optional<std::uint32_t> next_of(const IdSet& set, std::uint32_t at) const;

  const PoolState& state_;
  const Shape& shape_;
};

}  // namespace neap
