#include "trace/workload.h"

#include <string_view>
#include <utility>
#include <vector>

#include "trace/json_line.h"

namespace neap::trace {

namespace {

constexpr std::int64_t version = 1;
constexpr Range any_time{0, INT64_MAX / 4};
constexpr Range any_count{0, 1'000'000'000};
constexpr Range any_memory{0, std::int64_t{1} << 40U};
constexpr std::size_t longest_name = 256;

const std::vector<std::string_view> job_members = {
    "at_us",      "kind",        "name",  "gpus",   "gpu_milli",  "cpu_milli",
    "memory_mib", "duration_us", "group", "models", "deadline_us"};
const std::vector<std::string_view> request_members = {"at_us", "kind", "service", "input_tokens",
                                                       "output_tokens"};
const std::vector<std::string_view> rate_members = {"at_us", "kind", "service", "micro_per_second"};

std::string name_at(JsonLine& line, std::string_view member) {
  std::string text = line.text(member);
  if (text.size() > longest_name) line.reject(member, "at most 256 bytes");
  return text;
}

std::string required_name(JsonLine& line, std::string_view member) {
  std::string text = name_at(line, member);
  if (text.empty()) line.reject(member, "a name");
  return text;
}

JobArrival job_of(JsonLine& line) {
  JobArrival job;
  job.name = required_name(line, "name");
  job.gpus = static_cast<std::int32_t>(line.whole_or("gpus", {0, 100'000}, 1));
  const std::int64_t usual = job.gpus == 0 ? 0 : whole_device.value;
  const Range shares{job.gpus == 1 ? 1 : usual, usual};
  job.each = MilliGpu(line.whole_or("gpu_milli", shares, usual));
  job.cpu_milli = line.whole_or("cpu_milli", any_count, 0);
  job.memory = MiB(line.whole_or("memory_mib", any_memory, 0));
  job.duration = Micros(line.whole("duration_us", any_time));
  job.group = name_at(line, "group");
  job.models = name_at(line, "models");
  if (line.has("deadline_us")) job.deadline = Micros(line.whole("deadline_us", any_time));
  return job;
}

RequestArrival request_of(JsonLine& line) {
  return {required_name(line, "service"), line.whole("input_tokens", any_count),
          line.whole("output_tokens", any_count)};
}

RateChange rate_of(JsonLine& line) {
  return {required_name(line, "service"), line.whole("micro_per_second", {0, INT64_MAX / 4})};
}

class Writer {
 public:
  void number(std::string_view member, std::int64_t value) {
    begin(member);
    text_ += std::to_string(value);
  }
  void text(std::string_view member, std::string_view value) {
    begin(member);
    text_ += json_string(value);
  }
  // Defaults are left out.
  void unless(std::int64_t usual, std::string_view member, std::int64_t value) {
    if (value != usual) number(member, value);
  }
  void unless_empty(std::string_view member, std::string_view value) {
    if (!value.empty()) text(member, value);
  }
  [[nodiscard]] std::string done() && { return std::move(text_) + "}"; }

 private:
  void begin(std::string_view member) {
    text_ += text_.empty() ? '{' : ',';
    text_.append("\"").append(member).append("\":");
  }
  std::string text_;
};

struct Members {
  Writer& line;

  void operator()(const JobArrival& job) const {
    line.text("kind", "job");
    line.text("name", job.name);
    line.unless(1, "gpus", job.gpus);
    line.unless(job.gpus == 0 ? 0 : whole_device.value, "gpu_milli", job.each.value);
    line.unless(0, "cpu_milli", job.cpu_milli);
    line.unless(0, "memory_mib", job.memory.value);
    line.number("duration_us", job.duration.value);
    line.unless_empty("group", job.group);
    line.unless_empty("models", job.models);
    if (job.deadline) line.number("deadline_us", job.deadline->value);
  }
  void operator()(const RequestArrival& request) const {
    line.text("kind", "request");
    line.text("service", request.service);
    line.number("input_tokens", request.input_tokens);
    line.number("output_tokens", request.output_tokens);
  }
  void operator()(const RateChange& rate) const {
    line.text("kind", "rate");
    line.text("service", rate.service);
    line.number("micro_per_second", rate.micro_per_second);
  }
};

}  // namespace

WorkloadReader::WorkloadReader(Bytes bytes) : lines_(std::move(bytes)) {}

Result<void> WorkloadReader::read_first_line() {
  auto line = JsonLine::next(lines_);
  if (!line) return tl::unexpected(line.error());
  if (!*line) {
    return fail(ErrorCode::invalid_argument, "expected " + workload_header() + " as the first line",
                lines_.name());
  }
  (void)(*line)->whole("neap_workload", {version, version});
  begun_ = true;
  return (*line)->finish({"neap_workload"});
}

Result<bool> WorkloadReader::next(Arrival& into) {
  if (!begun_) {
    if (auto first = read_first_line(); !first) return tl::unexpected(first.error());
  }
  auto next = JsonLine::next(lines_);
  if (!next) return tl::unexpected(next.error());
  if (!*next) return false;
  JsonLine& line = **next;
  into.at = Time(line.whole("at_us", any_time));
  if (into.at < last_) line.reject("at_us", "a time no earlier than the line before");
  last_ = into.at;
  const std::string kind = line.text("kind");
  const std::vector<std::string_view>* known = &rate_members;
  if (kind == "job") {
    into.what = job_of(line);
    known = &job_members;
  } else if (kind == "request") {
    into.what = request_of(line);
    known = &request_members;
  } else if (kind == "rate") {
    into.what = rate_of(line);
  } else {
    line.reject("kind", "job, request or rate");
  }
  if (auto done = line.finish(*known); !done) return tl::unexpected(done.error());
  return true;
}

std::string workload_header() { return "{\"neap_workload\":" + std::to_string(version) + "}"; }

std::string line_of(const Arrival& arrival) {
  Writer line;
  line.number("at_us", arrival.at.us);
  std::visit(Members{line}, arrival.what);
  return std::move(line).done();
}

}  // namespace neap::trace
