#include "journal/segment.h"

#include <cstring>

#include "journal/schema.h"

namespace neap::journal {
namespace {

void put(std::vector<std::byte>& to, Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

template <class Integer>
void put_integer(std::vector<std::byte>& to, Integer value) {
  put(to, std::as_bytes(std::span<const Integer>(&value, 1)));
}

bool read_row(const Statement& row, Segment& segment) {
  segment.number = static_cast<std::uint64_t>(row.column_int(0));
  segment.first = static_cast<std::uint64_t>(row.column_int(1));
  segment.last = static_cast<std::uint64_t>(row.column_int(2));
  segment.first_time = Time(row.column_int(3));
  segment.last_time = Time(row.column_int(4));
  segment.raw = row.column_int(9) != 0;
  const Bytes closing = row.column_blob(7);
  segment.closing.assign(closing.begin(), closing.end());
  return assign(segment.chain_before, row.column_blob(5)) &&
         assign(segment.chain_last, row.column_blob(6)) &&
         assign(segment.checksum, row.column_blob(8));
}

}  // namespace

ChainHash checksum_of(const Segment& segment, const ChainHash& checksum_before) {
  std::vector<std::byte> form;
  put(form, bytes_of(checksum_before));
  put_integer(form, segment.number);
  put_integer(form, segment.first);
  put_integer(form, segment.last);
  put_integer(form, segment.first_time.us);
  put_integer(form, segment.last_time.us);
  put(form, bytes_of(segment.chain_before));
  put(form, bytes_of(segment.chain_last));
  put(form, segment.closing);
  return hash_of(form);
}

Result<std::vector<Segment>> read_segments(Connection& connection) {
  auto query = connection.prepare(
      "SELECT number, first, last, first_time_us, last_time_us, chain_before, chain_last, closing,"
      " checksum, raw FROM segment ORDER BY number");
  if (!query) return tl::unexpected(std::move(query.error()));
  std::vector<Segment> segments;
  ChainHash before{};
  std::uint64_t next = 1;
  for (;;) {
    auto row = query->step();
    if (!row) return damaged(connection, next, "its segment: " + row.error().message);
    if (!*row) return segments;
    Segment segment;
    const bool well_formed = read_row(*query, segment);
    if (!well_formed || segment.number != segments.size() + 1 || segment.first != next ||
        segment.checksum != checksum_of(segment, before)) {
      return damaged(connection, next,
                     "sealed segment " + std::to_string(segments.size() + 1) +
                         " is missing or does not match its checksum");
    }
    before = segment.checksum;
    next = segment.last + 1;
    segments.push_back(std::move(segment));
  }
}

}  // namespace neap::journal
