// The proxy's configuration file. It also holds, in comment lines, what is needed to take over a
// running proxy: one file, so that the two cannot disagree.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/result.h"
#include "gateway/gateway.h"

namespace neap::gateway {

struct ConfigPaths {
  std::string admin_socket;
  std::string idle_socket;
  std::string admission;  // the script
  std::string folder;     // of the maps
  std::string run_as;     // user whose rights the workers take; empty: unchanged
  // In which a worker that ends tells the next when a request came that waits. Its name is a
  // secret, so that no client can say so. Empty: it does not tell.
  std::string came_header;
};

struct ServiceSection {
  Endpoint endpoint;
  std::vector<Replica> replicas;  // those that take requests
};

[[nodiscard]] Result<void> check_endpoint(const Endpoint& endpoint);
[[nodiscard]] Result<void> check_front(const Front& front);
[[nodiscard]] bool valid_model(std::string_view name);
[[nodiscard]] Result<void> check_replica(const Replica& replica);

// Everything before the services: equal in two files if the same neap wrote them.
[[nodiscard]] std::string render_preamble(const ConfigPaths& paths, const Front& front);
[[nodiscard]] std::string render_config(const ConfigPaths& paths, const Front& front,
                                        const std::vector<ServiceSection>& services);
// Files that the configuration names, by path: teams and classes by digest of key, services by
// model. A model that two services claim is the first one's.
[[nodiscard]] std::map<std::string, std::string> render_maps(
    const ConfigPaths& paths, const Front& front, const std::vector<Endpoint>& endpoints);
// Whether a proxy of this configuration listens where the front does, in clear text or not.
[[nodiscard]] bool listens_at(std::string_view config, const Front& front);
// Refused by the program only where what is common to all services is at fault.
[[nodiscard]] std::string render_probe(const ConfigPaths& paths, const Front& front);
// The header that a configuration hands requests over with; empty: none. And a new one.
[[nodiscard]] std::string came_header_in(std::string_view config);
[[nodiscard]] std::string new_came_header();
// Reads the comment lines back.
[[nodiscard]] Result<std::vector<Endpoint>> endpoints_in(std::string_view config);

// Names inside the proxy.
[[nodiscard]] std::string server_name(AllocationId allocation);
[[nodiscard]] AllocationId allocation_of_server(std::string_view name);  // none: not ours
// "127.0.0.1:9201 maxconn 4 ...": what follows the name in the file and in `add server`.
[[nodiscard]] std::string server_parameters(const Replica& replica);

}  // namespace neap::gateway
