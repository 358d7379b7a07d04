// The escalation ladder (B7): which rung of isolation stands between a service and its neighbours,
// for the resource that the diagnosis names; up when it is slow, back when it is not needed any
// more. Pure: time and verdicts come in, moves go out; who carries them out is elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/units.h"
#include "measure/diagnosis.h"

namespace neap::measure {

enum class Rung : std::uint8_t { none, flow, quota, partition, dedicate };
[[nodiscard]] std::string_view name_of(Rung rung);

struct LadderOptions {
  Micros confirm = seconds(15);  // named for so long before the first rung
  Micros settle = seconds(15);   // what a rung is given to show what it does
  Micros calm = minutes(5);      // quiet for so long before a rung is taken back, at first
  Micros calm_max = hours(1);    // twice as long each time that it proved to be needed still
  Micros relapse = minutes(1);   // slow again so soon after a rung was taken back: it was needed
};

struct LadderMove {
  Time at;
  Rung from{}, to{};
  Resource resource{};
  std::string neighbour;
  std::string why;  // with the evidence, as people read it
  bool relapse = false;
};

class Ladder {
 public:
  Ladder() : Ladder(LadderOptions{}) {}
  explicit Ladder(LadderOptions options) : options_(options), calm_needed_(options.calm) {}

  // The verdict of a window. Gives the move that is due, and again with each look until moved() or
  // impossible().
  [[nodiscard]] std::optional<LadderMove> look(Time now, const Diagnosis& verdict);
  // It was carried out.
  void moved(const LadderMove& move);
  // It cannot be carried out here (and why): the next rung is tried in its place.
  void impossible(const LadderMove& move, std::string why);
  // Nobody is left to be kept away.
  void reset();

  [[nodiscard]] Rung rung() const { return rung_; }
  [[nodiscard]] Resource resource() const { return resource_; }
  [[nodiscard]] Micros calm_needed() const { return calm_needed_; }
  // Why the next rungs are not there, by name.
  [[nodiscard]] const std::vector<std::string>& closed() const { return closed_; }

 private:
  [[nodiscard]] std::optional<LadderMove> up(Time now, const Diagnosis& verdict) const;
  [[nodiscard]] std::optional<Rung> next_above() const;
  [[nodiscard]] Rung next_below() const;
  [[nodiscard]] bool is_closed(Rung rung) const;

  LadderOptions options_;
  Rung rung_ = Rung::none;
  Resource resource_ = Resource::none;
  Micros calm_needed_;
  std::optional<Time> bad_since_;
  std::optional<Time> calm_since_;
  std::optional<Time> moved_at_;
  std::optional<Time> eased_at_;  // the last step back
  std::vector<Rung> shut_;
  std::vector<std::string> closed_;
};

// Can a rung of this resource be taken by limits of the host at all? Devices are partitioned and
// dedicated by whoever runs the pool.
[[nodiscard]] bool has_rungs(Resource resource);

}  // namespace neap::measure
