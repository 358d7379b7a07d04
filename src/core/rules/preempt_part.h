// One part of a cover (preempt_cover.h): devices coupled by candidates that hold several of them,
// or a single device with several tenants.
#pragma once

#include <cstdint>
#include <vector>

#include "core/rules/preempt_cover.h"

namespace neap {

class PartSearch {
 public:
  struct Best {
    CoverValue value;
    std::int64_t lower = 0;
    std::vector<std::uint32_t> picks;  // candidates
    bool found = false;
  };

  // Devices first: candidates speak of them by the order in which they were added.
  std::uint32_t add_device(const Shortfall& lacks);
  void add_candidate(std::uint32_t candidate, std::int64_t price);
  void add_piece(std::uint32_t device, const Shortfall& frees);  // of the last candidate

  // Afterwards best()[j] is the cheapest way to make j devices fit, for j of 1 .. devices.
  void run(Cells& cells);
  [[nodiscard]] const std::vector<Best>& best() const { return best_; }
  [[nodiscard]] bool exact() const { return exact_; }

 private:
  struct Piece {
    std::uint32_t device = 0;
    Shortfall frees;
  };
  struct Item {
    std::uint32_t candidate = 0;
    std::int64_t price = 0, weight = 1;
    std::uint32_t first = 0, count = 0;
  };

  [[nodiscard]] bool all_needed() const;
  void take_all();
  void sort_by_density();
  void sum_suffixes();
  void descend(std::size_t at, CoverValue value, Cells& cells);
  [[nodiscard]] bool can_improve(std::size_t at, CoverValue value, std::size_t fitting) const;
  [[nodiscard]] std::int64_t fractional(std::size_t at, std::int64_t lacking) const;
  [[nodiscard]] std::size_t fitting() const;
  void record(std::size_t fitting, CoverValue value);
  void leave(const Item& item, std::int32_t sign);
  void choose_greedily();
  void bound_from_below();

  std::vector<Shortfall> lacks_;  // by device, less what is chosen
  std::vector<Item> items_;
  std::vector<Piece> pieces_;
  std::vector<Shortfall> suffix_;  // [item * devices + device]: freed by this item and later ones
  std::vector<std::uint32_t> chosen_;
  std::vector<Best> best_;
  bool by_share_ = true;  // what density is measured in, of the first device
  bool exact_ = true;
};

}  // namespace neap
