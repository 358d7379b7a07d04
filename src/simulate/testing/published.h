// The published files and results, where NEAP_TRACES says they are.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simulate/openb/protocol.h"
#include "simulate/openb/workload.h"
#include "trace/bytes.h"
#include "trace/openb.h"

namespace neap::simulate {

struct Published {
  std::string folder;

  [[nodiscard]] static std::optional<Published> here() {
    const char* traces = std::getenv("NEAP_TRACES");
    if (traces == nullptr) return {};
    return Published{std::string(traces) + "/openb/"};
  }

  [[nodiscard]] Workload workload(const std::string& trace) const {
    auto read = read_workload(folder + "openb_node_list_gpu_node.csv",
                              folder + "openb_pod_list_" + trace + ".csv");
    EXPECT_TRUE(read) << to_string(read.error());
    return std::move(*read);
  }

  [[nodiscard]] trace::OpenbOrder order(const std::string& trace, std::int64_t seed,
                                        const Workload& workload) const {
    auto bytes = trace::open_bytes(folder + "orders/" + trace + ".txt.gz");
    EXPECT_TRUE(bytes) << to_string(bytes.error());
    auto order = trace::read_openb_order(std::move(*bytes), seed,
                                         {static_cast<std::uint32_t>(workload.pods.size()),
                                          static_cast<std::uint32_t>(workload.nodes.size())});
    EXPECT_TRUE(order) << to_string(order.error());
    return std::move(*order);
  }

  // The allocated percents of a published run: by trace, policy ("06-FGD") and seed.
  using Key = std::tuple<std::string, std::string, std::int64_t>;
  [[nodiscard]] std::map<Key, std::vector<double>> curves() const {
    std::map<Key, std::vector<double>> all;
    std::ifstream file(folder + "reference_alloc_by_seed.csv");
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::vector<std::string> row;
      for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
      std::vector<double>& curve =
          all[{row[0].substr(std::string("openb_pod_list_").size()), row[1], std::stoll(row[3])}];
      for (std::size_t i = 5; i < row.size(); ++i) curve.push_back(std::stod(row[i]));
    }
    return all;
  }
};

}  // namespace neap::simulate
