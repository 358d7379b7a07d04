#include "gateway/haproxy/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <limits>
#include <random>
#include <set>

#include "gateway/haproxy/admission_script.h"

#include "gateway/haproxy/records.h"

namespace neap::gateway {
namespace {

constexpr std::string_view endpoint_mark = "#neap endpoint ";
constexpr std::string_view handoff_server = "handoff";
constexpr std::string_view came_mark = "x-neap-came-";

std::string address_text(const std::string& address, std::uint16_t number) {
  const std::string port = std::to_string(number);
  if (address.find(':') != std::string::npos) return "[" + address + "]:" + port;
  return address + ":" + port;
}

std::string tls_options(const Front& front) {
  if (front.certificate.empty()) return "";
  return " ssl crt " + front.certificate + " ssl-min-ver TLSv1.2 alpn http/1.1";
}

std::string openai_error(std::string_view type, std::string_view message) {
  return "{\"error\":{\"message\":\"" + std::string(message) + "\",\"type\":\"" +
         std::string(type) + "\",\"param\":null,\"code\":\"" + std::string(type) + "\"}}";
}

std::string digest_map(const ConfigPaths& paths) { return paths.folder + "/key-teams.map"; }
std::string class_map(const ConfigPaths& paths) { return paths.folder + "/key-classes.map"; }
std::string model_map(const ConfigPaths& paths) { return paths.folder + "/models.map"; }

// Who asks, by key.
std::string key_rules(const ConfigPaths& paths, const Front& front) {
  std::string out = "    http-request set-var(txn.team) str(-)\n";
  if (front.keys == Front::Keys::off) return out;
  const std::string unknown =
      "    http-request return status 401 content-type application/json hdr WWW-Authenticate "
      "Bearer string '" +
      openai_error("invalid_api_key", "Expected a known API key, as Authorization: Bearer KEY.") +
      "'";
  out +=
      "    http-request set-var(txn.key) req.hdr(authorization),regsub(^bearer\\ "
      "+,,i),sha2(256),hex,"
      "lower if { req.hdr(authorization) -m beg -i bearer }\n"
      "    http-request set-var(txn.key) req.hdr(x-api-key),sha2(256),hex,lower if "
      "!{ var(txn.key) -m found } { req.hdr(x-api-key) -m found }\n"
      "    http-request set-var(txn.team) var(txn.key),map_str(" +
      digest_map(paths) +
      ",-) if { var(txn.key) -m found }\n"
      "    http-request set-var(txn.keyprio) var(txn.key),map_str_int(" +
      class_map(paths) + ",3) if { var(txn.key) -m found }\n";
  out += unknown + (front.keys == Front::Keys::required
                        ? " if { var(txn.team) -m str -- - }\n"
                        : " if { var(txn.key) -m found } { var(txn.team) -m str -- - }\n");
  return out;
}

std::string milliseconds_up(Micros length) {
  return std::to_string(std::max<std::int64_t>(1, (length.value + 999) / 1000)) + "ms";
}

template <class Number>
bool parse_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

std::string model_of(const Endpoint& e) { return e.models.empty() ? e.service : e.models.front(); }

// The class is the header's, where it names one, else the service's usual one.
std::string class_rules(const Endpoint& e) {
  const int usual = static_cast<int>(e.admission.usual) + 1;
  std::string out = "    http-request set-var(txn.prio) int(" + std::to_string(usual) + ")\n";
  out +=
      "    http-request set-var(txn.prio) var(txn.keyprio) if { var(txn.keyprio) -m found }\n"
      "    http-request set-var(txn.prio) int(1) if { req.hdr(x-priority) -m str -i high }\n"
      "    http-request set-var(txn.prio) int(2) if { req.hdr(x-priority) -m str -i normal }\n"
      "    http-request set-var(txn.prio) int(3) if { req.hdr(x-priority) -m str -i low }\n"
      // A key's class is the highest that its requests can have.
      "    http-request set-var(txn.prio) var(txn.keyprio) if { var(txn.keyprio) -m found } "
      "{ var(txn.keyprio),sub(txn.prio) gt 0 }\n"
      "    http-request set-var(txn.class) str(normal)\n"
      "    http-request set-var(txn.class) str(high) if { var(txn.prio) -m int 1 }\n"
      "    http-request set-var(txn.class) str(low) if { var(txn.prio) -m int 3 }\n"
      "    http-request set-priority-class int(-10) if { var(txn.prio) -m int 1 }\n"
      "    http-request set-priority-class int(10) if { var(txn.prio) -m int 3 }\n";
  return out;
}

std::string refusal(std::string_view status, std::string_view type, std::string_view message) {
  return "    http-request return status " + std::string(status) +
         " content-type application/json hdr Retry-After %[var(txn.retry)]"
         " hdr Retry-After-Ms %[var(txn.retry_ms)] string '" +
         openai_error(type, message) + "' if { var(txn.deny) -m int " + std::string(status) +
         " }\n";
}

// Who meets a free place and nobody who waits goes on; all others ask the script.
std::string admission_rules(const Endpoint& e, std::size_t place) {
  const Admission& a = e.admission;
  std::string out = "    http-request set-var(txn.svc) str(" + e.service + ")\n";
  if (a.input_cost > 0 || a.output_cost > 0) {
    out +=
        "    http-request wait-for-body time 10s if METH_POST\n"
        "    http-request set-var(txn.size) req.hdr(content-length)\n"
        "    http-request set-var(txn.max_tokens) req.body,json_query('$.max_tokens','int')\n";
  }
  out += "    http-request set-var(txn.asks) int(1) if { var(" + waiting_variable(place) +
         ") -m int gt 0 } or { be_conn_free(" + e.service + ") le 0 }\n";
  out += "    http-request lua.neap_admit if { var(txn.asks) -m found }\n";
  out += refusal("429", "rate_limit_exceeded", "Too many requests wait. Try again later.");
  out += refusal("503", "service_unavailable", "No replica is ready yet. Try again later.");
  // The script was ended: its client is gone.
  out +=
      "    http-request return status 429 hdr Retry-After 1 if { var(txn.asks) -m found } "
      "!{ var(txn.passed) -m found } !{ var(txn.deny) -m found }\n";
  // The new worker logs it, too.
  out += "    http-request set-log-level silent if { var(txn.handoff) -m found }\n";
  // One that waited too long in the proxy's own queue.
  out +=
      "    http-after-response set-status 429 reason \"Too Many Requests\" if { status 503 } "
      "{ nbsrv(" +
      e.service +
      ") gt 0 } !{ srv_id -m found }\n"
      "    http-after-response set-header Retry-After 1 if { status 429 } "
      "!{ res.hdr(retry-after) -m found }\n";
  return out;
}

std::string endpoint_line(const Endpoint& e) {
  const Admission& a = e.admission;
  std::string out = std::string(endpoint_mark) + e.service + " " + e.bind;
  for (const std::int64_t number :
       {std::int64_t{e.port}, e.slo_first_byte.value, e.queue_timeout.value,
        static_cast<std::int64_t>(a.usual), std::int64_t{a.queue[0]}, std::int64_t{a.queue[1]},
        std::int64_t{a.queue[2]}, std::int64_t{a.within_slo}, std::int64_t{a.hold},
        a.hold_for.value, std::int64_t{a.adaptive}, std::int64_t{a.least},
        std::int64_t{a.input_cost}, std::int64_t{a.output_cost}, a.output_tokens}) {
    out += " " + std::to_string(number);
  }
  for (const std::string& model : e.models) out += " " + model;
  return out + "\n";
}

std::string models_listing(const std::vector<ServiceSection>& services) {
  std::string out;
  std::set<std::string> seen;
  for (const ServiceSection& section : services) {
    std::vector<std::string> names = section.endpoint.models;
    if (names.empty()) names.push_back(section.endpoint.service);
    for (const std::string& name : names) {
      if (!seen.insert(name).second) continue;
      out += (out.empty() ? "" : ",");
      out += "{\"id\":\"" + name + "\",\"object\":\"model\",\"created\":0,\"owned_by\":\"neap\"}";
    }
  }
  return "{\"object\":\"list\",\"data\":[" + out + "]}";
}

// One endpoint for all services: the request's body names the model, or its header x-model where
// the body is larger than the proxy's buffer and names it at its end.
std::string render_front(const ConfigPaths& paths, const Front& front,
                         const std::vector<ServiceSection>& services) {
  if (front.port == 0) return "";
  std::string out = "frontend f::models\n    bind " + address_text(front.bind, front.port) +
                    tls_options(front) + "\n";
  out += record_rules(paths.came_header);
  out += key_rules(paths, front);
  out += "    http-request return status 200 content-type application/json string '" +
         models_listing(services) + "' if { path /v1/models } METH_GET\n";
  out +=
      "    http-request wait-for-body time 10s if METH_POST\n"
      "    http-request set-var(txn.model) req.hdr(x-model)\n"
      "    http-request set-var(txn.model) req.body,json_query('$.model') if METH_POST "
      "!{ var(txn.model) -m found }\n"
      // json_query does not know the escape \/.
      "    http-request set-var(txn.model) "
      "'req.body,regsub(\"\\\\\\\\/\",/,g),json_query(\"$.model\")' if METH_POST "
      "!{ var(txn.model) -m found }\n"
      "    http-request set-var(txn.backend) var(txn.model),map_str(" +
      model_map(paths) +
      ")\n"
      "    http-request return status 404 content-type application/json lf-string '" +
      openai_error("model_not_found",
                   "No model %[var(txn.model),json(utf8s)] is served here; GET /v1/models lists "
                   "those that are.") +
      "' if !{ var(txn.backend) -m found }\n"
      "    use_backend %[var(txn.backend)]\n";
  return out;
}

std::string render_service(const ConfigPaths& paths, const Front& front,
                           const ServiceSection& section, std::size_t place) {
  const Endpoint& e = section.endpoint;
  std::string out = endpoint_line(e);
  out += "frontend f:" + e.service + "\n";
  out += "    bind " + address_text(e.bind, e.port) + tls_options(front) + "\n";
  out += record_rules(paths.came_header);
  out += key_rules(paths, front);
  out += "    http-request set-var(txn.model) str(" + model_of(e) + ")\n";
  out += "    default_backend " + e.service + "\n";
  out += "backend " + e.service + "\n";
  out += "    balance roundrobin\n";
  out += "    timeout queue " + milliseconds_up(e.queue_timeout) + "\n";
  out += class_rules(e);
  out += admission_rules(e, place);
  if (front.keys != Front::Keys::off) {
    // Replicas do not get to see keys.
    for (const char* header : {"authorization", "x-api-key"}) {
      out += std::string("    http-request del-header ") + header +
             " unless { var(txn.handoff) -m found }\n";
    }
  }
  if (!paths.came_header.empty()) {
    out += "    http-request set-header " + paths.came_header +
           " %[var(txn.t0)] if { var(txn.handoff) -m found }\n";
  }
  // The service's own endpoint, where by then the new worker listens. Weight 0: never by turns.
  out += "    use-server " + std::string(handoff_server) +
         " if { var(txn.handoff) -m found }\n    server " + std::string(handoff_server) + " " +
         address_text(e.bind, e.port) + " weight 0" +
         (front.certificate.empty() ? "" : " ssl verify none") + "\n";
  for (const Replica& replica : section.replicas) {
    out +=
        "    server " + server_name(replica.allocation) + " " + server_parameters(replica) + "\n";
  }
  return out;
}

std::uint64_t fingerprint(std::string_view text) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace

bool listens_at(std::string_view config, const Front& front) {
  const std::string line = "frontend f::models\n    bind " + address_text(front.bind, front.port);
  const std::size_t found = config.find(line);
  if (found == std::string_view::npos || found + line.size() == config.size()) return false;
  const char next = config[found + line.size()];
  return next == ' ' || next == '\n';
}

std::string render_probe(const ConfigPaths& paths, const Front& front) {
  return render_preamble(paths, front) + "frontend f::probe\n    bind 127.0.0.1:1" +
         tls_options(front) + "\n" + key_rules(paths, front);
}

std::string render_preamble(const ConfigPaths& paths, const Front& front) {
  std::string out = "# Written by neap, overwritten at every change.\n";
  // What the file alone does not show: a proxy that loaded others has to load again.
  out += "# script " + std::to_string(fingerprint(render_admission({}, {}))) + ", keys " +
         std::to_string(fingerprint(render_maps(paths, front, {})[digest_map(paths)] +
                                    render_maps(paths, front, {})[class_map(paths)])) +
         ", front " +
         std::to_string(fingerprint(front.certificate_version + "|" + front.certificate + "|" +
                                    address_text(front.bind, front.port) + "|" +
                                    std::to_string(static_cast<int>(front.keys)))) +
         "\n";
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
      "    hard-stop-after 600s\n";
  out += "    lua-load " + paths.admission + "\n";
  out +=
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

std::map<std::string, std::string> render_maps(const ConfigPaths& paths, const Front& front,
                                               const std::vector<Endpoint>& endpoints) {
  std::map<std::string, std::string> files;
  std::string& teams = files[digest_map(paths)];
  std::string& classes = files[class_map(paths)];
  for (const TeamKey& key : front.known) {
    teams += key.digest + " " + key.team + "\n";
    classes += key.digest + " " + std::to_string(static_cast<int>(key.highest) + 1) + "\n";
  }
  std::string& models = files[model_map(paths)];
  std::set<std::string> seen;
  for (const Endpoint& e : endpoints) {
    std::vector<std::string> names = e.models;
    if (names.empty()) names.push_back(e.service);
    for (const std::string& name : names) {
      if (seen.insert(name).second) models += name + " " + e.service + "\n";
    }
  }
  return files;
}

std::string render_config(const ConfigPaths& paths, const Front& front,
                          const std::vector<ServiceSection>& services) {
  std::string out = render_preamble(paths, front);
  out += render_front(paths, front, services);
  for (std::size_t place = 0; place < services.size(); ++place) {
    out += render_service(paths, front, services[place], place);
  }
  return out;
}

namespace {

// Service and address, the numbers of endpoint_line, names of models.
Result<Endpoint> read_endpoint(const std::vector<std::string_view>& fields) {
  constexpr std::size_t numbers_from = 2;
  std::array<std::int64_t, 15> n{};
  bool whole = fields.size() >= numbers_from + n.size();
  for (std::size_t i = 0; whole && i < n.size(); ++i) {
    whole = parse_number(fields[numbers_from + i], n[i]) && n[i] >= 0;
  }
  // Narrow fields: a number that does not fit is as damaged as none.
  for (const std::size_t i : {4U, 5U, 6U, 8U, 11U, 12U, 13U}) {
    whole = whole && n[i] <= std::numeric_limits<std::int32_t>::max();
  }
  if (!whole || n[0] > 65'535 || n[3] >= static_cast<std::int64_t>(class_count)) {
    return fail(ErrorCode::internal, "a damaged endpoint line in the proxy's configuration");
  }
  const auto narrow = [&](std::size_t i) { return static_cast<std::int32_t>(n[i]); };
  Endpoint e;
  e.service = fields[0];
  e.bind = fields[1];
  e.port = static_cast<std::uint16_t>(n[0]);
  e.slo_first_byte = Micros(n[1]);
  e.queue_timeout = Micros(n[2]);
  e.admission = {.usual = static_cast<RequestClass>(n[3]),
                 .queue = {narrow(4), narrow(5), narrow(6)},
                 .within_slo = n[7] != 0,
                 .hold = narrow(8),
                 .hold_for = Micros(n[9]),
                 .adaptive = n[10] != 0,
                 .least = narrow(11),
                 .input_cost = narrow(12),
                 .output_cost = narrow(13),
                 .output_tokens = n[14]};
  for (std::size_t i = numbers_from + n.size(); i < fields.size(); ++i) {
    e.models.emplace_back(fields[i]);
  }
  return e;
}

}  // namespace

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
    Result<Endpoint> endpoint = read_endpoint(fields);
    if (!endpoint) return tl::unexpected(endpoint.error());
    if (Result<void> checked = check_endpoint(*endpoint); !checked) {
      return tl::unexpected(checked.error());
    }
    found.push_back(std::move(*endpoint));
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

std::string came_header_in(std::string_view config) {
  const std::size_t begin = config.find(came_mark);
  if (begin == std::string_view::npos) return "";
  constexpr std::string_view hex = "0123456789abcdef";
  const std::size_t end = config.find_first_not_of(hex, begin + came_mark.size());
  return std::string(config.substr(begin, end - begin));
}

std::string new_came_header() {
  std::random_device random;
  char secret[33];
  std::snprintf(secret, sizeof secret, "%08x%08x%08x%08x", random(), random(), random(), random());
  return std::string(came_mark) + secret;
}

}  // namespace neap::gateway
