// Any bytes as what the proxy writes: records with bounded words that no terminal obeys.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gateway/haproxy/records.h"
#include "measure/latency_book.h"

namespace {

bool harmless(std::string_view word) {
  return word.size() <= 128 &&
         std::ranges::all_of(word, [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace neap;
  gateway::LineCutter cutter;
  measure::LatencyBook book;
  std::uint64_t records = 0;
  cutter.feed({reinterpret_cast<const char*>(data), size}, [&](std::string_view line) {
    const auto record = gateway::parse_record(line);
    if (!record) return;
    for (const auto& word :
         {record->priority_class, record->team, record->model, record->request_id}) {
      if (!harmless(word)) std::abort();
    }
    if (record->queued < Micros(0) || record->total < Micros(0)) std::abort();
    book.add("chat", gateway::seen_of(*record));
    ++records;
  });
  if (book.requests("chat") != records) std::abort();
  return 0;
}
