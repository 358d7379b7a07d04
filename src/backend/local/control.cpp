#include "backend/local/control.h"

#include <limits>

#include "backend/local/json.h"

namespace neap::local {
namespace {

struct Writer {
  JsonObject out;

  void operator()(const ResumeAfter& c) {
    out.add("resume_after", static_cast<std::int64_t>(c.sequence));
  }
  void operator()(const Acknowledge& c) {
    out.add("command", "ack").add("sequence", static_cast<std::int64_t>(c.sequence));
  }
  void operator()(const RequestCheckpoint& c) {
    out.add("command", "checkpoint").add("by_us", c.by.us);
  }
  void operator()(const RequestYield& c) {
    out.add("command", "yield").add("at", c.at == YieldAt::now ? "now" : "boundary");
    out.add("by_us", c.by.us);
  }
  void operator()(const WithdrawYieldRequest&) { out.add("command", "withdraw"); }
  void operator()(const Drain&) { out.add("command", "drain"); }
  void operator()(const Terminate& c) {
    out.add("command", "terminate").add("kill_at_us", c.kill_at.us);
  }
  void operator()(const Kill&) { out.add("command", "kill"); }
};

Result<ControlCommand> read_command(const std::string& command, const JsonFields& fields) {
  const auto time = [&](std::string_view key) {
    return fields.integer_or(key, 0, json_integer_max, json_integer_max);
  };
  if (command == "ack") {
    const auto sequence = fields.integer("sequence", 0, json_integer_max);
    if (!sequence) return tl::unexpected(sequence.error());
    return Acknowledge{static_cast<std::uint64_t>(*sequence)};
  }
  if (command == "checkpoint" || command == "yield") {
    const auto by = time("by_us");
    if (!by) return tl::unexpected(by.error());
    if (command == "checkpoint") return RequestCheckpoint{Time(*by)};
    const std::string at = fields.string("at", 16).value_or("");
    if (at != "now" && at != "boundary") {
      return fail(ErrorCode::invalid_argument, "at: expected now or boundary");
    }
    return RequestYield{at == "now" ? YieldAt::now : YieldAt::boundary, Time(*by)};
  }
  if (command == "terminate") {
    const auto kill_at = time("kill_at_us");
    if (!kill_at) return tl::unexpected(kill_at.error());
    return Terminate{Time(*kill_at)};
  }
  if (command == "withdraw") return WithdrawYieldRequest{};
  if (command == "drain") return Drain{};
  if (command == "kill") return Kill{};
  return fail(ErrorCode::invalid_argument,
              "command: expected ack, checkpoint, yield, withdraw, drain, terminate or kill");
}

}  // namespace

std::string control_line(const ControlCommand& command) {
  Writer writer;
  std::visit(writer, command);
  return writer.out.line() + "\n";
}

Result<ControlCommand> parse_control_line(std::string_view line) {
  const auto json = parse_json(line);
  if (!json) return tl::unexpected(json.error());
  if (json->kind != Json::Kind::object) {
    return fail(ErrorCode::invalid_argument, "expected a JSON object");
  }
  const JsonFields fields(*json, "");
  if (fields.has("resume_after")) {
    const auto sequence = fields.integer("resume_after", 0, json_integer_max);
    if (!sequence) return tl::unexpected(sequence.error());
    return ResumeAfter{static_cast<std::uint64_t>(*sequence)};
  }
  const auto command = fields.string("command", 32);
  if (!command) return tl::unexpected(command.error());
  return read_command(*command, fields);
}

}  // namespace neap::local
