// The pipeline file: one document with `pipeline:`, whose stages hold what task files hold. Every
// key is described in docs/operators/configuration.md, and a test compares the two.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/task_file.h"
#include "core/model/pipeline.h"

namespace neap::config {

struct PipelineFile {
  struct Stage {
    std::string name;
    std::vector<std::int32_t> after;
    std::vector<StageCondition> when;
    TaskFile work;
    int line = 0;
    std::map<std::string, int> lines;  // of the stage's own fields
  };
  std::string file;
  std::string name, team;
  Owner owner;
  std::vector<Stage> stages;
  int line = 0;

  // Where a field stands that the daemon names as "stages[2].gpus".
  [[nodiscard]] Problem place_of(std::string_view field) const;
  [[nodiscard]] PipelineSpec to_spec() const;
};

// What `neap submit` takes: a task or a service, or a pipeline of them.
using SubmittedFile = std::variant<TaskFile, PipelineFile>;
[[nodiscard]] std::optional<SubmittedFile> parse_submitted_file(std::string_view text,
                                                                const Submitter& submitter,
                                                                Problems& problems);

// As for task files, with "stages[2].gpus" as context.
[[nodiscard]] Result<void> fit_to_pool(const PoolSpec& pool, PipelineFile& file);

// All accepted keys but those of the stages' tasks and services.
[[nodiscard]] std::set<std::string> pipeline_file_keys();

}  // namespace neap::config
