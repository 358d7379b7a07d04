// The task contract: one JSON object a line over the UNIX socket named by NEAP_SOCKET.
//
//   task -> pool  {"type":"hello","version":1,"capabilities":["checkpoint","yield"]}
//                 {"type":"step","n":7,"count":1,"seconds":0.12}              count: 1 if absent
//                 {"type":"checkpoint","step":7,"path":"/x/y","bytes":1,"seconds":0.5,
//                  "captured_us":1,"stall_seconds":0.1}                       last two may lack
//                 {"type":"yielding","step":7}
//   pool -> task  {"type":"checkpoint","by":US}  {"type":"yield","at":"boundary"|"now","by":US}
//                 {"type":"cancel"}   the yield is not needed any more, go on
//
// `by` is in µs since the Unix epoch, and lacks when there is no hurry. Fields that are not known
// are ignored, so that a newer SDK speaks to an older pool; types that are not known are faults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"

namespace neap::local {

inline constexpr std::size_t contract_line_limit = 64 * 1024;

struct HelloMessage {
  std::int64_t version = 0;
  std::vector<std::string> capabilities;
};
struct StepMessage {
  std::int64_t n = 0;
  std::int64_t count = 1;
  Micros busy;
};
struct CheckpointMessage {
  std::int64_t step = 0;
  std::string path;
  std::int64_t bytes = 0;
  Micros save;
  std::optional<Time> captured;
  Micros stall;
};
struct YieldingMessage {
  std::int64_t step = 0;
};
using ContractMessage = std::variant<HelloMessage, StepMessage, CheckpointMessage, YieldingMessage>;

[[nodiscard]] Result<ContractMessage> parse_contract_line(std::string_view line);

enum class YieldAt : std::uint8_t { boundary, now };

// Lines to the task, with their line feed.
[[nodiscard]] std::string checkpoint_request(Time by);
[[nodiscard]] std::string yield_request(YieldAt at, Time by);
[[nodiscard]] std::string cancel_request();

// Splits a byte stream into lines. A line beyond the limit is dropped up to its line feed and
// comes out once, marked; memory stays bounded by the limit plus one fed chunk.
class LineSplitter {
 public:
  struct Line {
    std::int64_t number = 0;  // from 1
    std::string_view text;    // valid until the next feed()
    bool too_long = false;
  };

  explicit LineSplitter(std::size_t limit) : limit_(limit) {}

  void feed(std::string_view bytes);
  [[nodiscard]] std::optional<Line> next();

 private:
  std::size_t limit_;
  std::string buffer_;
  std::size_t begin_ = 0;    // of the first line not yet given out
  std::size_t scanned_ = 0;  // no line feed before it
  std::int64_t lines_ = 0;
  bool dropping_ = false;
};

}  // namespace neap::local
