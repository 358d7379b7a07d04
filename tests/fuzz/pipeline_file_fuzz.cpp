// Any bytes as what `neap submit` takes: a file as understood or problems with text, never both or
// neither; and a pipeline hangs together whatever was written.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "config/fields.h"
#include "config/pipeline_file.h"

namespace {

void check_pipeline(neap::config::PipelineFile& file) {
  if (file.stages.empty() || file.stages.size() > neap::most_stages) std::abort();
  for (std::size_t i = 0; i < file.stages.size(); ++i) {
    const auto& stage = file.stages[i];
    for (const std::int32_t before : stage.after) {
      if (before < 0 || static_cast<std::size_t>(before) >= i) std::abort();
    }
    for (const auto& condition : stage.when) {
      if (condition.metric.empty() || condition.stage < 0) std::abort();
    }
    if (!neap::config::is_name(stage.work.name())) std::abort();
    const std::string at = "stages[" + std::to_string(i) + "]";
    for (const char* field : {"", ".after", ".gpus", ".name", ".when.metric"}) {
      if (file.place_of(at + field).field.empty()) std::abort();
    }
  }
  neap::PoolSpec pool;
  pool.tiers = {{"a", 1, neap::Purpose::batch}};
  const auto fitted = neap::config::fit_to_pool(pool, file);
  if (!fitted && fitted.error().message.empty()) std::abort();
  if (file.to_spec().stages.size() != file.stages.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  neap::config::Problems problems("pipeline.yaml");
  const neap::config::Submitter submitter{{1000, 1000, "ada"}, "/jobs/ada"};
  auto file = neap::config::parse_submitted_file(text, submitter, problems);
  if (file.has_value() != problems.empty()) std::abort();
  if (!file) return problems.text().empty() ? (std::abort(), 0) : 0;
  if (auto* pipeline = std::get_if<neap::config::PipelineFile>(&*file)) check_pipeline(*pipeline);
  return 0;
}
