// CHECK guards against bugs, in every build. A failed check ends the process: after a broken
// invariant nothing that follows can be trusted, and the journal holds all that happened before.
#pragma once

#include <cstdint>
#include <string_view>

namespace neap {

// The sequence number printed by a failed check; the engine sets it with each event.
void set_check_sequence(std::uint64_t sequence);

[[noreturn]] void check_failed(std::string_view condition, std::string_view file, int line);

}  // namespace neap

#define NEAP_CHECK(condition)                               \
  do {                                                      \
    if (!(condition)) [[unlikely]]                          \
      ::neap::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
