// Lines of the task contract and of the control socket, as any process might write them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backend/local/contract.h"
#include "backend/local/control.h"
#include "backend/local/json.h"
#include "backend/local/report.h"

namespace {

using namespace neap::local;

void require(bool condition) {
  if (!condition) std::abort();
}

// What a parser accepts, its writer must write so that it is accepted again, unchanged.
void round_trips(std::string_view line) {
  if (const auto report = parse_report_line(line)) {
    const std::string written = report_line(*report);
    const auto again = parse_report_line(written);
    require(again.has_value());
    require(report_line(*again) == written);
    require(sequence_of(written) == report->sequence);
  }
  if (const auto command = parse_control_line(line)) {
    std::string written = control_line(*command);
    written.pop_back();
    require(parse_control_line(written).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The first byte chooses the chunks; the lines must not depend on them.
  const std::size_t chunk = size == 0 ? 1 : data[0] % 16 + 1;
  LineSplitter whole(64);
  LineSplitter parts(64);
  whole.feed(text);
  for (std::size_t at = 0; at < size; at += chunk) {
    parts.feed(text.substr(at, chunk));
    while (const auto line = parts.next()) {
      const auto same = whole.next();
      require(same.has_value() && same->text == line->text && same->number == line->number &&
              same->too_long == line->too_long);
    }
  }
  require(!whole.next().has_value());
  (void)parse_contract_line(text);
  round_trips(text);
  std::string quoted;
  append_json_string(quoted, text);
  require(parse_json(quoted).has_value());
  return 0;
}
