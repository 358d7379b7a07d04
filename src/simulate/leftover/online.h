// neap's own placement when nothing is known beforehand: by fragmentation gradient descent on what
// has been seen, until that is enough to learn from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "simulate/leftover/neap_policy.h"
#include "simulate/openb/policy.h"

namespace neap::simulate {

class OnlinePolicy : public Policy {
 public:
  // Of the workload it is told the nodes, and the numbers of shapes.
  OnlinePolicy(Course course, const Workload& workload, PolicyOptions options);

  std::optional<Choice> choose(const Cluster& cluster, const Pod& pod) override;
  void changed(const Cluster& cluster, std::uint32_t node) override;
  void meanwhile(const Cluster& cluster) override;

 private:
  void start_anew(const Cluster& cluster);

  Course course_;
  const Workload& workload_;
  PolicyOptions options_;
  std::vector<Pod> seen_;
  std::int64_t arrived_ = 0;  // milli
  std::size_t anew_at_ = 0;   // arrivals
  std::unique_ptr<Policy> current_;
};

}  // namespace neap::simulate
