#include "core/model/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace neap {

namespace {
std::atomic<std::uint64_t> current_sequence{0};
}

void set_check_sequence(std::uint64_t sequence) {
  current_sequence.store(sequence, std::memory_order_relaxed);
}

void check_failed(std::string_view condition, std::string_view file, int line) {
  std::fprintf(stderr, "neap: check failed at event %llu: %.*s (%.*s:%d)\n",
               static_cast<unsigned long long>(current_sequence.load(std::memory_order_relaxed)),
               static_cast<int>(condition.size()), condition.data(), static_cast<int>(file.size()),
               file.data(), line);
  std::abort();
}

}  // namespace neap
