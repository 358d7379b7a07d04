// Any bytes as the recorded use of a cluster, and as the three numbers of a comparison: an
// assessment that never saves more than there is, or an error with text. The first byte says how
// long a slot is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cli/assess.h"
#include "simulate/assess/assess.h"

namespace {

using namespace neap;

void check(const Error& error) {
  if (error.message.empty()) std::abort();
}

void assess_it(const assess::UseTrace& trace) {
  for (const std::int64_t milli : trace.milli) {
    if (milli < 0 || milli > assess::most_use_devices * 1'000) std::abort();
  }
  constexpr std::size_t most_slots = 2'000;
  assess::UseTrace first = trace;
  if (first.milli.size() > most_slots) first.milli.resize(most_slots);
  const auto found = assess::assess({}, first, first);
  if (!found) return check(found.error());
  if (found->saved < 0 || found->together < 1 || found->saved + found->together != found->apart ||
      found->verdict.empty()) {
    std::abort();
  }
}

void compare_it(const std::string& text) {
  const auto document = cli::Value::parse(text);
  if (!document) return check(document.error());
  const auto numbers = cli::three_numbers(*document);
  if (!numbers) return check(numbers.error());
  const auto found = assess::compare({}, *numbers, *numbers);
  if (!found) return check(found.error());
  if (found->outcome != assess::Outcome::no_change) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr std::int64_t slots[] = {1, 5, 10, 30, 60};
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto trace =
      assess::read_use(trace::bytes_of("use.csv", text), minutes(slots[data[0] % 5]));
  if (trace) {
    assess_it(*trace);
  } else {
    check(trace.error());
  }
  compare_it(text);
  return 0;
}
