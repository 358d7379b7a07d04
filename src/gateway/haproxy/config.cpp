#include "gateway/haproxy/config.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "gateway/haproxy/records.h"

namespace neap::gateway {
namespace {

constexpr std::string_view endpoint_mark = "#neap endpoint ";
constexpr std::int32_t concurrency_max = 100'000;

bool name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

bool valid_name(std::string_view name) {
  return !name.empty() && name.size() <= 63 && std::ranges::all_of(name, name_character) &&
         name.front() != '-' && name.front() != '.';
}

bool numeric_address(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

std::string bind_address(const Endpoint& endpoint) {
  const std::string port = std::to_string(endpoint.port);
  if (endpoint.bind.find(':') != std::string::npos) return "[" + endpoint.bind + "]:" + port;
  return endpoint.bind + ":" + port;
}

std::string milliseconds_up(Micros length) {
  return std::to_string(std::max<std::int64_t>(1, (length.value + 999) / 1000)) + "ms";
}

template <class Number>
bool parse_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

std::string render_service(const ServiceSection& section) {
  const Endpoint& e = section.endpoint;
  std::string out;
  out += std::string(endpoint_mark) + e.service + " " + e.bind + " " + std::to_string(e.port) +
         " " + std::to_string(e.slo_first_byte.value) + " " +
         std::to_string(e.queue_timeout.value) + "\n";
  out += "frontend f:" + e.service + "\n";
  out += "    bind " + bind_address(e) + "\n";
  out += record_rules();
  out += "    default_backend " + e.service + "\n";
  out += "backend " + e.service + "\n";
  out += "    balance roundrobin\n";
  out += "    timeout queue " + milliseconds_up(e.queue_timeout) + "\n";
  for (const Replica& replica : section.replicas) {
    out +=
        "    server " + server_name(replica.allocation) + " " + server_parameters(replica) + "\n";
  }
  return out;
}

}  // namespace

Result<void> check_endpoint(const Endpoint& endpoint) {
  if (!valid_name(endpoint.service)) {
    return fail(ErrorCode::invalid_argument,
                "a service name is 1 to 63 of a-z, 0-9, '-' and '.', a letter or digit first",
                "service");
  }
  if (endpoint.port == 0) {
    return fail(ErrorCode::invalid_argument, "a port is 1 to 65535", "port");
  }
  if (!numeric_address(endpoint.bind)) {
    return fail(ErrorCode::invalid_argument,
                "expected a numeric IPv4 or IPv6 address, such as 127.0.0.1", "bind");
  }
  if (endpoint.queue_timeout <= Micros(0) || endpoint.slo_first_byte < Micros(0)) {
    return fail(ErrorCode::invalid_argument, "a length of time is above 0", "queue_timeout");
  }
  return {};
}

Result<void> check_replica(const Replica& replica) {
  if (!valid_name(replica.service)) {
    return fail(ErrorCode::invalid_argument, "no such service name", "service");
  }
  if (!replica.allocation.valid()) {
    return fail(ErrorCode::invalid_argument, "expected an allocation", "allocation");
  }
  if (replica.port == 0) {
    return fail(ErrorCode::invalid_argument, "a port is 1 to 65535", "port");
  }
  if (replica.max_concurrency < 1 || replica.max_concurrency > concurrency_max) {
    return fail(ErrorCode::invalid_argument, "expected 1 to 100000", "max_concurrency");
  }
  return {};
}

std::string render_preamble(const ConfigPaths& paths) {
  std::string out = "# Written by neap, overwritten at every change.\n";
  out += "global\n";
  out += "    stats socket " + paths.admin_socket + " mode 600 level admin expose-fd listeners\n";
  if (!paths.run_as.empty()) out += "    user " + paths.run_as + "\n";
  // Standard output is a pipe that the daemon reads: it holds thousands of records while the
  // daemon restarts, and old workers go on writing to it after a reload (a `ring` stops there).
  out +=
      "    stats timeout 1h\n"
      "    log stdout len 1024 format raw local0\n"
      "    nbthread 1\n"
      "    tune.bufsize 65536\n"
      "    hard-stop-after 600s\n"
      "defaults\n"
      "    mode http\n"
      "    log global\n"
      "    option dontlognull\n"
      "    option http-no-delay\n"
      // Needed in this section: else a client that went away keeps its place in the queue.
      "    option abortonclose\n"
      // No idle connections to replicas: a replica that leaves has none, and HAProxy 2.6.12
      // crashes at the end of an old worker that kept some.
      "    option http-server-close\n"
      "    http-reuse never\n"
      "    option idle-close-on-response\n"
      "    option redispatch 1\n"
      "    retries 3\n"
      "    retry-on conn-failure empty-response\n"
      "    timeout client 300s\n"
      "    timeout connect 2s\n"
      "    timeout server 300s\n"
      "    timeout http-request 10s\n"
      "    timeout http-keep-alive 10s\n";
  out += "    log-format \"" + std::string(record_format()) + "\"\n";
  // Without a listener the proxy would not start: this one keeps it up when no service is left.
  out += "frontend f:\n    bind " + paths.idle_socket + " mode 600\n";
  out += "    http-request return status 404\n";
  return out;
}

std::string render_config(const ConfigPaths& paths, const std::vector<ServiceSection>& services) {
  std::string out = render_preamble(paths);
  for (const ServiceSection& section : services) out += render_service(section);
  return out;
}

Result<std::vector<Endpoint>> endpoints_in(std::string_view config) {
  std::vector<Endpoint> found;
  while (!config.empty()) {
    const std::size_t end = std::min(config.find('\n'), config.size());
    std::string_view line = config.substr(0, end);
    config.remove_prefix(std::min(end + 1, config.size()));
    if (!line.starts_with(endpoint_mark)) continue;
    line.remove_prefix(endpoint_mark.size());
    std::vector<std::string_view> fields;
    for (;;) {
      const std::size_t space = line.find(' ');
      fields.push_back(line.substr(0, space));
      if (space == std::string_view::npos) break;
      line.remove_prefix(space + 1);
    }
    Endpoint endpoint;
    if (fields.size() != 5 || !parse_number(fields[2], endpoint.port) ||
        !parse_number(fields[3], endpoint.slo_first_byte.value) ||
        !parse_number(fields[4], endpoint.queue_timeout.value)) {
      return fail(ErrorCode::internal, "a damaged endpoint line in the proxy's configuration");
    }
    endpoint.service = fields[0];
    endpoint.bind = fields[1];
    if (Result<void> checked = check_endpoint(endpoint); !checked) {
      return tl::unexpected(checked.error());
    }
    found.push_back(std::move(endpoint));
  }
  return found;
}

std::string server_name(AllocationId allocation) { return "a" + std::to_string(allocation.value); }

AllocationId allocation_of_server(std::string_view name) {
  std::uint64_t value = 0;
  if (!name.starts_with('a') || !parse_number(name.substr(1), value)) return AllocationId::none();
  return AllocationId(value);
}

std::string server_parameters(const Replica& replica) {
  return "127.0.0.1:" + std::to_string(replica.port) + " maxconn " +
         std::to_string(replica.max_concurrency) + " pool-max-conn 0";
}

}  // namespace neap::gateway
