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

// Where tasks come and go: what the pool has seen of it.
struct Outlook {
  std::int32_t load_percent = 100;  // device time asked for, of what there is
  // How long what runs will still run, of a mean lifetime: its mean age is the same. 100 where
  // lifetimes are exponential; several hundred where a few last much longer than most.
  std::int32_t residual_percent = 100;
};

// Its cells are what a price depends on: the model and, where wholly free devices are opened,
// how many there are.
class Scores {
 public:
  Scores(const LeftoverTable& table, Course course, std::span<const TaskKind> kinds,
         std::size_t models, Outlook outlook = {});

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
  // The prices, for so much demand to come, where the pool fills up.
  void refresh(std::int64_t milli_to_come) { scarcity_.refresh(milli_to_come); }
  // Where tasks come and go: once all supply is counted, and after another two-hundredth of the
  // pool has been asked for.
  void begin_lasting() { scarcity_.begin_lasting(); }
  void refresh_lasting() { scarcity_.refresh_lasting(outlook_.residual_percent); }
  // Such a demand holds devices, or waits: sign 1 when it begins, -1 when it ends.
  void hold(const Demand& demand, int sign) {
    scarcity_.hold(demand.models, std::int64_t{sign} * demand.milli());
  }
  void wait(const Demand& demand, int sign) {
    scarcity_.wait(demand.models, std::int64_t{sign} * demand.milli());
  }

 private:
  Outlook outlook_;
  Valuation valuation_;
  Scarcity scarcity_;
  std::uint32_t cells_;
};

}  // namespace neap::leftover
