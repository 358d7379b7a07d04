#include "measure/engine_metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace neap::measure {
namespace {

constexpr std::size_t buckets_max = 256;
constexpr double count_max = 1e15;

enum class Field : std::uint8_t { running, waiting, kv_use, prompt, generated, inter_token };
struct Name {
  std::string_view name;
  Field field;
};
// vLLM has renamed two of its own; both are known.
constexpr std::array known_names{
    Name{"vllm:num_requests_running", Field::running},
    Name{"vllm:num_requests_waiting", Field::waiting},
    Name{"vllm:kv_cache_usage_perc", Field::kv_use},
    Name{"vllm:gpu_cache_usage_perc", Field::kv_use},
    Name{"vllm:prompt_tokens_total", Field::prompt},
    Name{"vllm:generation_tokens_total", Field::generated},
    Name{"vllm:inter_token_latency_seconds_bucket", Field::inter_token},
    Name{"vllm:time_per_output_token_seconds_bucket", Field::inter_token},
    Name{"llamacpp:requests_processing", Field::running},
    Name{"llamacpp:requests_deferred", Field::waiting},
    Name{"llamacpp:kv_cache_usage_ratio", Field::kv_use},
    Name{"llamacpp:prompt_tokens_total", Field::prompt},
    Name{"llamacpp:tokens_predicted_total", Field::generated},
};

struct Sample {
  std::string_view name;
  std::string_view labels;  // between the braces
  double value = 0;
};

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

// The end of the labels: the brace that is in no quotes.
std::size_t end_of_labels(std::string_view text) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && text[i] == '}') {
      return i;
    }
  }
  return std::string_view::npos;
}

// name{label="value",...} value [time]
std::optional<Sample> sample_of(std::string_view line) {
  line = without_spaces(line);
  if (line.empty() || line.front() == '#') return {};
  Sample sample;
  const std::size_t name_end = line.find_first_of("{ \t");
  if (name_end == std::string_view::npos) return {};
  sample.name = line.substr(0, name_end);
  line.remove_prefix(name_end);
  if (line.front() == '{') {
    const std::size_t end = end_of_labels(line);
    if (end == std::string_view::npos) return {};
    sample.labels = line.substr(1, end - 1);
    line.remove_prefix(end + 1);
  }
  line = without_spaces(line);
  const auto value = number(line.substr(0, line.find_first_of(" \t")));
  // Counts of what happened are finite, and none is below 0.
  if (!value || !std::isfinite(*value) || *value < 0) return {};
  sample.value = std::min(*value, count_max);
  return sample;
}

// The value of the label `le`, in seconds; none: there is none, or it is no bound.
std::optional<Micros> bound_of(std::string_view labels) {
  while (!labels.empty()) {
    const std::size_t equals = labels.find("=\"");
    if (equals == std::string_view::npos) return {};
    std::string_view name = without_spaces(labels.substr(0, equals));
    if (name.starts_with(',')) name = without_spaces(name.substr(1));
    labels.remove_prefix(equals + 2);
    std::size_t end = 0;
    while (end < labels.size() && labels[end] != '"') end += labels[end] == '\\' ? 2 : 1;
    if (end >= labels.size()) return {};
    if (name == "le") {
      const std::string_view text = labels.substr(0, end);
      if (text == "+Inf") return Micros::max();
      const auto seconds = number(text);
      if (!seconds || !std::isfinite(*seconds) || *seconds < 0 || *seconds > 1e6) return {};
      return Micros(std::llround(*seconds * 1e6));
    }
    labels.remove_prefix(end + 1);
  }
  return {};
}

template <class Number>
void sum(std::optional<Number>& into, double value) {
  into = into.value_or(0) + static_cast<Number>(value);
}

void take(const Sample& sample, Field field, EngineCounters& into) {
  switch (field) {
    case Field::running:
      return sum(into.running, sample.value);
    case Field::waiting:
      return sum(into.waiting, sample.value);
    case Field::prompt:
      return sum(into.prompt_tokens, sample.value);
    case Field::generated:
      return sum(into.generated_tokens, sample.value);
    case Field::kv_use: {
      const Ppm use(std::llround(std::min(sample.value, 1.0) * 1e6));
      into.kv_use = std::max(into.kv_use.value_or(Ppm(0)), use);
      return;
    }
    case Field::inter_token: {
      const auto bound = bound_of(sample.labels);
      if (!bound ||
          (into.inter_token.size() >= buckets_max && !into.inter_token.contains(*bound))) {
        return;
      }
      into.inter_token[*bound] += static_cast<std::uint64_t>(sample.value);
      return;
    }
  }
}

// What each bucket holds itself; empty when counts fall, which no histogram's do.
std::map<Micros, std::uint64_t> added(const std::map<Micros, std::uint64_t>& before,
                                      const std::map<Micros, std::uint64_t>& after) {
  std::map<Micros, std::uint64_t> own;
  std::uint64_t below = 0;
  for (const auto& [bound, upto] : after) {
    const auto old = before.find(bound);
    const std::uint64_t was = old == before.end() ? 0 : old->second;
    if ((!before.empty() && old == before.end()) || upto < was || upto - was < below) return {};
    own[bound] = upto - was - below;
    below = upto - was;
  }
  return own;
}

}  // namespace

Result<EngineCounters> read_engine_metrics(std::string_view text) {
  if (text.size() > metrics_text_max) {
    return fail(ErrorCode::too_large, "the engine's metrics are over 1 MiB");
  }
  if (text.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "the engine's metrics are no text");
  }
  EngineCounters counters;
  std::string_view inter_token_name;  // of an engine that has both names, the first
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto sample = sample_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!sample) continue;
    const auto known = std::ranges::find(known_names, sample->name, &Name::name);
    if (known == known_names.end()) continue;
    if (known->field == Field::inter_token) {
      if (inter_token_name.empty()) inter_token_name = known->name;
      if (inter_token_name != known->name) continue;
    }
    take(*sample, known->field, counters);
  }
  return counters;
}

std::optional<std::uint64_t> bucket_count(const std::map<Micros, std::uint64_t>& before,
                                          const std::map<Micros, std::uint64_t>& after) {
  const auto own = added(before, after);
  if (own.empty()) return {};
  std::uint64_t all = 0;
  for (const auto& [bound, count] : own) all += count;
  return all;
}

std::optional<Micros> bucket_quantile(const std::map<Micros, std::uint64_t>& before,
                                      const std::map<Micros, std::uint64_t>& after, Ppm rank) {
  const auto own = added(before, after);
  const std::uint64_t all = bucket_count(before, after).value_or(0);
  if (all == 0) return {};
  const double target = static_cast<double>(all) * static_cast<double>(rank.value) / 1e6;
  Micros low{0};
  double seen = 0;
  for (const auto& [bound, count] : own) {
    const double here = static_cast<double>(count);
    if (seen + here >= target && count > 0) {
      if (bound == Micros::max()) return low;
      const double part = std::clamp((target - seen) / here, 0.0, 1.0);
      return low + Micros(std::llround(part * static_cast<double>((bound - low).value)));
    }
    seen += here;
    if (bound != Micros::max()) low = bound;
  }
  return low;
}

}  // namespace neap::measure
