// The openb trace of a GPU cluster (2023): nodes, pods, arrival orders, and task classes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "trace/csv.h"

namespace neap::trace {

struct OpenbNode {
  std::string name;
  std::int64_t cpu_milli = 0;
  MiB memory;
  std::int32_t gpus = 0;
  std::string model;  // empty without devices
};

struct OpenbPod {
  std::string name;
  std::int64_t cpu_milli = 0;
  MiB memory;
  std::int32_t gpus = 0;  // 0: CPU alone; then the two below say nothing
  MilliGpu each;          // of every device: 1 to 1000, and 1000 where gpus > 1
  std::string models;     // those allowed, split by '|'; empty: any
  // Seconds since the start of the trace, where the file has times.
  std::optional<std::int64_t> created_s;
  std::optional<std::int64_t> deleted_s;
};

// One seed's arrival order: rows of the pod file, some of them more than once, and all rows of
// the node file, where a node that stands earlier wins a tie.
struct OpenbOrder {
  std::int64_t seed = 0;
  std::vector<std::uint32_t> pods;
  std::vector<std::uint32_t> nodes;
};

struct OpenbClass {
  std::int64_t cpu_milli = 0;
  std::int32_t gpus = 0;
  MilliGpu each;
  std::string models;
  std::int64_t count = 0;
  double weight = 0;
};

class OpenbNodeReader {
 public:
  explicit OpenbNodeReader(Bytes bytes);
  [[nodiscard]] Result<bool> next(OpenbNode& into);  // false after the last row

 private:
  CsvReader rows_;
};

class OpenbPodReader {
 public:
  explicit OpenbPodReader(Bytes bytes);
  [[nodiscard]] Result<bool> next(OpenbPod& into);

 private:
  CsvReader rows_;
};

class OpenbClassReader {
 public:
  explicit OpenbClassReader(Bytes bytes);
  [[nodiscard]] Result<bool> next(OpenbClass& into);

 private:
  CsvReader rows_;
};

// How many rows of each file there are: what an order may name.
struct OpenbRows {
  std::uint32_t pods = 0;
  std::uint32_t nodes = 0;
};

// The order of one seed; not_found when the file has none. Every node must be named once.
[[nodiscard]] Result<OpenbOrder> read_openb_order(Bytes bytes, std::int64_t seed, OpenbRows rows);

}  // namespace neap::trace
