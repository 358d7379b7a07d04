#include "config/task_file.h"

#include <algorithm>
#include <type_traits>

#include "config/document.h"
#include "config/gateway.h"
#include "config/host.h"
#include "config/scale.h"
#include "core/rules/profile.h"

namespace neap::config {

namespace {

constexpr std::int64_t request_devices_max = 100'000;
constexpr std::size_t arguments_max = 1024;
constexpr std::size_t environment_max = 512;
constexpr std::size_t health_path_max = 1024;
constexpr Micros longest_work = hours(24 * 365);

bool is_variable_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && !(text[0] >= '0' && text[0] <= '9') &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  (c >= '0' && c <= '9');
         });
}

void note_lines(const Node& node, const std::string& path, std::map<std::string, int>& lines) {
  for (const Member& member : node.members) {
    const std::string name = path.empty() ? member.key : path + "." + member.key;
    lines.emplace(name, member.line);
    note_lines(member.value, name, lines);
  }
}

// What the watcher of a running task takes: below the working directory, and not deep.
std::string_view fault_of_pattern(std::string_view pattern) {
  constexpr std::ptrdiff_t depth_max = 8;
  if (pattern.starts_with('/')) return "is absolute; expected a path below the working directory";
  if (("/" + std::string(pattern) + "/").find("/../") != std::string::npos) {
    return "leads out of the working directory";
  }
  if (std::count(pattern.begin(), pattern.end(), '/') >= depth_max) {
    return "has more than 8 levels";
  }
  return pattern.find_first_not_of("./") == std::string_view::npos ? "names no files" : "";
}

std::string absolute(const std::string& path, const std::string& base) {
  return path.starts_with('/') || base.empty() ? path : base + "/" + path;
}

class TaskReader {
 public:
  TaskReader(Reading& reading, const Submitter& submitter)
      : reading_(reading), submitter_(submitter) {}

  TaskFile read(const Node& root) {
    Fields top(root, "", reading_);
    read_work(top);
    top.close();
    if (const Node* section = root.find(out_.is_service() ? "service" : "task")) {
      note_lines(*section, "", out_.lines);
    }
    return std::move(out_);
  }

  TaskFile read_stage(Fields& stage, const Node& node, const StageDefaults& defaults) {
    defaults_ = &defaults;
    read_work(stage);
    if (const Node* section = node.find(out_.is_service() ? "service" : "task")) {
      note_lines(*section, "", out_.lines);
    }
    return std::move(out_);
  }

 private:
  void read_work(Fields& top) {
    const bool task = top.has("task");
    const bool service = top.has("service");
    if (top.present() && !task && !service) {
      top.missing("task", "a section `task:` or `service:`");
    }
    if (task && service) {
      top.refuse("service", "stands beside `task:`; write one " +
                                std::string(defaults_ == nullptr ? "file" : "stage") + " for each");
    }
    Fields task_fields = top.section("task");
    Fields service_fields = top.section("service");
    // Both are read when fields are only being listed.
    if (service || reading_.asked != nullptr) read_service(service_fields);
    if (!service || reading_.asked != nullptr) read_task(task_fields);
  }

  // What tasks and services have in common.
  template <class Spec>
  void read_common(Fields& fields, Spec& spec) {
    constexpr bool is_task = std::is_same_v<Spec, TaskSpec>;
    if (is_task && defaults_ != nullptr) {
      spec.name = defaults_->task_name;
    } else if (fields.name("name", spec.name, Need::required) &&
               spec.name.find_first_not_of("0123456789") == std::string::npos) {
      fields.refuse("name", in_quotes(spec.name) + " is a number, and so are ids: `neap cancel " +
                                spec.name + "` could mean another; add a letter");
    }
    spec.team = defaults_ == nullptr ? "default" : defaults_->team;
    fields.word("team", spec.team);
    fields.word("tier", spec.tier);
    fields.text("baseline", spec.baseline);
    spec.owner = submitter_.owner;
    fields.word("profile", spec.profile);
    if (spec.profile.empty()) spec.profile = usual_profile(spec.name);
    read_split(fields.section("memory"), spec.split);
    read_request(fields, spec.request);
    // What a device holds of it, where that is not said by itself.
    Request& request = spec.request;
    if (!out_.auto_gpus && request.memory == MiB(0)) {
      request.memory = MiB((spec.split.sum().value + request.count - 1) / request.count);
    }
    read_process(fields);
    out_.launch.host = read_task_host(fields.section("host"), out_.launch.workdir);
    out_.launch.cpu_milli = spec.request.cpu_milli;
    out_.launch.host_memory = spec.request.host_memory;
  }

  void read_request(Fields& fields, Request& request) {
    if (fields.has("gpus") && fields.has("gpu")) {
      fields.refuse("gpu",
                    "stands beside `gpus`; gpus counts whole devices, gpu describes parts: "
                    "keep one");
    }
    if (fields.present() && !fields.has("gpus") && !fields.has("gpu")) {
      fields.missing("gpus", "a number of whole devices, or `gpu: {memory: 16GiB, compute: 60%}`");
    }
    out_.auto_gpus = fields.says("gpus", "auto");
    if (!out_.auto_gpus) fields.whole("gpus", request.count, {1, request_devices_max});
    Fields gpu = fields.section("gpu");
    gpu.whole("count", request.count, {1, request_devices_max});
    gpu.memory("memory", request.memory);
    gpu.share("compute", request.share);
    gpu.close();
    fields.words("device_models", request.models, 64);
    std::sort(request.models.begin(), request.models.end());
    request.models.erase(std::unique(request.models.begin(), request.models.end()),
                         request.models.end());
    fields.word("trust_domain", request.trust_domain);
    fields.parsed("cpu", request.cpu_milli, parse_cpu_milli);
    fields.memory("host_memory", request.host_memory);
    read_nearness(fields.section("placement"), request.near);
  }

  // All devices of one task together.
  static void read_split(Fields fields, MemorySplit& split) {
    fields.memory("weights", split.weights);
    fields.memory("kv_cache", split.kv_cache);
    fields.memory("activations", split.activations);
    fields.memory("framework", split.framework);
    fields.close();
  }

  static void read_nearness(Fields fields, Nearness& near) {
    fields.choice<Cell>("within", near.within,
                        {{"device", Cell::device},
                         {"pair", Cell::pair},
                         {"node", Cell::node},
                         {"rack", Cell::rack},
                         {"domain", Cell::domain}});
    fields.words("exclude_nodes", near.exclude, 1024);
    std::sort(near.exclude.begin(), near.exclude.end());
    near.exclude.erase(std::unique(near.exclude.begin(), near.exclude.end()), near.exclude.end());
    fields.word("group", near.group);
    fields.choice<Cell>("apart", near.apart,
                        {{"device", Cell::device},
                         {"pair", Cell::pair},
                         {"node", Cell::node},
                         {"rack", Cell::rack},
                         {"domain", Cell::domain}});
    fields.whole("per_domain", near.per_domain, {1, request_devices_max});
    fields.word("weights", near.weights);
    if (near.group.empty() && fields.present() &&
        (near.apart != Cell::any || near.per_domain > 0)) {
      fields.missing("group", "the name of those that `apart` or `per_domain` tells apart");
    }
    fields.close();
  }

  void read_process(Fields& fields) {
    Launch& launch = out_.launch;
    if (!fields.has("command") && fields.present()) {
      fields.missing("command", "the program and its arguments, such as [python3, train.py]");
    }
    if (fields.texts("command", launch.command, arguments_max)) {
      const bool one_text = launch.command.size() == 1;
      if (launch.command.front().empty()) fields.refuse("command", "names no program");
      if (one_text && launch.command.front().find(' ') != std::string::npos) {
        fields.refuse("command",
                      "is one text with spaces; expected a list such as "
                      "[python3, train.py], or [sh, -c, \"...\"] for the shell");
      }
    }
    launch.workdir = submitter_.workdir;
    std::string workdir;
    if (fields.text("workdir", workdir)) launch.workdir = absolute(workdir, submitter_.workdir);
    fields.dictionary("env", launch.env, environment_max);
    for (const auto& [name, value] : launch.env) check_variable(fields, name);
  }

  static void check_variable(Fields& fields, const std::string& name) {
    if (!is_variable_name(name)) {
      fields.refuse("env", in_quotes(name) +
                               " is no name of a variable; expected letters, digits "
                               "and '_'");
    } else if (name.starts_with("NEAP_") || name == "CUDA_VISIBLE_DEVICES") {
      fields.refuse("env", in_quotes(name) + " is set by the pool; choose another name");
    }
  }

  void read_task(Fields fields) {
    TaskSpec spec;
    read_common(fields, spec);
    enum class Kind : std::uint8_t { training, interactive };
    Kind kind = Kind::training;
    if (fields.choice<Kind>("kind", kind,
                            {{"training", Kind::training}, {"interactive", Kind::interactive}})) {
      out_.purpose = kind == Kind::training ? Purpose::batch : Purpose::interactive;
    }
    read_range(fields, spec.request);
    fields.flag("interruptible", spec.interruptible);
    fields.duration("delay_tolerance", spec.delay_tolerance, Micros(0), longest_work);
    Micros work;
    if (fields.duration("work", work, seconds(1), longest_work)) spec.work = work;
    Time deadline;
    if (fields.parsed("deadline", deadline, parse_moment)) spec.deadline = deadline;
    read_checkpoint(fields.section("checkpoint"), spec.contract);
    fields.each("protected_windows", 16,
                [&](Fields& item) { spec.windows.push_back(read_window(item)); });
    // A part of a device without a declared memory could take all of it (A4, second condition).
    spec.predictable = spec.request.share == whole_device || spec.request.memory.value > 0;
    fields.close();
    spec.launch = to_json(out_.launch);
    out_.spec = std::move(spec);
  }

  // With how few devices it runs as well.
  static void read_range(Fields& fields, Request& request) {
    if (!fields.whole("least_gpus", request.least, {1, request_devices_max})) return;
    if (request.least > request.count) {
      fields.refuse("least_gpus", std::to_string(request.least) + " is more than the " +
                                      std::to_string(request.count) +
                                      " devices of `gpus`; expected at most that");
    } else if (request.share < whole_device) {
      fields.refuse("least_gpus", "stands beside a part of a device; a range is of whole devices");
    }
  }

  void read_checkpoint(Fields fields, ContractSpec& contract) {
    std::vector<std::string> ways;
    if (fields.present() && !fields.has("contract")) {
      fields.missing("contract", "sdk, signals or watch, one or a list");
    }
    if (fields.texts("contract", ways, 3)) {
      for (const std::string& way : ways) {
        if (way == "sdk") contract.sdk = true;
        if (way == "signals") contract.signals = true;
        if (way == "watch") contract.watch = true;
        if (way != "sdk" && way != "signals" && way != "watch") {
          fields.refuse("contract",
                        in_quotes(way) + " is not known; expected sdk, signals or watch");
        }
      }
    }
    if (fields.text("watch", out_.launch.watch)) {
      const std::string_view fault = fault_of_pattern(out_.launch.watch);
      if (!fault.empty())
        fields.refuse("watch", in_quotes(out_.launch.watch) + " " + std::string(fault));
    }
    if (contract.watch && out_.launch.watch.empty()) {
      fields.missing("watch", "a pattern of the checkpoints' files, such as out/checkpoint-*");
    }
    if (fields.has("watch") && !contract.watch) {
      fields.refuse("watch",
                    "is given and the contract is not watch; add it to "
                    "checkpoint.contract");
    }
    fields.duration("interval", contract.interval, seconds(1), hours(24));
    fields.flag("on_demand", contract.on_demand);
    fields.duration("save_time", contract.save, Micros(0), hours(2));
    fields.duration("stall_time", contract.stall, Micros(0), hours(2));
    fields.duration("drain_time", contract.drain, Micros(0), hours(2));
    fields.duration("release_time", contract.release, Micros(0), hours(2));
    fields.duration("restore_time", contract.restore, Micros(0), hours(24));
    fields.duration("recovery", contract.recovery, Micros(0), hours(24));
    fields.close();
  }

  static DayWindow read_window(Fields& item) {
    DayWindow window;
    if (item.present() && !item.has("from")) item.missing("from", "a time of day such as 22:00");
    if (item.present() && !item.has("to")) item.missing("to", "a time of day such as 06:00");
    const bool from = item.parsed("from", window.from, parse_time_of_day);
    const bool to = item.parsed("to", window.to, parse_time_of_day);
    if (from && to && window.from == window.to)
      item.refuse("to", "equals from: the window is empty");
    item.close();
    return window;
  }

  void read_service(Fields fields) {
    ServiceSpec spec;
    read_common(fields, spec);
    out_.purpose = Purpose::inference;
    Launch& launch = out_.launch;
    Fields replicas = fields.section("replicas");
    replicas.whole("min", spec.min_replicas, {0, 10'000});
    spec.max_replicas = std::max(1, spec.min_replicas);
    replicas.whole("max", spec.max_replicas, {1, 10'000});
    if (spec.max_replicas < spec.min_replicas) {
      replicas.refuse("max", "is below replicas.min (" + std::to_string(spec.min_replicas) + ")");
    }
    replicas.close();
    fields.whole("port", launch.port, {1, 65'535});
    fields.whole("concurrency", spec.concurrency, {1, 100'000});
    launch.concurrency = spec.concurrency;
    read_health(fields.section("health"), spec);
    Fields slo = fields.section("slo");
    Micros first_byte;
    if (slo.duration("ttft", first_byte, milliseconds(1), hours(1))) {
      spec.slo_first_byte = first_byte;
    }
    slo.close();
    ServiceGateway gateway;
    Fields gateway_fields = fields.section("gateway");
    read_service_gateway(gateway_fields, {spec.slo_first_byte.has_value(), spec.concurrency},
                         gateway);
    launch.gateway = gateway_to_json(gateway);
    read_own_scale(fields.section("scale"), spec);
    fields.duration("drain_timeout", spec.drain_timeout, Micros(0), hours(24));
    std::string model_dir;
    if (fields.text("model_dir", model_dir)) {
      launch.model_dir = absolute(model_dir, submitter_.workdir);
    }
    fields.choice<std::string>(
        "engine", launch.engine,
        {{"none", ""}, {"vllm", "vllm"}, {"llama_cpp", "llama_cpp"}, {"neap", "neap"}});
    fields.close();
    spec.launch = to_json(launch);
    out_.spec = std::move(spec);
  }

  void read_health(Fields fields, ServiceSpec& spec) {
    Health health;
    if (fields.text("path", health.path, Need::optional, health_path_max)) {
      if (health.path.front() != '/') fields.refuse("path", "does not start with /");
      if (health.path.find_first_of(" \t\r") != std::string::npos) {
        fields.refuse("path", "holds blanks; write them as %20");
      }
    }
    fields.duration("interval", health.interval, milliseconds(100), minutes(5));
    fields.duration("timeout", health.timeout, milliseconds(100), minutes(5));
    fields.duration("start_timeout", spec.start_timeout, seconds(1), hours(24));
    fields.close();
    out_.launch.health = health;
  }

  static void read_own_scale(Fields fields, ServiceSpec& spec) {
    ScaleSpec scale;
    read_scale(fields, scale);
    if (fields.present()) spec.scale = scale;
  }

  Reading& reading_;
  const Submitter& submitter_;
  const StageDefaults* defaults_ = nullptr;  // of a stage of a pipeline
  TaskFile out_;
};

}  // namespace

const std::string& TaskFile::name() const {
  return std::visit([](const auto& one) -> const std::string& { return one.name; }, spec);
}

const Request& TaskFile::request() const {
  return std::visit([](const auto& one) -> const Request& { return one.request; }, spec);
}

std::uint8_t TaskFile::open_fields() const {
  const std::pair<Learned, const char*> fields[] = {
      {Learned::work, "work"},
      {Learned::save, "checkpoint.save_time"},
      {Learned::stall, "checkpoint.stall_time"},
      {Learned::restore, "checkpoint.restore_time"},
  };
  std::uint8_t open = 0;
  for (const auto& [field, key] : fields) {
    if (!lines.contains(key)) open |= learned_bit(field);
  }
  const bool sized = auto_gpus || lines.contains("memory") || lines.contains("gpu.memory");
  if (!sized) open |= learned_bit(Learned::memory);
  if (auto_gpus) open |= learned_bit(Learned::count);
  return open;
}

int TaskFile::line_of(std::string_view field) const {
  while (!field.empty()) {
    if (const auto found = lines.find(std::string(field)); found != lines.end()) {
      return found->second;
    }
    const std::size_t dot = field.rfind('.');
    field = dot == std::string_view::npos ? "" : field.substr(0, dot);
  }
  return 0;
}

std::string TaskFile::path_of(std::string_view field) const {
  return (is_service() ? "service." : "task.") + std::string(field);
}

std::optional<TaskFile> parse_task_file(std::string_view text, const Submitter& submitter,
                                        Problems& problems) {
  const std::optional<Node> root = parse_document(text, problems);
  if (!root) return std::nullopt;
  Reading reading{problems};
  TaskFile file = TaskReader(reading, submitter).read(*root);
  if (!problems.empty()) return std::nullopt;
  file.file = problems.file();
  return file;
}

TaskFile read_stage_work(Fields& stage, const Node& node, const Submitter& submitter,
                         const StageDefaults& defaults) {
  return TaskReader(stage.reading(), submitter).read_stage(stage, node, defaults);
}

namespace {

tl::unexpected<Error> misfit(std::string_view field, std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message), std::string(field));
}

// The lightest tier of the kind: nobody is put before others by leaving a line out.
Result<void> choose_tier(const PoolSpec& pool, Purpose wanted, std::string& tier) {
  for (const TierSpec& one : pool.tiers) {
    if (one.purpose == wanted) tier = one.name;
  }
  if (!tier.empty()) return {};
  return misfit(
      "tier", "is missing, and the pool has no tier for " + std::string(name_of(wanted)) + " work");
}

Result<void> fit_tier(const PoolSpec& pool, TaskFile& file) {
  std::string& tier = std::visit([](auto& one) -> std::string& { return one.tier; }, file.spec);
  if (tier.empty()) return choose_tier(pool, file.purpose.value_or(Purpose::batch), tier);
  std::string names;
  for (const TierSpec& one : pool.tiers) {
    names += (names.empty() ? " " : ", ") + one.name;
    if (one.name != tier) continue;
    if (file.purpose && one.purpose != *file.purpose) {
      return misfit("tier", in_quotes(tier) + " is a tier for " +
                                std::string(name_of(one.purpose)) + " work; expected one for " +
                                std::string(name_of(*file.purpose)));
    }
    if (!file.is_service() && one.purpose == Purpose::inference) {
      return misfit("tier", in_quotes(tier) +
                                " is a tier for inference; a task belongs to an "
                                "interactive or batch one");
    }
    return {};
  }
  return misfit("tier", in_quotes(tier) + " is no tier of this pool; expected one of" + names);
}

}  // namespace

Result<void> fit_to_pool(const PoolSpec& pool, TaskFile& file) {
  if (auto fitted = fit_tier(pool, file); !fitted) return fitted;
  if (auto* task = std::get_if<TaskSpec>(&file.spec)) {
    // The pool asks for a checkpoint that is overdue, so its own interval is one that holds.
    ContractSpec& contract = task->contract;
    if ((contract.sdk || contract.watch) && contract.interval.value == 0) {
      contract.interval = pool.preempt.checkpoint_interval;
    }
  }
  const Request& request = file.request();
  if (pool.total_gpus == 0 || request.count <= pool.total_gpus) return {};
  return misfit(file.lines.contains("gpus") ? "gpus" : "gpu.count",
                "asks for " + std::to_string(request.count) + " devices; the pool has " +
                    std::to_string(pool.total_gpus));
}

std::set<std::string> task_file_keys() {
  const Submitter nobody;
  return keys_asked_by([&](Reading& reading) { TaskReader(reading, nobody).read(Node()); });
}

}  // namespace neap::config
