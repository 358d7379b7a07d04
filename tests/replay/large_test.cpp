// F9: an input far larger than memory allows is read in a few megabytes.
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "trace/openb.h"
#include "trace/testing/gzip.h"

namespace neap::trace {
namespace {

std::int64_t peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Large, F9_memory_does_not_grow_with_the_input) {
  constexpr std::int64_t rows_a_block = 20'000;
  std::string rows;
  for (std::int64_t r = 0; r < rows_a_block; ++r) {
    rows += "openb-pod-" + std::to_string(r) + ",12000,16384,1,1000,T4|P100\n";
  }
  // 64 MB, and 2 GB in a long run.
  const std::int64_t bytes = std::getenv("NEAP_LONG") == nullptr ? 64'000'000 : 2'000'000'000;
  const std::int64_t blocks = bytes / static_cast<std::int64_t>(rows.size()) + 1;
  std::string compressed = gzipped("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n");
  const std::string block = gzipped(rows);
  for (std::int64_t b = 0; b < blocks; ++b) compressed += block;
  OpenbPodReader reader(bytes_of("large", std::move(compressed)));
  OpenbPod pod;
  ASSERT_TRUE(reader.next(pod).value());
  const std::int64_t before = peak_kib();
  std::int64_t count = 1;
  while (true) {
    const auto more = reader.next(pod);
    ASSERT_TRUE(more) << to_string(more.error());
    if (!*more) break;
    ++count;
  }
  EXPECT_EQ(count, blocks * rows_a_block);
  // Sanitizers keep what is freed for a while.
  EXPECT_LT(peak_kib() - before, 16 * 1024);
}

}  // namespace
}  // namespace neap::trace
