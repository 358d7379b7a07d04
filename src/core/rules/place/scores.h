// neap's own placement: a task goes where the expected leftover falls most, less the price of
// what may run short. Integers alone. docs/decisions/0008 has the reasons and the figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/rules/place/best_nodes.h"
#include "core/rules/place/leftover_table.h"
#include "core/rules/place/scarcity.h"
#include "core/rules/place/supply.h"
#include "core/rules/place/valuation.h"

namespace neap::leftover {

// A pool that fills up and is done, as in the published experiment, or one where tasks come and
// go. What may run short is reckoned until as much has arrived as the pool holds; or for as much
// as the pool holds from now on, which is about what arrives before all that runs has ended.
enum class Course : std::uint8_t { filling, lasting };

// Its cells are what a price depends on: the model and, where wholly free devices are opened,
// how many there are.
class Scores {
 public:
  Scores(const LeftoverTable& table, Course course, std::span<const TaskKind> kinds,
         std::size_t models);

  [[nodiscard]] std::int64_t potential_of(const Supply& node) const {
    return potential(valuation_, node);
  }
  // Of a demand that fits there; `before` is the node's potential.
  [[nodiscard]] Grade grade(const Supply& node, std::int64_t before, const Demand& demand) const;
  // The devices of which grade() speaks.
  [[nodiscard]] DeviceMask devices(const Supply& node, std::int64_t before,
                                   const Demand& demand) const;
  [[nodiscard]] std::int64_t price(const Demand& demand, std::uint32_t cell) const;
  [[nodiscard]] std::uint32_t cells() const { return cells_; }

  // Supply of a node that enters (sign 1) or leaves (sign -1) the books.
  void count(const Supply& node, int sign) { scarcity_.count(node, sign); }
  // The prices, for so much demand to come.
  void refresh(std::int64_t milli_to_come) { scarcity_.refresh(milli_to_come); }

 private:
  Valuation valuation_;
  Scarcity scarcity_;
  std::uint32_t cells_;
};

}  // namespace neap::leftover
