// Prices of what may run short: devices of a model that some demands insist on, and groups of
// wholly free devices that larger demands need. A price is the chance that the demand still to
// come exhausts the supply (Littlewood's rule), in tenths. Integers alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/rules/place/supply.h"

namespace neap::leftover {

// How many of the ten tenths the normal distribution's upper tail has at surplus/sqrt(variance).
[[nodiscard]] std::int32_t tenths_of_shortage(std::int64_t surplus, std::int64_t variance);

class Scarcity {
 public:
  // One kind of demand, with what it has asked for in all.
  struct Want {
    std::uint64_t models = 0;  // 0: any
    std::int32_t count = 0;
    std::int64_t milli = 0;
  };
  // `models_weigh`: how much the price of a model counts.
  Scarcity(std::span<const Want> wants, std::size_t models, std::int64_t models_weigh = 1);

  // Supply of a node that enters (sign 1) or leaves (sign -1) the books.
  void count(const Supply& node, int sign);
  // Anew, for so much demand to come.
  void refresh(std::int64_t milli_to_come);

  // Where tasks come and go, a model costs by the part of it that tasks hold in the long run which
  // insist on it, and by how much of what others take does not come back in time.
  void begin_lasting();  // with their share of all that is asked for, and all supply on the books
  // What tasks that insist on these models hold, or wait for, has grown by so much.
  void hold(std::uint64_t models, std::int64_t milli);
  void wait(std::uint64_t models, std::int64_t milli);
  // Anew, after another two-hundredth of the pool has been asked for. `residual_percent`: how long
  // what runs will still run, of a mean lifetime: 100 where nobody grows old, more where the few
  // that last hold most.
  void refresh_lasting(std::int64_t residual_percent);

  // In 1/10000 milli: of a demand on a node of this model with so many wholly free devices, of
  // which it opens `opened`.
  [[nodiscard]] std::int64_t price(std::uint8_t model, std::int32_t milli, std::int32_t unused,
                                   std::int32_t opened) const;

 private:
  struct ModelDemand {  // those that insist on one of these models
    std::uint64_t models = 0;
    std::int64_t part = 0;  // of all milli, in billionths
    std::int64_t held = 0;
    std::int64_t waiting = 0;
    std::int64_t usual = 0;  // of both together, on average
  };
  struct Group {  // those that want at least `count` whole devices of these models
    std::uint64_t models = 0;
    std::int32_t count = 0;
    std::int64_t part = 0;
    std::int32_t tenths = 0;  // the price
  };

  ModelDemand& insisting_on(std::uint64_t models);
  void refresh_models(std::int64_t milli_to_come);
  void refresh_groups(std::int64_t milli_to_come);

  std::int64_t models_weigh_;
  std::vector<ModelDemand> insistent_;
  std::vector<Group> groups_;
  std::vector<std::int64_t> capacity_;              // milli, by model
  std::vector<std::int64_t> free_;                  // likewise
  std::vector<std::int32_t> tenths_;                // the price, by model
  std::vector<std::int32_t> counts_;                // sizes of groups
  std::vector<std::vector<std::int64_t>> fitting_;  // groups that fit, by size, then model
};

}  // namespace neap::leftover
