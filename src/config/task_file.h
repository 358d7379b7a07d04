// The task file: one document with `task:` or `service:`. Every key is described in
// docs/operators/configuration.md, and a test compares the two.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "config/fields.h"
#include "config/launch.h"
#include "config/problem.h"
#include "core/model/spec.h"

namespace neap::config {

// Who submits, and the folder that relative paths start from.
struct Submitter {
  Owner owner;
  std::string workdir;
};

struct TaskFile {
  std::string file;
  std::variant<TaskSpec, ServiceSpec> spec;  // owner and launch filled in
  Launch launch;
  // What the tier must be for; empty when the file gives a tier alone.
  std::optional<Purpose> purpose;
  bool auto_gpus = false;            // `gpus: auto`: as many as the memory of its model needs
  std::map<std::string, int> lines;  // of each field given, by its path under task or service

  // What the file leaves open and the profile of its type may give: a set of Learned.
  [[nodiscard]] std::uint8_t open_fields() const;
  [[nodiscard]] bool is_service() const { return std::holds_alternative<ServiceSpec>(spec); }
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const Request& request() const;
  // Line of a field or of the nearest section around it; 0 when none was given.
  [[nodiscard]] int line_of(std::string_view field) const;
  // The field with the section it stands in: "gpu.memory" is "task.gpu.memory".
  [[nodiscard]] std::string path_of(std::string_view field) const;
};

// What a stage of a pipeline (pipeline_file.h) does not say itself.
struct StageDefaults {
  std::string task_name;
  std::string team;
};
// The section `task:` or `service:` of a stage, whose fields are `stage` and whose tree is `node`.
[[nodiscard]] TaskFile read_stage_work(Fields& stage, const Node& node, const Submitter& submitter,
                                       const StageDefaults& defaults);

// The file as understood, or nothing when `problems` has gained an entry.
[[nodiscard]] std::optional<TaskFile> parse_task_file(std::string_view text,
                                                      const Submitter& submitter,
                                                      Problems& problems);

// What only the pool can tell: fills in the tier and the checkpoint interval when the file gives
// none, and refuses an unknown tier, one of another kind of work, and a request for more devices
// than the pool has, with the field under task or service as context. The daemon calls it when a
// file is submitted.
[[nodiscard]] Result<void> fit_to_pool(const PoolSpec& pool, TaskFile& file);

// All accepted keys, as "task.gpu.memory" or "service.replicas.min".
[[nodiscard]] std::set<std::string> task_file_keys();

}  // namespace neap::config
