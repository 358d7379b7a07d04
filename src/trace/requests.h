// Recorded requests to language models.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"
#include "trace/csv.h"
#include "trace/lines.h"

namespace neap::trace {

struct Request {
  Time at;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::vector<std::int64_t> prefix;  // ids of blocks of the input that requests may share
};

// Azure's inference traces: TIMESTAMP, ContextTokens, GeneratedTokens.
class AzureReader {
 public:
  explicit AzureReader(Bytes bytes);
  [[nodiscard]] Result<bool> next(Request& into);  // false after the last row

 private:
  CsvReader rows_;
};

// One's own: arrival_s in seconds, and input_tokens and output_tokens where they are known; -1 in
// a request where they are not. The log of `neap load` is one.
class ArrivalReader {
 public:
  explicit ArrivalReader(Bytes bytes);
  [[nodiscard]] Result<bool> next(Request& into);

 private:
  CsvReader rows_;
};

// Mooncake's, one JSON object a line: timestamp in ms, input_length, output_length, hash_ids.
class MooncakeReader {
 public:
  explicit MooncakeReader(Bytes bytes);
  [[nodiscard]] Result<bool> next(Request& into);

 private:
  LineReader lines_;
};

}  // namespace neap::trace
