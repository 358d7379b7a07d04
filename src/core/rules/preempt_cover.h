// The combinatorial heart of preemption, free of pools and tasks: devices short of something,
// candidates that would free something on some of them at a price, and the cheapest candidates
// whose leaving makes a number of devices fit (POLICIES 1, "choosing a set").
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace neap {

// Costs stop here and stay: the saturated term of POLICIES 1.
inline constexpr std::int64_t saturated_cost = std::int64_t{1} << 62;
[[nodiscard]] constexpr std::int64_t add_saturated(std::int64_t a, std::int64_t b) {
  return a >= saturated_cost - b ? saturated_cost : a + b;  // both in 0..saturated_cost
}

// A count of operations, not a clock: the same on every machine.
class Cells {
 public:
  explicit Cells(std::int64_t limit) : left_(limit) {}
  void spend(std::int64_t n) { left_ -= n; }
  [[nodiscard]] bool spent() const { return left_ <= 0; }
  [[nodiscard]] std::int64_t left() const { return left_; }

 private:
  std::int64_t left_;
};

struct Shortfall {
  std::int64_t share = 0, memory = 0;  // milli-GPU and MiB; what is there to spare is negative
  std::int32_t strangers = 0;          // tenants of another trust domain, all of whom must leave
  [[nodiscard]] bool met() const { return share <= 0 && memory <= 0 && strangers <= 0; }
  void reduce(const Shortfall& freed) {
    share -= freed.share;
    memory -= freed.memory;
    strangers -= freed.strangers;
  }
};

struct CoverDevice {
  Shortfall lacks;
  bool usable = false;
};
struct CoverPiece {
  std::uint32_t device = 0;
  Shortfall frees;
};
struct CoverCandidate {
  std::int64_t price = 0;
  std::uint32_t first = 0, count = 0;  // its pieces, at most one a device
};

struct CoverProblem {
  std::vector<CoverDevice> devices;
  std::vector<CoverPiece> pieces;
  std::vector<CoverCandidate> candidates;
  void clear() {
    devices.clear();
    pieces.clear();
    candidates.clear();
  }
};

// Compared by price, then by the number of victims: so a cheapest cover has none to spare.
struct CoverValue {
  std::int64_t price = 0;
  std::int32_t victims = 0;
  auto operator<=>(const CoverValue&) const = default;
  [[nodiscard]] CoverValue plus(CoverValue o) const {
    return {add_saturated(price, o.price), victims + o.victims};
  }
};

struct Cover {
  bool feasible = false;
  std::int64_t price = 0;
  std::int64_t lower = 0;             // of any cover; equal to price when the search was exact
  std::vector<std::uint32_t> chosen;  // candidates, ascending
};

// Devices that share no candidate are independent: each such part gets its price for 1, 2, ..
// devices, and a dynamic program puts them together. A part is searched exactly while cells
// last, by greedy choice after that.
class CoverSolver {
 public:
  void solve(const CoverProblem& problem, std::int32_t devices, Cells& cells, Cover& out);

 private:
  // The price of making a number of devices of one part fit.
  struct Point {
    CoverValue value;
    std::int64_t lower = 0;
    std::uint32_t first_pick = 0, picks = 0;
  };
  struct Part {
    std::uint32_t first_point = 0;
    std::uint32_t devices = 0;
  };
  struct Entry {
    std::uint32_t candidate = 0, piece = 0;
  };

  std::int32_t sort_devices();  // finds the open ones; returns how many fit already
  void list_entries();
  void join_devices();
  void price_parts(Cells& cells);
  void price_alone(const CoverCandidate& candidate, std::uint32_t index, std::uint32_t devices);
  void combine(std::size_t need, Cover& out);
  [[nodiscard]] std::int64_t combine_lower(std::size_t need) const;
  [[nodiscard]] std::uint32_t root(std::uint32_t device);

  const CoverProblem* problem_ = nullptr;
  std::vector<Shortfall> freed_;           // by device, if all candidates left
  std::vector<std::uint32_t> open_;        // devices that then fit, and do not now
  std::vector<std::uint32_t> parent_;      // by device; `closed` for those that are not open
  std::vector<std::uint32_t> entry_ends_;  // by device, into entries_
  std::vector<Entry> entries_;             // of open devices, by device
  std::vector<Part> parts_;
  std::vector<Point> points_;
  std::vector<std::uint32_t> picks_;
  std::vector<CoverValue> best_;
  std::vector<std::uint32_t> choice_;
  bool exact_ = true;
};

}  // namespace neap
