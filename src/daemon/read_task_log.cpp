#include "daemon/read_task_log.h"

#include <algorithm>
#include <utility>

#include "backend/local/task_log.h"

namespace neap::daemon {

Result<api::LogChunk> read_task_log(const std::string& directory, api::LogRange range) {
  std::int64_t offset = range.offset;
  if (offset < 0) {
    auto end = local::read_log(directory, 0, 0);
    if (!end) return tl::unexpected(end.error());
    offset = std::max<std::int64_t>(0, end->end + range.offset);
  }
  auto part = local::read_log(directory, offset, static_cast<std::size_t>(range.max_bytes));
  if (!part) return tl::unexpected(part.error());
  api::LogChunk chunk;
  chunk.next_offset = part->offset + static_cast<std::int64_t>(part->bytes.size());
  chunk.bytes = std::move(part->bytes);
  return chunk;
}

}  // namespace neap::daemon
