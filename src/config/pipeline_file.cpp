#include "config/pipeline_file.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "config/document.h"
#include "config/fields.h"

namespace neap::config {

namespace {

constexpr std::size_t conditions_max = 16;
constexpr std::size_t stage_name_max = 31;
constexpr std::size_t metric_name_max = 64;
constexpr std::size_t decimals = 6;

// In millionths.
Parsed<std::int64_t> parse_metric(std::string_view text) {
  const auto wrong = [&] {
    return tl::unexpected(in_quotes(text) +
                          " is no number; expected one such as 0.9, with up to 6 decimals");
  };
  const bool negative = text.starts_with('-');
  std::string_view rest = negative ? text.substr(1) : text;
  const std::size_t dot = rest.find('.');
  std::string digits(rest.substr(0, dot));
  std::string fraction(dot == std::string_view::npos ? "" : rest.substr(dot + 1));
  const auto all_digits = [](const std::string& part) {
    return std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  const bool shaped = !digits.empty() && digits.size() <= 12 && fraction.size() <= decimals &&
                      (dot == std::string_view::npos || !fraction.empty());
  if (!shaped || !all_digits(digits) || !all_digits(fraction)) return wrong();
  fraction.resize(decimals, '0');
  const std::string all = digits + fraction;
  std::int64_t value = 0;
  std::from_chars(all.data(), all.data() + all.size(), value);
  return negative ? -value : value;
}

class PipelineReader {
 public:
  PipelineReader(Reading& reading, const Submitter& submitter)
      : reading_(reading), submitter_(submitter) {}

  PipelineFile read(const Node& root) {
    Fields top(root, "", reading_);
    Fields pipeline = top.section("pipeline");
    for (const char* other : {"task", "service"}) {
      if (top.has(other)) top.refuse(other, "stands beside `pipeline:`; write it as a stage");
    }
    top.close();
    out_.line = pipeline.line();
    out_.owner = submitter_.owner;
    pipeline.name("name", out_.name, Need::required);
    out_.team = "default";
    pipeline.word("team", out_.team);
    if (pipeline.present() && !pipeline.has("stages")) {
      pipeline.missing("stages", "a list of stages, such as {name: train, task: {...}}");
    }
    const Node* section = root.find("pipeline");
    const Node* list = section == nullptr ? nullptr : section->find("stages");
    std::size_t at = 0;
    pipeline.each("stages", most_stages, [&](Fields& stage) {
      static const Node absent;
      // Entries that are no mapping were refused, and are not called for.
      while (list != nullptr && list->items[at].kind != Node::Kind::mapping) ++at;
      read_stage(stage, list == nullptr ? absent : list->items[at++]);
    });
    pipeline.close();
    return std::move(out_);
  }

 private:
  void read_stage(Fields& fields, const Node& node) {
    PipelineFile::Stage stage;
    stage.line = node.line;
    for (const Member& member : node.members) stage.lines.emplace(member.key, member.line);
    fields.name("name", stage.name, Need::required);
    if (stage.name.find('.') != std::string::npos || stage.name.size() > stage_name_max) {
      fields.refuse("name", in_quotes(stage.name) +
                                " has a dot or more than 31 characters; the stage's task is "
                                "called PIPELINE.STAGE");
    } else if (!stage.name.empty() && !is_name(out_.name + "." + stage.name) &&
               is_name(out_.name)) {
      fields.refuse("name", "is too long with the pipeline's: " + out_.name + "." + stage.name +
                                " has more than 63 characters");
    }
    if (position_of(stage.name)) {
      fields.refuse("name", "two stages are called " + in_quotes(stage.name));
    }
    read_after(fields, stage);
    read_conditions(fields, node, stage);
    stage.work =
        read_stage_work(fields, node, submitter_, {out_.name + "." + stage.name, out_.team});
    fields.close();
    out_.stages.push_back(std::move(stage));
  }

  [[nodiscard]] std::optional<std::int32_t> position_of(const std::string& name) const {
    for (std::size_t i = 0; i < out_.stages.size(); ++i) {
      if (out_.stages[i].name == name && !name.empty()) return static_cast<std::int32_t>(i);
    }
    return std::nullopt;
  }

  void read_after(Fields& fields, PipelineFile::Stage& stage) {
    std::vector<std::string> names;
    if (!fields.texts("after", names, most_stages)) return;
    for (const std::string& name : names) {
      const auto before = position_of(name);
      if (!before) {
        fields.refuse("after", in_quotes(name) + " is no stage that stands before this one");
      } else if (out_.stages[static_cast<std::size_t>(*before)].work.is_service()) {
        fields.refuse("after", in_quotes(name) + " is a service, after which nothing comes");
      } else {
        stage.after.push_back(*before);
      }
    }
    std::sort(stage.after.begin(), stage.after.end());
    stage.after.erase(std::unique(stage.after.begin(), stage.after.end()), stage.after.end());
  }

  // One condition, or a list of them.
  void read_conditions(Fields& fields, const Node& node, PipelineFile::Stage& stage) {
    const Node* when = node.find("when");
    if (when != nullptr && when->kind == Node::Kind::sequence) {
      fields.each("when", conditions_max, [&](Fields& item) { read_condition(item, stage); });
      return;
    }
    Fields single = fields.section("when");
    if (single.present() || reading_.asked != nullptr) read_condition(single, stage);
  }

  void read_condition(Fields& fields, PipelineFile::Stage& stage) {
    StageCondition condition;
    std::string of;
    if (fields.text("stage", of)) {
      const auto named = position_of(of);
      if (!named || !std::binary_search(stage.after.begin(), stage.after.end(), *named)) {
        fields.refuse("stage", in_quotes(of) + " is not among the stages of `after`");
      } else {
        condition.stage = *named;
      }
    } else if (stage.after.size() == 1) {
      condition.stage = stage.after.front();
    } else if (fields.present()) {
      fields.missing("stage", "one of the stages of `after`, whose metric it is");
    }
    fields.text("metric", condition.metric, Need::required, metric_name_max);
    const auto bound = [&](const char* key, Comparison comparison) {
      if (!fields.parsed(key, condition.bound, parse_metric)) return;
      condition.comparison = comparison;
      stage.when.push_back(condition);
    };
    bound("at_least", Comparison::at_least);
    bound("at_most", Comparison::at_most);
    if (fields.present() && !fields.has("at_least") && !fields.has("at_most")) {
      fields.missing("at_least", "a number, here or in at_most");
    }
    const auto& both = stage.when;
    if (fields.has("at_least") && fields.has("at_most") && both.size() >= 2 &&
        both[both.size() - 2].bound > both.back().bound) {
      fields.refuse("at_most", "is below at_least: no number is both");
    }
    fields.close();
  }

  Reading& reading_;
  const Submitter& submitter_;
  PipelineFile out_;
};

}  // namespace

Problem PipelineFile::place_of(std::string_view field) const {
  constexpr std::string_view head = "stages[";
  const std::string whole = "pipeline." + std::string(field);
  if (!field.starts_with(head)) return {line, whole, {}};
  std::size_t number = 0;
  const auto [end, error] =
      std::from_chars(field.data() + head.size(), field.data() + field.size(), number);
  if (error != std::errc() || number >= stages.size()) return {line, whole, {}};
  const Stage& stage = stages[number];
  std::string_view rest(end, static_cast<std::size_t>(field.data() + field.size() - end));
  rest.remove_prefix(std::min<std::size_t>(rest.size(), rest.starts_with("].") ? 2 : 1));
  const std::string at = "pipeline.stages[" + std::to_string(number) + "]";
  if (rest.empty()) return {stage.line, at, {}};
  const std::string_view first = rest.substr(0, rest.find('.'));
  const auto own = stage.lines.find(std::string(first));
  const bool in_work = first != "after" && first != "when" && first != "task" &&
                       (first != "name" || stage.work.is_service());
  if (!in_work) {
    return {own == stage.lines.end() ? stage.line : own->second, at + "." + std::string(rest), {}};
  }
  const int line_there = stage.work.line_of(rest);
  return {line_there == 0 ? stage.line : line_there, at + "." + stage.work.path_of(rest), {}};
}

PipelineSpec PipelineFile::to_spec() const {
  PipelineSpec spec{name, team, owner, {}};
  for (const Stage& stage : stages) {
    StageSpec& out = spec.stages.emplace_back();
    out.name = stage.name;
    out.after = stage.after;
    out.when = stage.when;
    if (const auto* task = std::get_if<TaskSpec>(&stage.work.spec)) out.task = *task;
    if (const auto* service = std::get_if<ServiceSpec>(&stage.work.spec)) out.service = *service;
  }
  return spec;
}

std::optional<SubmittedFile> parse_submitted_file(std::string_view text, const Submitter& submitter,
                                                  Problems& problems) {
  const std::optional<Node> root = parse_document(text, problems);
  if (!root) return std::nullopt;
  if (root->find("pipeline") == nullptr) {
    auto task = parse_task_file(text, submitter, problems);
    if (!task) return std::nullopt;
    return std::move(*task);
  }
  Reading reading{problems};
  PipelineFile file = PipelineReader(reading, submitter).read(*root);
  if (file.stages.empty() && problems.empty()) {
    problems.add(file.line, "pipeline.stages", "is empty; expected 1 to 64 stages");
  }
  if (!problems.empty()) return std::nullopt;
  file.file = problems.file();
  for (PipelineFile::Stage& stage : file.stages) stage.work.file = problems.file();
  return file;
}

Result<void> fit_to_pool(const PoolSpec& pool, PipelineFile& file) {
  for (std::size_t i = 0; i < file.stages.size(); ++i) {
    const auto fitted = fit_to_pool(pool, file.stages[i].work);
    if (fitted) continue;
    const Error& error = fitted.error();
    return fail(error.code, error.message, "stages[" + std::to_string(i) + "]." + error.context);
  }
  return {};
}

std::set<std::string> pipeline_file_keys() {
  const Submitter nobody;
  std::set<std::string> keys =
      keys_asked_by([&](Reading& reading) { PipelineReader(reading, nobody).read(Node()); });
  std::erase_if(keys, [](const std::string& key) {
    return key.find("].task.") != std::string::npos || key.find("].service.") != std::string::npos;
  });
  return keys;
}

}  // namespace neap::config
