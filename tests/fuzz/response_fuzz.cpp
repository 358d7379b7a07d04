// Any bytes as the answer to a request of `neap load`: the same whether whole or in pieces.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "load/response_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using neap::load::ResponseReader;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ResponseReader whole;
  const std::int32_t events = whole.feed(text).events;
  whole.end();
  ResponseReader pieces;
  std::int32_t in_pieces = 0;
  for (const char& c : text) in_pieces += pieces.feed({&c, 1}).events;
  pieces.end();
  if (whole.state() != pieces.state() || whole.status() != pieces.status()) std::abort();
  if (events != in_pieces || whole.retry_after() != pieces.retry_after()) std::abort();
  if (whole.completion_tokens().value_or(0) < 0) std::abort();
  return 0;
}
