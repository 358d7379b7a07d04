#include "daemon/stage_metrics.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/rules/chain.h"
#include "posix/fd.h"

namespace neap::daemon {

namespace {

constexpr int depth_max = 8;
constexpr std::size_t name_max = 64;
constexpr std::int64_t most_digits = 18;  // in millionths

tl::unexpected<Error> bad(std::string why) {
  return fail(ErrorCode::invalid_argument, "its metrics.json " + std::move(why));
}

struct Millionths {
  std::int64_t value = 0;  // rounded down
  bool above = false;      // by less than one of them
};

// "912.3e-3" in millionths; nothing when it is out of range.
std::optional<Millionths> to_millionths(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t e = text.find_first_of("eE");
  std::int64_t exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view power = text.substr(e + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (error != std::errc() || end != power.data() + power.size()) return std::nullopt;
    exponent = std::clamp<std::int64_t>(exponent, -1'000'000, 1'000'000);
    text = text.substr(0, e);
  }
  const std::size_t dot = text.find('.');
  std::string digits(text.substr(0, dot));
  std::int64_t point = static_cast<std::int64_t>(digits.size()) + exponent + 6;
  if (dot != std::string_view::npos) digits += text.substr(dot + 1);
  const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, zeros);
  point -= static_cast<std::int64_t>(zeros);
  if (point > most_digits && !digits.empty()) return std::nullopt;
  const auto whole = static_cast<std::size_t>(std::max<std::int64_t>(point, 0));
  const bool rest =
      point < 0 ? !digits.empty() : digits.find_first_not_of('0', whole) != std::string::npos;
  digits.resize(digits.empty() || point < 0 ? 0 : whole, '0');
  std::int64_t value = 0;
  if (!digits.empty()) std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (negative) value = rest ? -value - 1 : -value;
  return Millionths{value, rest};
}

// Takes the numbers of the outermost object as they are written: a double would round them.
class Reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::map<std::string, Millionths> values;
  std::string fault;

  bool null() override { return other(); }
  bool boolean(bool /*value*/) override { return other(); }
  bool number_integer(std::int64_t value) override { return number(std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) override { return number(std::to_string(value)); }
  bool number_float(double /*value*/, const std::string& text) override { return number(text); }
  bool string(std::string& /*value*/) override { return other(); }
  bool binary(binary_t& /*value*/) override { return other(); }
  bool start_object(std::size_t /*size*/) override { return deeper(); }
  bool end_object() override { return shallower(); }
  bool start_array(std::size_t /*size*/) override {
    if (depth_ == 0) return stop("is not a JSON object");
    return deeper();
  }
  bool end_array() override { return shallower(); }
  bool key(std::string& name) override {
    if (depth_ != 1) return true;
    if (name.size() > name_max) return stop("has a name of more than 64 characters");
    if (!names_.insert(name).second) return stop("names " + name + " twice");
    name_ = name;
    return true;
  }
  bool parse_error(std::size_t at, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*why*/) override {
    if (fault.empty()) fault = "is no JSON (at byte " + std::to_string(at) + ")";
    return false;
  }

 private:
  bool stop(std::string why) {
    if (fault.empty()) fault = std::move(why);
    return false;
  }
  bool other() { return depth_ == 0 ? stop("is not a JSON object") : true; }
  bool deeper() {
    if (++depth_ > depth_max) return stop("is nested deeper than 8");
    return true;
  }
  bool shallower() {
    --depth_;
    return true;
  }
  bool number(const std::string& text) {
    if (depth_ != 1) return other();
    const auto value = to_millionths(text);
    if (!value) return stop("has a number out of range: " + name_);
    if (values.size() == most_metrics) return stop("has more than 64 numbers");
    values.emplace(name_, *value);
    return true;
  }

  int depth_ = 0;
  std::string name_;
  std::set<std::string> names_;
};

Result<std::string> read_bounded(int fd) {
  std::string text(metrics_bytes_max + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return bad(std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > metrics_bytes_max) return bad("is larger than 64 KiB");
  text.resize(size);
  return text;
}

}  // namespace

Result<std::vector<Metric>> parse_metrics(std::string_view text, const UpperBounds& at_most) {
  Reader reader;
  const bool read = nlohmann::json::sax_parse(text, &reader);
  if (!reader.fault.empty()) return bad(reader.fault);
  if (!read) return bad("is no JSON");
  std::vector<Metric> metrics;
  for (const auto& [name, number] : reader.values) {
    const bool exceeds = number.above && at_most.contains({name, number.value});
    metrics.push_back({name, number.value + (exceeds ? 1 : 0)});
  }
  return metrics;
}

Result<std::vector<Metric>> read_metrics(const std::string& path, std::uint32_t owner,
                                         const UpperBounds& at_most) {
  const posix::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno == ENOENT) return fail(ErrorCode::not_found, "it left no metrics.json");
    return bad(std::string("cannot be opened: ") + std::strerror(errno));
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return bad("is no plain file");
  if (info.st_uid != owner) return bad("belongs to another user");
  const auto text = read_bounded(file.get());
  if (!text) return tl::unexpected(text.error());
  return parse_metrics(*text, at_most);
}

namespace {

UpperBounds upper_bounds(const PipelineState& pipeline, std::int32_t stage) {
  UpperBounds out;
  for (const StageState& later : pipeline.stages) {
    for (const StageCondition& condition : later.when) {
      const bool upper = condition.comparison == Comparison::at_most;
      if (upper && condition.stage == stage) out.emplace(condition.metric, condition.bound);
    }
  }
  return out;
}

}  // namespace

std::string StageMetrics::path_of(const PipelineState& pipeline, const StageState& stage) const {
  return artifacts_ + "/" + std::to_string(pipeline.id.value) + "/" + stage.name + "/metrics.json";
}

void StageMetrics::read(const Source& source) {
  {
    const std::scoped_lock lock(mutex_);
    if (!read_.emplace(source.pipeline, source.stage).second) return;
  }
  auto metrics = read_metrics(source.path, source.owner, source.at_most);
  MetricsRead event{source.pipeline, source.stage, {}, {}};
  if (metrics) {
    event.values = std::move(*metrics);
  } else {
    event.fault = metrics.error().message;
  }
  post_(std::move(event));
}

void StageMetrics::expect(const PoolState& state, const TaskState& task) {
  const PipelineState* pipeline = find_pipeline(state, task.pipeline);
  if (pipeline == nullptr || !metrics_are_asked(*pipeline, task.stage)) return;
  const StageState& stage = pipeline->stages[static_cast<std::size_t>(task.stage)];
  const std::scoped_lock lock(mutex_);
  expected_[task.allocation] = {pipeline->id, task.stage, pipeline->owner.uid,
                                path_of(*pipeline, stage), upper_bounds(*pipeline, task.stage)};
}

void StageMetrics::before(const Event& report) {
  const auto* exited = std::get_if<TaskExited>(&report);
  if (exited == nullptr) return;
  std::optional<Source> source;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = expected_.find(exited->stamp.source);
    if (found == expected_.end()) return;
    source = std::move(found->second);
    expected_.erase(found);
  }
  if (exited->code == 0 && exited->signal == 0) read(*source);
}

void StageMetrics::read_late(const PoolState& state) {
  for (const PipelineState& pipeline : state.pipelines) {
    if (pipeline.ended != Time::never()) continue;
    for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
      const StageState& stage = pipeline.stages[i];
      const bool told = !stage.metrics.empty() || !stage.fault.empty();
      if (stage.phase != StagePhase::reading || told) continue;
      const auto number = static_cast<std::int32_t>(i);
      read({pipeline.id, number, pipeline.owner.uid, path_of(pipeline, stage),
            upper_bounds(pipeline, number)});
    }
  }
}

void StageMetrics::restore(const PoolState& state) {
  state.tasks.for_each([&](const TaskState& task) {
    if (task.pipeline.valid() && holds_devices(task.phase)) expect(state, task);
  });
  read_late(state);
}

void StageMetrics::note(const PoolState& state, const Record& record) {
  if (const auto* decision = std::get_if<Decision>(&record.body)) {
    const auto* placed = std::get_if<TaskPlaced>(decision);
    const TaskState* task = placed == nullptr ? nullptr : state.tasks.find(placed->task);
    const bool runs = task != nullptr && task->allocation == placed->allocation;
    if (runs && task->pipeline.valid()) expect(state, *task);
    return;
  }
  if (!std::holds_alternative<TaskExited>(std::get<Event>(record.body))) return;
  const TaskState* task = state.tasks.find(record.reporter);
  if (task != nullptr && task->pipeline.valid()) read_late(state);
}

void sweep_artifacts(const std::string& artifacts, const PoolState& state) {
  std::set<std::string> used;
  for (const PipelineState& pipeline : state.pipelines) {
    used.insert(std::to_string(pipeline.id.value));
  }
  const auto add = [&](const Artifacts& of) {
    for (const StageInput& input : of.inputs) {
      used.insert(input.directory.substr(0, input.directory.find('/')));
    }
  };
  for (const ServiceState& service : state.services) {
    if (service.removed && service.replicas.empty()) continue;
    add(service.spec.artifacts);
    if (service.roll) add(service.roll->before.artifacts);
    for (const TaskId id : service.replicas) add(state.tasks.at(id).spec.artifacts);
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(artifacts, error)) {
    if (!used.contains(entry.path().filename().string())) {
      std::filesystem::remove_all(entry.path(), error);
    }
  }
}

}  // namespace neap::daemon
