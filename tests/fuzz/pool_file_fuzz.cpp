// Any bytes as a pool file: a file as understood or problems with text, never both or neither.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/pool_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  neap::config::Problems problems("pool.yaml");
  const auto file = neap::config::parse_pool_file(text, problems);
  if (file.has_value() != problems.empty()) std::abort();
  if (!file && problems.text().empty()) std::abort();
  if (file && file->spec.total_gpus > 0 && file->spec.inference_guard_min > file->spec.total_gpus) {
    std::abort();
  }
  return 0;
}
