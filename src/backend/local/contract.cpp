#include "backend/local/contract.h"

#include <limits>

#include "backend/local/json.h"

namespace neap::local {
namespace {

constexpr std::int64_t most_steps = 1'000'000'000'000;

Result<ContractMessage> read_hello(const JsonFields& fields) {
  const auto version = fields.integer("version", 1, 1'000);
  if (!version) return tl::unexpected(version.error());
  HelloMessage message{*version, {}};
  if (fields.has("capabilities")) {
    auto capabilities = fields.strings("capabilities", 32, 64);
    if (!capabilities) return tl::unexpected(capabilities.error());
    message.capabilities = std::move(*capabilities);
  }
  return message;
}

Result<ContractMessage> read_step(const JsonFields& fields) {
  const auto n = fields.integer("n", 0, most_steps);
  if (!n) return tl::unexpected(n.error());
  const auto count = fields.integer_or("count", 1, 1'000'000, 1);
  if (!count) return tl::unexpected(count.error());
  const auto busy = fields.seconds_us("seconds");
  if (!busy) return tl::unexpected(busy.error());
  return StepMessage{*n, *count, Micros(*busy)};
}

Result<ContractMessage> read_checkpoint(const JsonFields& fields) {
  const auto step = fields.integer("step", 0, most_steps);
  if (!step) return tl::unexpected(step.error());
  auto path = fields.string("path", 4096);
  if (!path) return tl::unexpected(path.error());
  // It becomes a variable of the next start: a text for C.
  if (!path->starts_with('/') || path->find('\0') != std::string::npos) {
    return fail(ErrorCode::invalid_argument, "path: expected an absolute path");
  }
  const auto bytes = fields.integer("bytes", 0, json_integer_max);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto save = fields.seconds_us("seconds");
  if (!save) return tl::unexpected(save.error());
  CheckpointMessage message{*step, std::move(*path), *bytes, Micros(*save), std::nullopt, {}};
  if (fields.has("captured_us")) {
    const auto captured = fields.integer("captured_us", 0, json_integer_max);
    if (!captured) return tl::unexpected(captured.error());
    message.captured = Time(*captured);
  }
  if (fields.has("stall_seconds")) {
    const auto stall = fields.seconds_us("stall_seconds");
    if (!stall) return tl::unexpected(stall.error());
    message.stall = Micros(*stall);
  }
  return message;
}

}  // namespace

Result<ContractMessage> parse_contract_line(std::string_view line) {
  if (line.size() > contract_line_limit) {
    return fail(ErrorCode::too_large, "longer than 65536 bytes");
  }
  const Result<Json> json = parse_json(line);
  if (!json) return tl::unexpected(json.error());
  if (json->kind != Json::Kind::object) {
    return fail(ErrorCode::invalid_argument, "expected a JSON object");
  }
  const JsonFields fields(*json, "");
  const auto type = fields.string("type", 64);
  if (!type) return tl::unexpected(type.error());
  if (*type == "hello") return read_hello(fields);
  if (*type == "step") return read_step(fields);
  if (*type == "checkpoint") return read_checkpoint(fields);
  if (*type == "yielding") {
    const auto step = fields.integer("step", 0, most_steps);
    if (!step) return tl::unexpected(step.error());
    return YieldingMessage{*step};
  }
  return fail(ErrorCode::invalid_argument,
              "type: expected hello, step, checkpoint or yielding, not '" + *type + "'");
}

std::string checkpoint_request(Time by) {
  JsonObject out;
  out.add("type", "checkpoint");
  if (by != Time::never()) out.add("by", by.us);
  return out.line() + "\n";
}

std::string yield_request(YieldAt at, Time by) {
  JsonObject out;
  out.add("type", "yield").add("at", at == YieldAt::now ? "now" : "boundary");
  if (by != Time::never()) out.add("by", by.us);
  return out.line() + "\n";
}

std::string cancel_request() { return JsonObject().add("type", "cancel").line() + "\n"; }

void LineSplitter::feed(std::string_view bytes) {
  buffer_.erase(0, begin_);
  scanned_ -= begin_;
  begin_ = 0;
  buffer_.append(bytes);
}

std::optional<LineSplitter::Line> LineSplitter::next() {
  for (;;) {
    const std::size_t end = buffer_.find('\n', scanned_);
    if (end == std::string::npos) {
      if (buffer_.size() - begin_ > limit_ || dropping_) {
        // The rest of this line is of no use: forget what is here, remember that it goes on.
        dropping_ = true;
        begin_ = buffer_.size();
      }
      scanned_ = buffer_.size();
      return std::nullopt;
    }
    const std::string_view text(buffer_.data() + begin_, end - begin_);
    const bool too_long = dropping_ || text.size() > limit_;
    dropping_ = false;
    begin_ = scanned_ = end + 1;
    ++lines_;
    return Line{lines_, too_long ? std::string_view() : text, too_long};
  }
}

}  // namespace neap::local
