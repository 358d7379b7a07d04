// Reads the numbers that a finished stage of a pipeline left in its metrics.json. What is there is
// the submitter's: it is bounded, and nothing but numbers is taken from it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/events.h"
#include "core/model/state.h"
#include "daemon/books.h"

namespace neap::daemon {

inline constexpr std::size_t metrics_bytes_max = 64 * 1024;

// The at_most of conditions: a metric and its bound, in millionths.
using UpperBounds = std::set<std::pair<std::string, std::int64_t>>;

// {"accuracy": 0.912, "loss": 0.31}: numbers in millionths, sorted by name; members that are no
// numbers are passed over. Rounded down, so that 0.8999999999 is not at least 0.9, but for what is
// above a bound of `at_most` by less than a millionth: that is one more, and not at most the bound.
// An error says what is wrong, and is the reason shown.
[[nodiscard]] Result<std::vector<Metric>> parse_metrics(std::string_view text,
                                                        const UpperBounds& at_most = {});
// Of a plain file of `owner`, not of a link or a pipe.
[[nodiscard]] Result<std::vector<Metric>> read_metrics(const std::string& path, std::uint32_t owner,
                                                       const UpperBounds& at_most = {});

// Posts MetricsRead for each stage that is asked for them: before the end of its task, so that the
// next stage takes its turn in that very moment; after it where that could not be.
class StageMetrics {
 public:
  StageMetrics(std::string artifacts, std::function<void(Event)> post)
      : artifacts_(std::move(artifacts)), post_(std::move(post)) {}

  // On the loop's thread: at the start, and each record once it is durable.
  void restore(const PoolState& state);
  void note(const PoolState& state, const Record& record);
  // A report that will be posted next; on the backend's thread.
  void before(const Event& report);

 private:
  struct Source {
    PipelineId pipeline;
    std::int32_t stage = 0;
    std::uint32_t owner = 0;
    std::string path;
    UpperBounds at_most;
  };
  void expect(const PoolState& state, const TaskState& task);
  void read_late(const PoolState& state);
  [[nodiscard]] std::string path_of(const PipelineState& pipeline, const StageState& stage) const;
  void read(const Source& source);

  std::string artifacts_;
  std::function<void(Event)> post_;
  std::mutex mutex_;
  std::map<AllocationId, Source> expected_;             // guarded by mutex_
  std::set<std::pair<PipelineId, std::int32_t>> read_;  // guarded by mutex_
};

// Removes the artefacts of pipelines that nobody remembers and no service uses.
void sweep_artifacts(const std::string& artifacts, const PoolState& state);

}  // namespace neap::daemon
