#include "simulate/run/cluster.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "config/fields.h"
#include "config/pool_file.h"
#include "config/problem.h"
#include "config/text.h"
#include "config/values.h"
#include "trace/openb.h"
#include "trace/read_all.h"

namespace neap::whatif {

namespace {

constexpr std::int64_t most_nodes = 20'000;
constexpr std::int64_t most_devices_per_node = 64;
constexpr std::size_t most_parts = 1'000;

struct KnownModel {
  std::string_view name;
  std::int64_t gib;
};
// The cards that traces speak of. What G1 to G3 are the openb trace does not tell: their memory is
// taken as that of the cards of their time.
constexpr std::array<KnownModel, 14> known_models = {{{"T4", 16},
                                                      {"P100", 16},
                                                      {"V100", 32},
                                                      {"V100M16", 16},
                                                      {"V100M32", 32},
                                                      {"A10", 24},
                                                      {"A30", 24},
                                                      {"L4", 24},
                                                      {"L40S", 48},
                                                      {"H100", 80},
                                                      {"H200", 141},
                                                      {"G1", 16},
                                                      {"G2", 24},
                                                      {"G3", 80}}};

tl::unexpected<Error> bad_text(std::string message, std::string_view part) {
  return fail(ErrorCode::invalid_argument, std::move(message),
              "--cluster " + config::in_quotes(part));
}

MiB memory_of(std::string_view model) {
  const auto* const found =
      std::find_if(known_models.begin(), known_models.end(),
                   [&](const KnownModel& known) { return known.name == model; });
  if (found != known_models.end()) return MiB(found->gib * 1024);
  const std::size_t dash = model.rfind('-');
  if (dash == std::string_view::npos || !model.ends_with('G')) return MiB(0);
  const auto gib = config::parse_whole(model.substr(dash + 1, model.size() - dash - 2));
  return gib && *gib < 10'000 ? MiB(*gib * 1024) : MiB(0);
}

NodeSpec node_of(const std::string& name, std::int64_t count, const std::string& model,
                 MiB memory) {
  NodeSpec node;
  node.name = name;
  node.fault_domain = name;
  for (std::int64_t i = 0; i < count; ++i) {
    DeviceSpec& device = node.devices.emplace_back();
    device.uuid = "SIM-" + name + "-" + std::to_string(i);
    device.model = model;
    device.memory = memory;
  }
  return node;
}

// Digits before an 'x', taken away from the front of `text`; nothing where there are none.
std::optional<std::int64_t> take_count(std::string_view& text) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || rest == text.data() || rest == end || *rest != 'x') return {};
  text.remove_prefix(static_cast<std::size_t>(rest + 1 - text.data()));
  return count;
}

Result<void> add_part(std::string_view part, ClusterSpec& into) {
  std::string_view rest = part;
  const auto first = take_count(rest);
  if (!first) return bad_text("expected NODESxDEVICESxMODEL, such as 64x8xA100-80G", part);
  const auto second = take_count(rest);
  const std::int64_t nodes = second ? *first : 1;
  const std::int64_t devices = second ? *second : *first;
  const std::size_t colon = rest.find(':');
  const std::string model(rest.substr(0, colon));
  if (!config::is_word(model)) {
    return bad_text("expected a device model after the counts, such as A100-80G", part);
  }
  MiB memory = memory_of(model);
  if (colon != std::string_view::npos) {
    const auto given = config::parse_memory(rest.substr(colon + 1));
    if (!given) return bad_text(given.error(), part);
    memory = *given;
  }
  if (memory <= MiB(0)) {
    return bad_text("the memory of one " + model + " is not known; write it as " + model + ":80GiB",
                    part);
  }
  if (nodes < 1 || devices < 1 || devices > most_devices_per_node ||
      nodes > most_nodes - static_cast<std::int64_t>(into.nodes.size())) {
    return bad_text("expected 1 to 64 devices a node and 1 to 20000 nodes in all", part);
  }
  for (std::int64_t i = 0; i < nodes; ++i) {
    into.nodes.push_back(node_of("n" + std::to_string(into.nodes.size()), devices, model, memory));
  }
  return {};
}

Result<ClusterSpec> from_node_list(const std::string& path) {
  auto rows = trace::read_file<trace::OpenbNode, trace::OpenbNodeReader>(path, most_nodes);
  if (!rows) return tl::unexpected(rows.error());
  ClusterSpec cluster{path, {}};
  for (const trace::OpenbNode& row : *rows) {
    if (row.gpus == 0) continue;
    const MiB memory = memory_of(row.model);
    if (memory.value == 0) {
      return fail(
          ErrorCode::invalid_argument,
          "the memory of a device of model " + config::in_quotes(row.model) + " is not known",
          path);
    }
    if (row.gpus > most_devices_per_node) {
      return fail(ErrorCode::invalid_argument, "node " + row.name + " has more than 64 devices",
                  path);
    }
    NodeSpec node = node_of(row.name, row.gpus, row.model, memory);
    node.cpu_milli = row.cpu_milli;
    node.memory = row.memory;
    cluster.nodes.push_back(std::move(node));
  }
  return cluster;
}

Result<ClusterSpec> from_pool_file(const std::string& path) {
  const auto text = config::read_file(path);
  if (!text) return tl::unexpected(text.error());
  config::Problems problems(path);
  auto file = config::parse_pool_file(*text, problems);
  if (!file) return tl::unexpected(problems.to_error());
  ClusterSpec cluster{path, std::move(file->nodes)};
  if (cluster.nodes.empty()) {
    if (file->spec.total_gpus == 0) {
      return fail(ErrorCode::invalid_argument,
                  "names no devices; give devices.nodes or pool.total_gpus, or --cluster", path);
    }
    cluster.nodes = config::default_simulated_nodes(file->spec);
  }
  return cluster;
}

// By its first line: a node list is the only table.
Result<bool> is_node_list(const std::string& path) {
  auto bytes = trace::open_bytes(path);
  if (!bytes) return tl::unexpected(bytes.error());
  std::array<char, 4096> front{};
  const auto size = (*bytes)->read(front);
  if (!size) return tl::unexpected(size.error());
  const std::string_view text(front.data(), *size);
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.find("cpu_milli") != std::string_view::npos;
}

}  // namespace

std::int64_t ClusterSpec::devices() const {
  std::int64_t sum = 0;
  for (const NodeSpec& node : nodes) sum += static_cast<std::int64_t>(node.devices.size());
  return sum;
}

Result<ClusterSpec> cluster_of_text(std::string_view text) {
  ClusterSpec cluster{std::string(text), {}};
  std::string_view rest = text;
  for (std::size_t parts = 0; parts < most_parts; ++parts) {
    const std::string_view part = rest.substr(0, rest.find(','));
    if (auto added = add_part(part, cluster); !added) return tl::unexpected(added.error());
    if (part.size() == rest.size()) return cluster;
    rest.remove_prefix(part.size() + 1);
  }
  return bad_text("has more than 1000 parts", text);
}

Result<ClusterSpec> load_cluster(const std::string& text) {
  std::error_code error;
  if (!std::filesystem::exists(text, error)) {
    if (!text.empty() && text.front() >= '0' && text.front() <= '9') return cluster_of_text(text);
    return fail(ErrorCode::not_found,
                "there is no such file, and it is no short form such as 64x8xA100-80G",
                "--cluster " + config::in_quotes(text));
  }
  const auto table = is_node_list(text);
  if (!table) return tl::unexpected(table.error());
  auto cluster = *table ? from_node_list(text) : from_pool_file(text);
  if (cluster && cluster->nodes.empty()) {
    return fail(ErrorCode::invalid_argument, "holds no node with devices", text);
  }
  return cluster;
}

}  // namespace neap::whatif
