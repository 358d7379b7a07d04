// Any bytes as a task file: a file as understood or problems with text, never both or neither.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/fields.h"
#include "config/task_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  neap::config::Problems problems("task.yaml");
  const neap::config::Submitter submitter{{1000, 1000, "ada"}, "/jobs/ada"};
  auto file = neap::config::parse_task_file(text, submitter, problems);
  if (file.has_value() != problems.empty()) std::abort();
  if (!file) return problems.text().empty() ? (std::abort(), 0) : 0;
  const neap::Request& request = file->request();
  if (!neap::config::is_name(file->name()) || request.count < 1 || request.share.value < 1 ||
      request.share > neap::whole_device || request.memory.value < 0) {
    std::abort();
  }
  neap::PoolSpec pool;
  pool.tiers = {{"a", 1, neap::Purpose::batch}};
  const auto fitted = neap::config::fit_to_pool(pool, *file);
  if (!fitted && fitted.error().message.empty()) std::abort();
  return 0;
}
