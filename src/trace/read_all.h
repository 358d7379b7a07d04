// All rows of a reader, for inputs that are kept in memory as a whole.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/model/result.h"
#include "trace/bytes.h"

namespace neap::trace {

inline constexpr std::size_t most_rows = 20'000'000;

template <class Row, class Reader>
[[nodiscard]] Result<std::vector<Row>> read_all(Reader reader, std::size_t limit = most_rows) {
  std::vector<Row> rows;
  while (true) {
    Row row;
    const auto more = reader.next(row);
    if (!more) return tl::unexpected(more.error());
    if (!*more) return rows;
    if (rows.size() == limit) {
      return fail(ErrorCode::too_large, "more than " + std::to_string(limit) + " rows");
    }
    rows.push_back(std::move(row));
  }
}

template <class Row, class Reader>
[[nodiscard]] Result<std::vector<Row>> read_file(const std::string& path,
                                                 std::size_t limit = most_rows) {
  auto bytes = open_bytes(path);
  if (!bytes) return tl::unexpected(bytes.error());
  return read_all<Row>(Reader(std::move(*bytes)), limit);
}

}  // namespace neap::trace
