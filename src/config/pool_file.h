// The pool file: what the operator says about the pool. Every key is described in
// docs/operators/configuration.md, and a test compares the two.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/host.h"
#include "config/ladder.h"
#include "config/problem.h"
#include "core/model/spec.h"

namespace neap::config {

// Where devices come from. automatic: the driver's when there are any, else simulated ones.
enum class DeviceSource : std::uint8_t { automatic, simulated, nvml };

struct TcpListener {
  std::string listen = "127.0.0.1:7433";  // address:port
  std::string token_file;
};

// What the endpoints of all services have in common.
struct GatewaySettings {
  enum class Keys : std::uint8_t { off, optional, required };
  std::string address;  // numeric; of the shared endpoint, empty: there is none
  std::uint16_t port = 0;
  std::string certificate;        // absolute path of a PEM file, chain and key; empty: clear text
  std::string certificate_place;  // "pool.yaml:7: gateway.certificate"
  Keys keys = Keys::off;
  std::string keys_file;  // empty: <state_dir>/keys
};

struct PoolFile {
  std::string file;
  PoolSpec spec;
  DeviceSource source = DeviceSource::automatic;
  std::vector<NodeSpec> nodes;  // of simulated devices; empty when the file names none
  std::string socket;           // empty: <state_dir>/neap.sock
  std::string socket_group;     // empty: the owner and root alone
  std::optional<TcpListener> tcp;
  GatewaySettings gateway;
  PoolHost host;
  std::string state_dir;  // empty: /var/lib/neap for root, else ~/.local/state/neap
  Micros journal_retention = hours(24 * 90);
  LadderSettings ladder;
};

// The file as understood, or nothing when `problems` has gained an entry.
[[nodiscard]] std::optional<PoolFile> parse_pool_file(std::string_view text, Problems& problems);

// A value that stands for the file's own, or beside it: key "preempt.fixed_cost" or
// "priority_tiers[1].weight", value in YAML as the file would have it. `where` is what errors name.
struct Override {
  std::string key;
  std::string value;
  std::string where;
};
[[nodiscard]] std::optional<PoolFile> parse_pool_file(std::string_view text,
                                                      const std::vector<Override>& overrides,
                                                      Problems& problems);

// The devices to pretend when the file names none: one node of `total_gpus` A100-80G, or of 4.
[[nodiscard]] std::vector<NodeSpec> default_simulated_nodes(const PoolSpec& spec);

// All accepted keys, as "pool.total_gpus" or "priority_tiers[].name".
[[nodiscard]] std::set<std::string> pool_file_keys();

}  // namespace neap::config
