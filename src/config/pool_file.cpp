#include "config/pool_file.h"

#include <algorithm>
#include <map>

#include "config/adoption.h"
#include "config/document.h"
#include "config/fairness.h"
#include "config/fields.h"
#include "config/scale.h"
#include "config/set_value.h"
#include "config/teams.h"
#include "core/rules/tide.h"

namespace neap::config {

namespace {

constexpr std::size_t tiers_max = 64;
constexpr std::size_t nodes_listed_max = 20'000;
constexpr std::int64_t devices_per_node_max = 64;
constexpr Micros usual_chain_protect = hours(4);  // of each stage; decision 19

Purpose purpose_by_name(std::string_view tier) {
  if (tier.starts_with("infer")) return Purpose::inference;
  if (tier.find("interactive") != std::string_view::npos) return Purpose::interactive;
  return Purpose::batch;
}

// W_tier of POLICIES 4.
Micros usual_wait(Purpose purpose) {
  return purpose == Purpose::interactive ? minutes(30) : hours(4);
}

// Everything that one file says, while it is being read.
class PoolReader {
 public:
  explicit PoolReader(Reading& reading) : reading_(reading) {}

  PoolFile read(const Node& root) {
    Fields top(root, "", reading_);
    if (top.present() && !top.has("pool")) top.missing("pool", "the section with total_gpus");
    read_pool(top.section("pool"));
    read_adoption(top.section("adoption"), out_.spec.adoption);
    read_starts(top.section("starts"), out_.spec.starts);
    read_preempt(top.section("preempt"));
    read_tiers(top);
    top.text("baseline", out_.spec.baseline);
    Fields scale = top.section("scale");
    read_scale(scale, out_.spec.scale);
    read_prefilter(top.section("prefilter"));
    read_guard(top.section("guard"));
    read_placement(top.section("placement"));
    read_defragment(top.section("defragment"));
    read_resize(top.section("resize"));
    read_teams(top, out_.spec);
    read_fairness(top.section("fairness"), out_.spec);
    read_devices(top.section("devices"));
    read_pool_host(top.section("host"), out_.host);
    read_api(top.section("api"));
    read_journal(top.section("journal"));
    read_ladder(top.section("ladder"), out_.ladder);
    read_gateway(top.section("gateway"));
    derive_from_preset(root, top);
    if (top.text("state_dir", out_.state_dir) && out_.state_dir.front() != '/') {
      top.refuse("state_dir", "is a relative path; expected one that starts with /");
    }
    top.close();
    return std::move(out_);
  }

 private:
  // What the file leaves open follows from the preset; a file that has too few devices for one is
  // told so.
  void derive_from_preset(const Node& root, Fields& top) {
    PoolSpec& spec = out_.spec;
    if (spec.preset == Preset::none) return;
    Fields pool = top.section("pool");
    const std::int64_t devices = spec.total_gpus > 0 ? spec.total_gpus : devices_;
    if (devices == 0) {
      pool.refuse("preset",
                  "divides the devices of the pool: pool.total_gpus or devices.nodes is "
                  "needed beside it");
      return;
    }
    if (devices < preset_devices_min) {
      pool.refuse("preset", "divides " + std::to_string(preset_devices_min) +
                                " devices at least; the pool has " + std::to_string(devices));
      return;
    }
    const Stated stated = [&](std::string_view key) {
      const std::size_t dot = key.find('.');
      const Node* section = root.find(key.substr(0, dot));
      return section != nullptr && section->find(key.substr(dot + 1)) != nullptr;
    };
    derive(spec.preset, static_cast<std::int32_t>(devices), stated, spec);
    if (spec.scale.down_below >= spec.scale.up_above) {
      pool.refuse("preset",
                  "gives scale thresholds that cross the one stated; state both "
                  "scale.up_above and scale.down_below");
    }
    if (spec.inference_guard_min + spec.elastic_buffer > devices) {
      pool.refuse("preset", "and what is stated of guard and buffer together are more than the " +
                                std::to_string(devices) + " devices of the pool");
    }
  }

  void read_pool(Fields pool) {
    PoolSpec& spec = out_.spec;
    pool.name("name", spec.name);
    pool.whole("total_gpus", spec.total_gpus, {1, devices_max});
    pool.whole("inference_guard_min", spec.inference_guard_min, {0, devices_max});
    pool.whole("elastic_buffer", spec.elastic_buffer, {0, devices_max});
    pool.memory("share_min_memory", spec.share_min_memory);
    pool.memory("device_reserve", spec.device_reserve);
    pool.whole("max_restarts", spec.max_restarts, {0, 1000});
    read_ratio(pool, spec);
    if (spec.total_gpus > 0 && spec.inference_guard_min > spec.total_gpus) {
      pool.refuse("inference_guard_min",
                  std::to_string(spec.inference_guard_min) + " is more than total_gpus (" +
                      std::to_string(spec.total_gpus) + "); expected at most that");
    } else if (spec.total_gpus > 0 &&
               spec.inference_guard_min + spec.elastic_buffer > spec.total_gpus) {
      pool.refuse("elastic_buffer",
                  "guard and buffer together are " +
                      std::to_string(spec.inference_guard_min + spec.elastic_buffer) +
                      ", more than total_gpus (" + std::to_string(spec.total_gpus) + ")");
    }
    pool.close();
  }

  void read_preempt(Fields preempt) {
    PreemptSpec& spec = out_.spec.preempt;
    preempt.flag("enabled", spec.enabled);
    preempt.flag("only_at_checkpoint", spec.only_at_checkpoint);
    std::int32_t interval_min = 0;
    if (preempt.whole("checkpoint_interval_min", interval_min, {1, 24 * 60})) {
      spec.checkpoint_interval = minutes(interval_min);
    }
    preempt.flag("break_glass", spec.break_glass);
    if (!spec.only_at_checkpoint && !spec.break_glass) {
      preempt.refuse(
          "only_at_checkpoint",
          "false lets tasks be stopped away from a boundary, which is killing them: that "
          "needs break_glass: true too");
    }
    preempt.duration("grace", spec.grace, seconds(1), hours(1));
    preempt.duration("term_grace", spec.term_grace, seconds(1), hours(1));
    preempt.duration("guard_reclaim", spec.guard_reclaim, seconds(1), hours(1));
    Micros fixed_cost;
    if (preempt.duration("fixed_cost", fixed_cost, Micros(0), hours(1000))) {
      spec.fixed_cost = fixed_cost.value * whole_device.value;
    }
    preempt.duration("protected_for", spec.protect_min, Micros(0), hours(48));
    preempt.whole("budget_per_day", spec.budget_per_day, {0, 10'000});
    preempt.duration("compensation", spec.compensation, Micros(0), hours(24));
    preempt.duration("wait_min", spec.wait_min, Micros(0), hours(24));
    spec.chain_protect = usual_chain_protect;
    preempt.duration("chain_protect", spec.chain_protect, Micros(0), hours(24 * 30));
    preempt.whole("rounds", spec.rounds, {1, 100});
    preempt.whole("missed_checkpoints", spec.missed_checkpoints, {1, 100});
    preempt.close();
  }

  void read_tiers(Fields& top) {
    std::vector<TierSpec>& tiers = out_.spec.tiers;
    std::map<std::string, int> first_line;
    top.each("priority_tiers", tiers_max, [&](Fields& item) {
      TierSpec tier;
      const bool named = item.word("name", tier.name, Need::required);
      item.whole("weight", tier.weight, {0, 1'000'000}, Need::required);
      tier.purpose = purpose_by_name(tier.name);
      const bool asked = item.has("wait");
      item.duration("wait", tier.wait, minutes(1), a_year);
      item.choice<Purpose>("kind", tier.purpose,
                           {{"inference", Purpose::inference},
                            {"interactive", Purpose::interactive},
                            {"batch", Purpose::batch}});
      if (!asked) tier.wait = usual_wait(tier.purpose);
      read_envelope(item.section("envelope"), tier.envelope);
      if (named && !first_line.emplace(tier.name, item.line_of("name")).second) {
        item.refuse("name", in_quotes(tier.name) + " is the name of another tier, on line " +
                                std::to_string(first_line[tier.name]));
      }
      item.close();
      tiers.push_back(std::move(tier));
    });
    if (tiers.empty() && !top.has("priority_tiers")) {
      tiers = {{"inference", 100, Purpose::inference},
               {"interactive", 80, Purpose::interactive, usual_wait(Purpose::interactive)},
               {"batch", 40, Purpose::batch}};
    } else if (tiers.empty()) {
      top.refuse("priority_tiers",
                 "names no tier; expected entries such as {name: batch, weight: 40}");
    }
    std::sort(tiers.begin(), tiers.end(), [](const TierSpec& a, const TierSpec& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.name < b.name;
    });
  }

  void read_guard(Fields guard) {
    TideSpec& spec = out_.spec.tide;
    guard.flag("derive", spec.derive);
    guard.duration("slot", spec.slot, minutes(1), hours(1));
    guard.duration("lead", spec.lead, seconds(1), hours(1));
    Ppm violations{spec.violations_per_mille * 1'000};
    guard.part("violations", violations);
    if (violations.value % 1'000 != 0) {
      guard.refuse("violations", "is no whole number of tenths of a percent");
    }
    spec.violations_per_mille = static_cast<std::int32_t>(violations.value / 1'000);
    guard.whole("idle_cost", spec.costs.idle, {1, lead_time::highest_cost});
    guard.whole("shortage_cost", spec.costs.shortage, {1, lead_time::highest_cost});
    guard.each("calendar", lead_time::most_promotions, [&](Fields& item) {
      lead_time::Promotion entry;
      for (const char* key : {"from", "to"}) {
        if (!item.has(key)) item.refuse(key, "is needed: a moment such as 2027-11-11T00:00:00Z");
      }
      const bool from = item.parsed("from", entry.from, parse_moment);
      const bool to = item.parsed("to", entry.to, parse_moment);
      item.whole("gpus", entry.devices, {1, lead_time::most_devices}, Need::required);
      if (from && to && entry.to <= entry.from) item.refuse("to", "is not after `from`");
      item.close();
      spec.calendar.push_back(entry);
    });
    TideSpec plain = spec;
    plain.calendar.clear();  // each entry was checked where it stands
    if (const auto done = check(plain); !done)
      guard.refuse(done.error().context, done.error().message);
    guard.close();
  }

  void read_prefilter(Fields prefilter) {
    PrefilterSpec& spec = out_.spec.prefilter;
    prefilter.part("out_above", spec.out_above);
    prefilter.part("back_below", spec.back_below);
    prefilter.duration("back_after", spec.back_after, Micros(0), hours(24));
    if (spec.back_below > spec.out_above) {
      prefilter.refuse("back_below",
                       "is above prefilter.out_above; devices would come and go for ever");
    }
    prefilter.close();
  }

  void read_placement(Fields placement) {
    ReserveSpec& spec = out_.spec.reserve;
    placement.duration("reserve_after", spec.after, Micros(0), a_year);
    placement.whole("reservations", spec.most, {0, 1000});
    placement.close();
  }

  void read_defragment(Fields defragment) {
    DefragmentSpec& spec = out_.spec.defragment;
    defragment.flag("enabled", spec.enabled);
    defragment.duration("every", spec.every, seconds(10), hours(24));
    defragment.duration("horizon", spec.horizon, minutes(1), hours(48));
    defragment.part("quiet_below", spec.quiet_below);
    defragment.whole("cooldown", spec.cooldown, {0, 10'000});
    defragment.close();
  }

  void read_resize(Fields resize) {
    resize.flag("enabled", out_.spec.resize.enabled);
    resize.duration("dwell", out_.spec.resize.dwell, Micros(0), a_year);
    resize.close();
  }

  void read_devices(Fields devices) {
    devices.choice<DeviceSource>("source", out_.source,
                                 {{"auto", DeviceSource::automatic},
                                  {"simulated", DeviceSource::simulated},
                                  {"nvml", DeviceSource::nvml}});
    devices.each("nodes", nodes_listed_max, [&](Fields& item) { read_node(item); });
    if (out_.source == DeviceSource::nvml && devices.has("nodes")) {
      devices.refuse("nodes", "describes simulated devices, and devices.source is nvml");
    }
    devices.close();
  }

  // Entries of one node name add devices to one node: a node may hold several models.
  void read_node(Fields& item) {
    std::string name;
    NodeSpec host;
    DeviceSpec device;
    device.model = "A100-80G";
    std::int64_t count = 1;
    const bool named = item.name("name", name, Need::required);
    item.word("fault_domain", host.fault_domain);
    item.word("rack", host.rack);
    item.parsed("cpu", host.cpu_milli, parse_cpu_milli);
    item.memory("host_memory", host.memory);
    std::int64_t linked = 0;
    item.whole("linked", linked, {2, devices_per_node_max});
    item.word("model", device.model);
    item.whole("count", count, {1, devices_per_node_max});
    item.memory("memory", device.memory);
    enum class Partition : std::uint8_t { shared, dedicated };
    Partition partition = Partition::shared;
    item.choice<Partition>("partition", partition,
                           {{"shared", Partition::shared}, {"dedicated", Partition::dedicated}});
    device.dedicated = partition == Partition::dedicated;
    if (item.present() && !item.has("memory")) device.memory = memory_by_model(device.model);
    if (item.present() && !item.has("memory") && device.memory.value == 0) {
      item.missing("memory", "the memory of one " + device.model + " device, such as 80GiB");
    }
    item.close();
    if (!named) return;
    devices_ += count;
    if (devices_ > devices_max) {
      item.refuse("count", "makes more than " + std::to_string(devices_max) + " devices in all");
      return;
    }
    host.name = name;
    add_devices(node_called(host, item), device, {count, linked});
  }

  NodeSpec& node_called(NodeSpec host, Fields& item) {
    const auto [entry, added] = node_index_.emplace(host.name, out_.nodes.size());
    if (added) {
      if (host.fault_domain.empty()) host.fault_domain = host.name;
      return out_.nodes.emplace_back(std::move(host));
    }
    NodeSpec& known = out_.nodes[entry->second];
    const auto differs = [&](const char* field) {
      item.refuse(field, "differs from the one given before for node " + in_quotes(known.name));
    };
    if (!host.fault_domain.empty() && host.fault_domain != known.fault_domain) {
      differs("fault_domain");
    }
    if (!host.rack.empty() && host.rack != known.rack) differs("rack");
    if (host.cpu_milli != 0 && host.cpu_milli != known.cpu_milli) differs("cpu");
    if (host.memory.value != 0 && host.memory != known.memory) differs("host_memory");
    return known;
  }

  struct Count {
    std::int64_t devices;
    std::int64_t linked;  // so many have a fast link between them; 0: none
  };
  static void add_devices(NodeSpec& node, DeviceSpec device, Count count) {
    // Devices of another entry are not linked to these.
    std::int32_t pair = 0;
    for (const DeviceSpec& known : node.devices) pair = std::max(pair, known.pair + 1);
    for (std::int64_t i = 0; i < count.devices; ++i) {
      if (count.linked > 0) device.pair = pair + static_cast<std::int32_t>(i / count.linked);
      device.uuid = "SIM-" + node.name + "-" + std::to_string(node.devices.size());
      node.devices.push_back(device);
    }
  }

  // A100-80G says it itself.
  static MiB memory_by_model(std::string_view model) {
    const std::size_t dash = model.rfind('-');
    if (dash == std::string_view::npos || !model.ends_with('G')) return MiB(0);
    const auto gib = parse_whole(model.substr(dash + 1, model.size() - dash - 2));
    return gib && *gib < 10'000 ? MiB(*gib * 1024) : MiB(0);
  }

  void read_api(Fields api) {
    if (api.text("socket", out_.socket, Need::optional, 107) && out_.socket.front() != '/') {
      api.refuse("socket", "is a relative path; expected one that starts with /");
    }
    api.word("group", out_.socket_group);
    Fields tcp = api.section("tcp");
    TcpListener listener;
    if (tcp.text("listen", listener.listen)) check_listen(tcp, listener.listen);
    tcp.text("token_file", listener.token_file, Need::required);
    if (tcp.present()) out_.tcp = listener;
    tcp.close();
    api.close();
  }

  static void check_listen(Fields& tcp, std::string_view listen) {
    const std::size_t colon = listen.rfind(':');
    const auto port = colon == std::string_view::npos ? Parsed<std::int64_t>(-1)
                                                      : parse_whole(listen.substr(colon + 1));
    if (colon == 0 || !port || *port < 0 || *port > 65'535) {
      tcp.refuse("listen", in_quotes(listen) +
                               " is no address and port; expected one such as "
                               "127.0.0.1:7433");
    }
  }

  void read_gateway(Fields gateway) {
    GatewaySettings& settings = out_.gateway;
    std::string listen;
    if (gateway.text("listen", listen)) {
      check_listen(gateway, listen);
      const std::size_t colon = listen.rfind(':');
      const auto port = colon == std::string::npos ? Parsed<std::int64_t>(0)
                                                   : parse_whole(listen.substr(colon + 1));
      if (port && *port >= 1 && *port <= 65'535) {
        settings.port = static_cast<std::uint16_t>(*port);
        settings.address = listen.substr(0, colon);
        if (settings.address.starts_with('[') && settings.address.ends_with(']')) {
          settings.address = settings.address.substr(1, settings.address.size() - 2);
        }
      } else if (port && *port == 0) {
        gateway.refuse("listen", in_quotes(listen) + " has port 0; expected 1 to 65535");
      }
    }
    const auto path = [&](const char* key, std::string& into) {
      if (gateway.text(key, into, Need::optional, 1024) && into.front() != '/') {
        gateway.refuse(key, "is a relative path; expected one that starts with /");
      }
      if (into.find_first_of(" \t\"'#\\$%") != std::string::npos) {
        gateway.refuse(key, "holds blanks, quotes or one of # \\ $ %; expected a plain path");
      }
    };
    path("certificate", settings.certificate);
    settings.certificate_place =
        place_of(gateway.reading().problems.file(),
                 {gateway.line_of("certificate"), gateway.path_of("certificate"), {}});
    using Keys = GatewaySettings::Keys;
    gateway.choice<Keys>(
        "keys", settings.keys,
        {{"off", Keys::off}, {"optional", Keys::optional}, {"required", Keys::required}});
    path("keys_file", settings.keys_file);
    gateway.close();
  }

  void read_journal(Fields journal) {
    journal.duration("retention", out_.journal_retention, hours(24), a_year * 10);
    journal.close();
  }

  Reading& reading_;
  PoolFile out_;
  std::map<std::string, std::size_t> node_index_;
  std::int64_t devices_ = 0;
};

}  // namespace

std::optional<PoolFile> parse_pool_file(std::string_view text, Problems& problems) {
  return parse_pool_file(text, {}, problems);
}

std::optional<PoolFile> parse_pool_file(std::string_view text,
                                        const std::vector<Override>& overrides,
                                        Problems& problems) {
  std::optional<Node> root = parse_document(text, problems);
  if (!root) return std::nullopt;
  for (const Override& o : overrides) {
    const int line = problems.add_origin(o.where);
    if (!set_value(*root, o.key, o.value, line, problems)) return std::nullopt;
  }
  Reading reading{problems};
  PoolFile file = PoolReader(reading).read(*root);
  if (!problems.empty()) return std::nullopt;
  file.file = problems.file();
  return file;
}

std::vector<NodeSpec> default_simulated_nodes(const PoolSpec& spec) {
  NodeSpec node;
  node.name = node.fault_domain = "local";
  const std::int32_t count = spec.total_gpus > 0 ? spec.total_gpus : 4;
  for (std::int32_t i = 0; i < count; ++i) {
    DeviceSpec& device = node.devices.emplace_back();
    device.uuid = "SIM-local-" + std::to_string(i);
    device.model = "A100-80G";
    device.memory = MiB(80 * 1024);
  }
  return {node};
}

std::set<std::string> pool_file_keys() {
  return keys_asked_by([](Reading& reading) { PoolReader(reading).read(Node()); });
}

}  // namespace neap::config
