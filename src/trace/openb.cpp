#include "trace/openb.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace neap::trace {

namespace {

constexpr std::int64_t most_cpu_milli = 100'000'000;
constexpr std::int64_t most_memory_mib = std::int64_t{1} << 32U;
constexpr std::int64_t most_node_gpus = 1024;
constexpr std::int64_t most_seconds = std::int64_t{1} << 40U;

namespace node_column {
enum : std::size_t { name, cpu, memory, gpus, model };
}
namespace pod_column {
enum : std::size_t { name, cpu, memory, gpus, each, models, created, deleted };
}
namespace class_column {
enum : std::size_t { cpu, gpus, each, models, count, weight };
}

// As the published experiment reads them: a pod that asks for no device asks for no model, and
// more than a whole device is a whole one.
template <class Row>
void read_demand(CsvReader& rows, Row& into, std::size_t gpus, std::size_t each,
                 std::size_t models) {
  into.gpus = static_cast<std::int32_t>(rows.whole(gpus, {0, most_node_gpus}));
  into.each = MilliGpu(0);
  into.models.clear();
  if (into.gpus == 0) return;
  const std::int64_t milli = rows.whole(each, {1, 1'000'000});
  if (into.gpus > 1 && milli < whole_device.value) {
    rows.reject(each, "1000 where there are several devices");
  }
  into.each = MilliGpu(milli < whole_device.value ? milli : whole_device.value);
  into.models = rows.text(models);
}

std::optional<std::int64_t> seconds_at(CsvReader& rows, std::size_t column) {
  if (rows.text(column).empty()) return {};
  return rows.whole(column, {0, most_seconds});
}

}  // namespace

OpenbNodeReader::OpenbNodeReader(Bytes bytes)
    : rows_(std::move(bytes), {{"sn"}, {"cpu_milli"}, {"memory_mib"}, {"gpu"}, {"model"}}) {}

Result<bool> OpenbNodeReader::next(OpenbNode& into) {
  const auto more = rows_.next();
  if (!more || !*more) return more;
  into.name = rows_.text(node_column::name);
  into.cpu_milli = rows_.whole(node_column::cpu, {0, most_cpu_milli});
  into.memory = MiB(rows_.whole(node_column::memory, {0, most_memory_mib}));
  into.gpus = static_cast<std::int32_t>(rows_.whole(node_column::gpus, {0, most_node_gpus}));
  into.model = rows_.text(node_column::model);
  if (into.name.empty()) rows_.reject(node_column::name, "a name");
  if (into.gpus > 0 && into.model.empty()) rows_.reject(node_column::model, "a device model");
  if (auto row = rows_.finish(); !row) return tl::unexpected(row.error());
  return true;
}

OpenbPodReader::OpenbPodReader(Bytes bytes)
    : rows_(std::move(bytes), {{"name"},
                               {"cpu_milli"},
                               {"memory_mib"},
                               {"num_gpu"},
                               {"gpu_milli"},
                               {"gpu_spec", Column::Need::optional},
                               {"creation_time", Column::Need::optional},
                               {"deletion_time", Column::Need::optional}}) {}

Result<bool> OpenbPodReader::next(OpenbPod& into) {
  const auto more = rows_.next();
  if (!more || !*more) return more;
  into.name = rows_.text(pod_column::name);
  into.cpu_milli = rows_.whole(pod_column::cpu, {0, most_cpu_milli});
  into.memory = MiB(rows_.whole(pod_column::memory, {0, most_memory_mib}));
  read_demand(rows_, into, pod_column::gpus, pod_column::each, pod_column::models);
  into.created_s = seconds_at(rows_, pod_column::created);
  into.deleted_s = seconds_at(rows_, pod_column::deleted);
  if (into.name.empty()) rows_.reject(pod_column::name, "a name");
  if (auto row = rows_.finish(); !row) return tl::unexpected(row.error());
  return true;
}

OpenbClassReader::OpenbClassReader(Bytes bytes)
    : rows_(std::move(bytes), {{"cpu_milli"},
                               {"num_gpu"},
                               {"gpu_milli_per_gpu"},
                               {"gpu_spec"},
                               {"count"},
                               {"weight"}}) {}

Result<bool> OpenbClassReader::next(OpenbClass& into) {
  const auto more = rows_.next();
  if (!more || !*more) return more;
  into.cpu_milli = rows_.whole(class_column::cpu, {0, most_cpu_milli});
  read_demand(rows_, into, class_column::gpus, class_column::each, class_column::models);
  into.count = rows_.whole(class_column::count, {1, INT64_MAX / 2});
  into.weight = rows_.real(class_column::weight, 0, 1);
  if (auto row = rows_.finish(); !row) return tl::unexpected(row.error());
  return true;
}

namespace {

// The words of one line of an order file.
class OrderLine {
 public:
  OrderLine(const LineReader& lines, std::string_view line) : lines_(lines), rest_(line) {}

  std::string_view word() {
    const std::size_t from = rest_.find_first_not_of(' ');
    if (from == std::string_view::npos) return {};
    rest_.remove_prefix(from);
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(word.size());
    ++words_;
    return word;
  }

  Result<std::vector<std::uint32_t>> rows(std::uint32_t count) {
    std::vector<std::uint32_t> all;
    for (std::string_view text = word(); !text.empty(); text = word()) {
      std::uint32_t row = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), row);
      if (error != std::errc() || end != text.data() + text.size() || row >= count) {
        return fail(ErrorCode::invalid_argument,
                    "expected a row number below " + std::to_string(count), place());
      }
      all.push_back(row);
    }
    return all;
  }

  [[nodiscard]] std::string place() const { return lines_.place("word " + std::to_string(words_)); }

 private:
  const LineReader& lines_;
  std::string_view rest_;
  std::size_t words_ = 0;
};

Result<void> check_every_node_once(const std::vector<std::uint32_t>& nodes, std::uint32_t count,
                                   const LineReader& lines) {
  std::vector<bool> seen(count, false);
  for (const std::uint32_t row : nodes) {
    if (seen[row]) {
      return fail(ErrorCode::invalid_argument, "names node " + std::to_string(row) + " twice",
                  lines.place());
    }
    seen[row] = true;
  }
  if (nodes.size() == count) return {};
  return fail(
      ErrorCode::invalid_argument,
      "expected all " + std::to_string(count) + " nodes, not " + std::to_string(nodes.size()),
      lines.place());
}

}  // namespace

Result<OpenbOrder> read_openb_order(Bytes bytes, std::int64_t seed, OpenbRows rows) {
  constexpr std::size_t longest_line = std::size_t{1} << 28U;
  LineReader lines(std::move(bytes), longest_line);
  OpenbOrder order;
  order.seed = seed;
  while (order.pods.empty() || order.nodes.empty()) {
    const auto line = lines.next();
    if (!line) return tl::unexpected(line.error());
    if (!*line) {
      return fail(ErrorCode::not_found, "has no order for seed " + std::to_string(seed),
                  lines.name());
    }
    OrderLine words(lines, **line);
    if (words.word() != std::to_string(seed)) continue;
    const std::string_view kind = words.word();
    if (kind != "pods" && kind != "nodes") {
      return fail(ErrorCode::invalid_argument, "expected pods or nodes", words.place());
    }
    auto all = words.rows(kind == "pods" ? rows.pods : rows.nodes);
    if (!all) return tl::unexpected(all.error());
    if (all->empty()) return fail(ErrorCode::invalid_argument, "expected rows", words.place());
    (kind == "pods" ? order.pods : order.nodes) = std::move(*all);
    if (kind == "nodes") {
      const auto whole = check_every_node_once(order.nodes, rows.nodes, lines);
      if (!whole) return tl::unexpected(whole.error());
    }
  }
  return order;
}

}  // namespace neap::trace
