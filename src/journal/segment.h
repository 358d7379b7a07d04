// Sealed segments: a stretch of records with what the ledger's balances were after it. The raw
// records may be dropped later; the segment's row stays.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/result.h"
#include "journal/record.h"
#include "journal/sqlite.h"

namespace neap::journal {

struct Segment {
  std::uint64_t number = 0;  // from 1
  std::uint64_t first = 0;   // sequences, both inside
  std::uint64_t last = 0;
  Time first_time;
  Time last_time;
  ChainHash chain_before{};
  ChainHash chain_last{};
  std::vector<std::byte> closing;  // closing balances, in the caller's own format
  ChainHash checksum{};            // over all above and the checksum of the segment before
  bool raw = true;                 // false: retention has dropped the records
};

[[nodiscard]] ChainHash checksum_of(const Segment& segment, const ChainHash& checksum_before);

// All segments in order, verified. An error names the segment and its range.
[[nodiscard]] Result<std::vector<Segment>> read_segments(Connection& connection);

}  // namespace neap::journal
