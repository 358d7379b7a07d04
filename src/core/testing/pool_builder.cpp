#include "core/testing/pool_builder.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "core/model/pool_index.h"

namespace neap::testing {

namespace {

using Words = std::vector<std::string>;

[[noreturn]] void wrong(std::string_view line, std::string_view what) {
  std::fprintf(stderr, "pool_builder: %.*s: in \"%.*s\"\n", static_cast<int>(what.size()),
               what.data(), static_cast<int>(line.size()), line.data());
  std::abort();
}

Words split(std::string_view text, char by) {
  Words out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(by), text.size());
    if (end > 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::int64_t number(std::string_view word) {
  std::int64_t value = 0;
  const auto result = std::from_chars(word.data(), word.data() + word.size(), value);
  if (result.ec != std::errc() || result.ptr != word.data() + word.size()) {
    wrong(word, "not a number");
  }
  return value;
}

std::pair<std::string, std::string> key_value(const std::string& word) {
  const std::size_t at = word.find('=');
  if (at == std::string::npos) return {word, "1"};
  return {word.substr(0, at), word.substr(at + 1)};
}

Purpose purpose_of(const std::string& word) {
  for (const Purpose p : {Purpose::inference, Purpose::interactive, Purpose::batch}) {
    if (name_of(p) == word) return p;
  }
  wrong(word, "no such purpose");
}

Phase phase_of(const std::string& word) {
  for (const Phase p :
       {Phase::waiting, Phase::starting, Phase::running, Phase::yielding, Phase::stopping}) {
    if (name_of(p) == word) return p;
  }
  wrong(word, "no such phase");
}

Role role_of(char letter) {
  switch (letter) {
    case 'c':
      return Role::core;
    case 'b':
      return Role::buffer;
    case 'g':
      return Role::guard;
    case 'd':
      return Role::dedicated;
    case 'l':
      return Role::lane;
    default:
      wrong(std::string(1, letter), "no such role");
  }
}

void add_tier(PoolState& state, const Words& words) {
  if (words.size() != 4) wrong(words.front(), "expected: tier NAME WEIGHT PURPOSE");
  state.spec.tiers.push_back(
      {words[1], static_cast<std::int32_t>(number(words[2])), purpose_of(words[3])});
}

ModelId model_named(PoolState& state, const std::string& name, MiB memory) {
  for (std::uint16_t m = 0; m < state.models.size(); ++m) {
    if (state.models[m].name != name) continue;
    state.models[m].memory = std::min(state.models[m].memory, memory);
    return ModelId(m);
  }
  state.models.push_back({name, memory, 0});
  return ModelId(static_cast<std::uint16_t>(state.models.size() - 1));
}

std::size_t position_of(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  const auto at = static_cast<std::size_t>(found - names.begin());
  if (found == names.end()) names.push_back(name);
  return at;
}

// What a node line says beside its devices' number, model and memory.
struct NodeKeys {
  std::string roles, rack;
  std::int64_t cpu = 0, memory = 0;
  std::int32_t linked = 0;
};

NodeKeys node_keys(const Words& words) {
  NodeKeys keys;
  for (std::size_t i = 6; i < words.size(); ++i) {
    const auto [key, value] = key_value(words[i]);
    if (key == "roles")
      keys.roles = value;
    else if (key == "rack")
      keys.rack = value;
    else if (key == "cpu")
      keys.cpu = number(value);
    else if (key == "mem")
      keys.memory = number(value);
    else if (key == "linked")
      keys.linked = static_cast<std::int32_t>(number(value));
    else
      wrong(key, "no such key of a node");
  }
  return keys;
}

void add_node(PoolState& state, const Words& words) {
  if (words.size() < 6) wrong(words.front(), "expected: node NAME DOMAIN COUNT MODEL MIB");
  const NodeKeys keys = node_keys(words);
  const auto at = static_cast<std::uint16_t>(position_of(state.domains, words[2]));
  const MiB memory(number(words[5]));
  const ModelId model = model_named(state, words[4], memory);
  const auto count = static_cast<std::int32_t>(number(words[3]));
  const std::string& roles = keys.roles;
  const NodeId id(static_cast<std::uint32_t>(state.nodes.size()));
  NodeState& node = state.nodes.emplace_back();
  node.name = words[1];
  node.domain = DomainId(at);
  const std::string rack = words[2] + "/" + (keys.rack.empty() ? "node " + words[1] : keys.rack);
  node.rack = RackId(static_cast<std::uint32_t>(position_of(state.racks, rack)));
  node.cpu_milli = keys.cpu;
  node.memory = MiB(keys.memory);
  node.first = DeviceId(static_cast<std::uint32_t>(state.devices.size()));
  node.count = count;
  for (std::int32_t i = 0; i < count; ++i) {
    DeviceState& device = state.devices.emplace_back();
    device.node = id;
    device.index = i;
    device.uuid = words[1] + "-" + std::to_string(i);
    device.model = model;
    if (keys.linked > 0) device.pair = i / keys.linked;
    device.memory = memory;
    if (static_cast<std::size_t>(i) < roles.size()) {
      device.role = role_of(roles[static_cast<std::size_t>(i)]);
    }
  }
  ModelState& m = state.models[model.value];
  m.per_node = std::max(m.per_node, count);
}

std::vector<DeviceId> devices_of(const PoolState& state, const std::string& text) {
  std::vector<DeviceId> out;
  for (const std::string& part : split(text, ',')) {
    const Words place = split(part, ':');
    const auto node = std::find_if(state.nodes.begin(), state.nodes.end(),
                                   [&](const NodeState& n) { return n.name == place.front(); });
    if (node == state.nodes.end() || place.size() != 2) wrong(part, "no such device");
    const Words range = split(place[1], '-');
    for (std::int64_t i = number(range.front()); i <= number(range.back()); ++i) {
      if (i >= node->count) wrong(part, "no such device");
      out.emplace_back(node->first.value + static_cast<std::uint32_t>(i));
    }
  }
  return out;
}

void set_contract(ContractSpec& contract, const std::string& text) {
  contract.sdk = false;
  for (const std::string& way : split(text, '+')) {
    if (way == "sdk")
      contract.sdk = true;
    else if (way == "signals")
      contract.signals = true;
    else if (way == "watch")
      contract.watch = true;
    else if (way == "ondemand")
      contract.on_demand = true;
    else if (way != "none")
      wrong(way, "no such contract");
  }
}

bool set_length(TaskState& task, const std::string& key, Micros value) {
  ContractSpec& c = task.spec.contract;
  if (key == "interval")
    c.interval = value;
  else if (key == "save")
    c.save = value;
  else if (key == "stall")
    c.stall = value;
  else if (key == "drain")
    c.drain = value;
  else if (key == "release")
    c.release = value;
  else if (key == "restore")
    c.restore = value;
  else if (key == "seen_save")
    task.seen_save = value;
  else if (key == "seen_stall")
    task.seen_stall = value;
  else if (key == "seen_restore")
    task.seen_restore = value;
  else if (key == "work")
    task.spec.work = value;
  else if (key == "deadline") {
    task.spec.deadline = pool_now + value;
    task.deadline = DeadlineVerdict::accepted;
  } else if (key == "started")
    task.started_at = task.placed_at = pool_now + value;
  else if (key == "captured")
    task.captured = pool_now + value;
  else
    return false;
  return true;
}

void set_count(TaskState& task, const std::string& key, std::int64_t value) {
  const auto small = static_cast<std::int32_t>(value);
  if (key == "share")
    task.spec.request.share = MilliGpu(value);
  else if (key == "memory")
    task.spec.request.memory = MiB(value);
  else if (key == "count")
    task.spec.request.count = small;
  else if (key == "preemptions")
    task.preemptions = small;
  else if (key == "today")
    task.preemptions_today = small;
  else if (key == "interruptible")
    task.spec.interruptible = value != 0;
  else if (key == "lane")
    task.lane = value != 0 ? LaneUse::borrows : LaneUse::none;
  else if (key == "ondemand_seen")
    task.on_demand_seen = value != 0;
  else
    wrong(key, "no such key");
}

Cell cell_named(const std::string& word) {
  constexpr const char* names[] = {"any", "device", "pair", "node", "rack", "domain"};
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if (word == names[i]) return static_cast<Cell>(i);
  }
  wrong(word, "no such cell");
}

bool set_nearness(Request& request, const std::string& key, const std::string& value) {
  if (key == "within") {
    request.near.within = cell_named(value);
  } else if (key == "exclude") {
    request.near.exclude = split(value, '+');
    std::sort(request.near.exclude.begin(), request.near.exclude.end());
  } else if (key == "group") {
    request.near.group = value;
  } else if (key == "apart") {
    request.near.apart = cell_named(value);
  } else if (key == "per_domain") {
    request.near.per_domain = static_cast<std::int32_t>(number(value));
  } else if (key == "weights") {
    request.near.weights = value;
  } else if (key == "cpu") {
    request.cpu_milli = number(value);
  } else if (key == "mem") {
    request.host_memory = MiB(number(value));
  } else {
    return false;
  }
  return true;
}

void set_key(const PoolState& state, TaskState& task, const std::string& word) {
  const auto [key, value] = key_value(word);
  if (key == "on") {
    for (const DeviceId d : devices_of(state, value)) task.slots.push_back({d, {}, {}});
  } else if (key == "phase") {
    task.phase = phase_of(value);
  } else if (key == "trust") {
    task.spec.request.trust_domain = value;
  } else if (key == "models") {
    task.spec.request.models = split(value, '+');
  } else if (key == "contract") {
    set_contract(task.spec.contract, value);
  } else if (key == "window") {
    const Words range = split(value, '-');
    task.spec.windows.push_back({seconds(number(range.front())), seconds(number(range.back()))});
  } else if (set_nearness(task.spec.request, key, value)) {
    return;
  } else if (!set_length(task, key, seconds(std::strtol(value.c_str(), nullptr, 10)))) {
    set_count(task, key, number(value));
  }
}

void add_task(PoolState& state, const Words& words) {
  if (words.size() < 3) wrong(words.front(), "expected: task NAME TIER KEY=VALUE...");
  TaskState& task = state.tasks.add();
  task.spec.name = words[1];
  task.spec.tier = words[2];
  task.tier = tier_named(state, words[2]);
  task.purpose = state.tier(task.tier).purpose;
  task.phase = Phase::running;
  task.started_at = task.placed_at = pool_now - hours(10);
  task.preemption_day = pool_now.us / hours(24).value;
  task.spec.contract.sdk = true;
  task.captured = Time(0);
  for (std::size_t i = 3; i < words.size(); ++i) set_key(state, task, words[i]);
  if (task.captured == Time(0)) {
    task.captured = std::max(task.started_at, pool_now - seconds(60));
  }
  Request& request = task.spec.request;
  if (!task.slots.empty()) request.count = static_cast<std::int32_t>(task.slots.size());
  for (Slot& slot : task.slots) {
    slot.share = request.share;
    slot.memory = request.share == whole_device ? state.device(slot.device).memory : request.memory;
  }
  if (task.slots.empty()) task.phase = Phase::waiting;
  if (holds_devices(task.phase)) task.allocation = AllocationId(state.next_allocation++);
  task.releasable = true;
}

}  // namespace

PoolState pool_of(std::string_view text) {
  PoolState state;
  state.configured = true;
  state.now = pool_now;
  const Words lines = split(text, '\n');
  std::vector<Words> parsed;
  for (const std::string& line : lines) {
    Words words = split(line, ' ');
    if (!words.empty() && words.front().front() != '#') parsed.push_back(std::move(words));
  }
  for (const Words& words : parsed) {
    if (words.front() == "tier") add_tier(state, words);
  }
  if (state.spec.tiers.empty()) {
    state.spec.tiers = {{"infer", 100, Purpose::inference},
                        {"talk", 90, Purpose::interactive},
                        {"near", 80, Purpose::batch},
                        {"normal", 40, Purpose::batch}};
  }
  for (const Words& words : parsed) {
    if (words.front() == "node")
      add_node(state, words);
    else if (words.front() == "task")
      add_task(state, words);
    else if (words.front() != "tier")
      wrong(words.front(), "no such line");
  }
  rebuild_index(state);
  return state;
}

TaskId task_named(const PoolState& state, std::string_view name) {
  TaskId found;
  state.tasks.for_each([&](const TaskState& task) {
    if (task.spec.name == name) found = task.id;
  });
  if (!found.valid()) wrong(name, "no such task");
  return found;
}

TierId tier_named(const PoolState& state, std::string_view name) {
  for (std::size_t t = 0; t < state.spec.tiers.size(); ++t) {
    if (state.spec.tiers[t].name == name) return TierId(static_cast<std::uint8_t>(t));
  }
  wrong(name, "no such tier");
}

Shape demand_of(const PoolState& state, std::string_view text) {
  const Words words = split(text, ' ');
  TaskState task;
  Shape shape;
  shape.tier = tier_named(state, words.front());
  shape.purpose = state.tier(shape.tier).purpose;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "releasable")
      shape.releasable = true;
    else if (words[i] == "lane")
      shape.lane = LaneUse::borrows;
    else if (words[i] == "dedicated")
      shape.dedicated = true;
    else
      set_key(state, task, words[i]);
  }
  shape.request = task.spec.request;
  shape.request.near.group = group_of(task.spec);
  return shape;
}

}  // namespace neap::testing
