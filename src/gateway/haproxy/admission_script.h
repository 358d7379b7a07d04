// Admission inside the proxy: the program in Lua by which requests wait for a replica, and the
// figures that it goes by. HAProxy's own queue can neither be looked into by class nor give up a
// place; this one can, so that nothing of a class is refused while something of a lower one waits.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/result.h"
#include "gateway/gateway.h"

namespace neap::gateway {

// What neap computes anew each second, and the script goes by.
struct AdmissionFigures {
  double cost_per_second = 0;      // mu: what all ready replicas finish; 0: not known yet
  double requests_per_second = 0;  // the same in requests
  Micros longest_wait = seconds(60);
  Micros wake{0};  // expected from a first request to the first replica; 0: not known
  // Estimated tokens of an answer by class; 0: as the endpoint says.
  std::array<std::int64_t, class_count> output_tokens{};
  bool operator==(const AdmissionFigures&) const = default;
};

// What the script tells of a service; counts are since the worker began.
struct AdmissionCounts {
  std::array<std::int64_t, class_count> waiting{};  // by class
  std::array<std::uint64_t, class_count> shed{};
  std::uint64_t passed = 0;  // let through after a look; not those who met a free place
  double passed_cost = 0;
};

// The script with a line for each service: what it goes by from the start on.
[[nodiscard]] std::string render_admission(const std::vector<Endpoint>& endpoints,
                                           const std::map<std::string, AdmissionFigures>& figures);

// Commands to the running script, over the control socket.
[[nodiscard]] std::string set_figures_command(const std::string& service,
                                              const AdmissionFigures& figures);
inline constexpr std::string_view counts_command = "neap show";
[[nodiscard]] Result<std::map<std::string, AdmissionCounts>> read_counts(std::string_view answer);

// Name of the proxy's variable that holds how many wait, for the service at this place in the file.
[[nodiscard]] std::string waiting_variable(std::size_t place);

}  // namespace neap::gateway
