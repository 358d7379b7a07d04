#include "backend/local/report.h"

#include <charconv>
#include <limits>

#include "backend/local/json.h"

namespace neap::local {
namespace {

constexpr std::string_view sequence_prefix = R"({"sequence":)";
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::size_t text_limit = 64 * 1024;

struct BodyWriter {
  JsonObject& out;

  void operator()(const Started& b) const {
    out.add("type", "started").add("pid", b.pid).add("not_enforced", b.not_enforced);
  }
  void operator()(const Ready&) const { out.add("type", "ready"); }
  void operator()(const Unready& b) const { out.add("type", "unready").add("reason", b.reason); }
  void operator()(const Hello& b) const {
    out.add("type", "hello").add("version", b.version).add("capabilities", b.capabilities);
  }
  void operator()(const Steps& b) const {
    out.add("type", "steps").add("last", b.last).add("count", b.count);
    out.add("busy_us", b.busy.value);
  }
  void operator()(const Checkpoint& b) const {
    out.add("type", "checkpoint").add("step", b.step).add("path", b.path).add("bytes", b.bytes);
    out.add("save_us", b.save.value).add("captured_us", b.captured.us);
    out.add("stall_us", b.stall.value);
  }
  void operator()(const Yielding& b) const { out.add("type", "yielding").add("step", b.step); }
  void operator()(const Exited& b) const {
    out.add("type", "exited").add("code", b.code).add("signal", b.signal);
    out.add("oom_kills", b.oom_kills).add("ended_us", b.ended.us);
    out.add("contract_faults", b.contract_faults).add("detail", b.detail);
  }
  void operator()(const StartFailed& b) const {
    out.add("type", "start_failed").add("reason", b.reason);
  }
  void operator()(const Lost& b) const { out.add("type", "lost").add("reason", b.reason); }
  void operator()(const ContractFault& b) const {
    out.add("type", "contract_fault").add("line", b.line).add("reason", b.reason);
  }
};

// Collects the fields of one body and keeps the first error.
class BodyReader {
 public:
  explicit BodyReader(const Json& object) : fields_(object, "") {}

  std::int64_t integer(std::string_view key) {
    return keep(fields_.integer(key, least, json_integer_max), std::int64_t{0});
  }
  std::int32_t small(std::string_view key) {
    const auto value = fields_.integer(key, std::numeric_limits<std::int32_t>::min(),
                                       std::numeric_limits<std::int32_t>::max());
    return static_cast<std::int32_t>(keep(value, std::int64_t{0}));
  }
  std::string text(std::string_view key) {
    return keep(fields_.string(key, text_limit), std::string());
  }
  std::vector<std::string> texts(std::string_view key) {
    return keep(fields_.strings(key, 256, text_limit), std::vector<std::string>());
  }
  void refuse(Error error) {
    if (!error_) error_ = std::move(error);
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  template <class T>
  T keep(const Result<T>& value, T otherwise) {
    if (value) return *value;
    refuse(value.error());
    return otherwise;
  }

  JsonFields fields_;
  std::optional<Error> error_;
};

ReportBody read_body(BodyReader& in) {
  const std::string type = in.text("type");
  if (type == "started") return Started{in.small("pid"), in.texts("not_enforced")};
  if (type == "ready") return Ready{};
  if (type == "unready") return Unready{in.text("reason")};
  if (type == "hello") return Hello{in.integer("version"), in.texts("capabilities")};
  if (type == "steps") {
    return Steps{in.integer("last"), in.integer("count"), Micros(in.integer("busy_us"))};
  }
  if (type == "checkpoint") {
    return Checkpoint{in.integer("step"),
                      in.text("path"),
                      in.integer("bytes"),
                      Micros(in.integer("save_us")),
                      Time(in.integer("captured_us")),
                      Micros(in.integer("stall_us"))};
  }
  if (type == "yielding") return Yielding{in.integer("step")};
  if (type == "exited") {
    return Exited{in.small("code"),
                  in.small("signal"),
                  in.integer("oom_kills"),
                  Time(in.integer("ended_us")),
                  in.integer("contract_faults"),
                  in.text("detail")};
  }
  if (type == "start_failed") return StartFailed{in.text("reason")};
  if (type == "lost") return Lost{in.text("reason")};
  if (type == "contract_fault") return ContractFault{in.integer("line"), in.text("reason")};
  in.refuse({ErrorCode::invalid_argument, "type: no report is called '" + type + "'", {}});
  return Ready{};
}

}  // namespace

std::string report_line(const Report& report) {
  JsonObject out;
  out.add("sequence", static_cast<std::int64_t>(report.sequence));
  out.add("epoch", static_cast<std::int64_t>(report.epoch));
  out.add("allocation", static_cast<std::int64_t>(report.allocation.value));
  out.add("at_us", report.at.us);
  std::visit(BodyWriter{out}, report.body);
  return out.line();
}

std::optional<std::uint64_t> sequence_of(std::string_view line) {
  if (!line.starts_with(sequence_prefix)) return std::nullopt;
  line.remove_prefix(sequence_prefix.size());
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc{} || end == line.data() + line.size() || *end != ',') {
    return std::nullopt;
  }
  return value;
}

Result<Report> parse_report_line(std::string_view line) {
  const Result<Json> json = parse_json(line);
  if (!json) return tl::unexpected(json.error());
  if (json->kind != Json::Kind::object) {
    return fail(ErrorCode::invalid_argument, "a report is a JSON object");
  }
  const JsonFields fields(*json, "");
  const auto sequence = fields.integer("sequence", 1, json_integer_max);
  if (!sequence) return tl::unexpected(sequence.error());
  const auto epoch = fields.integer("epoch", 0, std::numeric_limits<std::uint32_t>::max());
  if (!epoch) return tl::unexpected(epoch.error());
  const auto allocation = fields.integer("allocation", 0, json_integer_max);
  if (!allocation) return tl::unexpected(allocation.error());
  BodyReader in(*json);
  Report report;
  report.allocation = AllocationId(static_cast<std::uint64_t>(*allocation));
  report.epoch = static_cast<std::uint32_t>(*epoch);
  report.sequence = static_cast<std::uint64_t>(*sequence);
  report.at = Time(in.integer("at_us"));
  report.body = read_body(in);
  if (in.error()) return tl::unexpected(*in.error());
  return report;
}

}  // namespace neap::local
