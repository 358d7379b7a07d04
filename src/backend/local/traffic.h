// Limits of what a task sends. Its packets are given a class by a program of the kernel (BPF) that
// belongs to its v2 control group, whatever the task itself sets on its sockets; an HTB queue
// on each interface holds every class to its rate. What neither says a class stays as it was.
// Arriving traffic is not limited: its sender has used the link already.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/result.h"

namespace neap::local {

inline constexpr std::uint32_t traffic_handle = 0x6e70;  // of neap's queues: "6e70:"
inline constexpr std::uint32_t traffic_class_min = 0x10;
inline constexpr std::uint32_t traffic_class_max = 0xfff0;
// A class without a limit: bytes a second that no interface reaches.
inline constexpr std::int64_t traffic_unlimited = 1'000'000'000'000;

// From now on the packets of all members of the v2 group are of this class. System calls only.
[[nodiscard]] Result<void> classify_traffic(const std::string& unified_directory,
                                            std::uint32_t traffic_class);

class TrafficShaper {
 public:
  // Runs tc with these arguments and gives back its output; tests take its place.
  using Run = std::function<Result<std::string>(const std::vector<std::string>&)>;

  explicit TrafficShaper(std::vector<std::string> interfaces, Run run = run_tc);

  [[nodiscard]] const std::vector<std::string>& interfaces() const { return interfaces_; }
  // Puts neap's queue on each interface. One that has a queue of someone else's is an error: that
  // is left alone.
  [[nodiscard]] Result<void> prepare() const;
  // Makes a class that no task on this machine has, of whichever pool.
  [[nodiscard]] Result<std::uint32_t> claim(std::int64_t bytes_per_second) const;
  [[nodiscard]] Result<void> set(std::uint32_t traffic_class, std::int64_t bytes_per_second) const;
  // Only once nobody sends in it any more: the number is given to the next.
  void remove(std::uint32_t traffic_class) const;

  [[nodiscard]] static Result<std::string> run_tc(const std::vector<std::string>& arguments);

 private:
  [[nodiscard]] Result<void> put(std::string_view verb, std::uint32_t traffic_class,
                                 std::int64_t bytes_per_second) const;

  std::vector<std::string> interfaces_;
  Run run_;
};

}  // namespace neap::local
