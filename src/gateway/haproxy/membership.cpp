#include "gateway/haproxy/membership.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace neap::gateway {
namespace {

// Backends and servers, no frontends.
constexpr const char* statistics_command = "show stat -1 6 -1";

constexpr auto takeover_patience = std::chrono::seconds(5);
constexpr auto takeover_pause = std::chrono::milliseconds(100);

std::string path_of(const Replica& replica) {
  return replica.service + "/" + server_name(replica.allocation);
}

std::string path_of(const ReplicaRef& ref) {
  return ref.service + "/" + server_name(ref.allocation);
}

}  // namespace

Membership::Membership(ProxyProcess& process, ConfigPaths paths)
    : process_(process), paths_(std::move(paths)) {
  if (paths_.came_header.empty()) paths_.came_header = new_came_header();
}

void Membership::adopt() {
  if (!process_.adopt()) return;
  // The daemon before may have been killed in the middle of a reload: then it answers soon.
  const auto deadline = std::chrono::steady_clock::now() + takeover_patience;
  Result<void> taken = take_over();
  while (!taken && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(takeover_pause);
    services_.clear();
    taken = take_over();
  }
  if (taken) return;
  // One that cannot be understood is replaced: better a short gap than requests to the unknown.
  services_.clear();
  process_.stop(seconds(5));
}

Result<void> Membership::take_over() {
  const std::string config = loaded_config();
  if (const std::string known = came_header_in(config); !known.empty()) {
    paths_.came_header = known;  // the workers that run use it
  }
  const Result<std::vector<Endpoint>> endpoints = endpoints_in(config);
  if (!endpoints) return tl::unexpected(endpoints.error());
  other_preamble_ = !config.starts_with(render_preamble(paths_, front_));
  barred_ = Error{ErrorCode::unavailable, "keys and certificate were not named yet", "front"};
  for (const Endpoint& endpoint : *endpoints) {
    services_[endpoint.service] = {.endpoint = endpoint, .origin = Origin::found, .members = {}};
  }
  const Result<WorkerList> workers = process_.workers();
  if (!workers) return tl::unexpected(workers.error());
  old_workers_ = workers->old;
  const Result<std::string> csv = run_command(paths_.admin_socket, statistics_command);
  if (!csv) return tl::unexpected(csv.error());
  const Result<ProxyStatistics> statistics = read_statistics(*csv);
  if (!statistics) return tl::unexpected(statistics.error());
  for (const ServerRow& row : statistics->servers) {
    const auto service = services_.find(row.backend);
    const AllocationId allocation = allocation_of_server(row.server);
    if (service == services_.end() || !allocation.valid()) continue;
    Member member;
    member.replica = {.service = row.backend,
                      .allocation = allocation,
                      .port = row.port,
                      .max_concurrency = row.max_concurrency};
    member.limit = row.max_concurrency;
    member.taken_over = true;
    member.phase = row.up ? Phase::serving : Phase::draining;
    member.origin = Origin::found;
    member.in_proxy = true;
    service->second.members.emplace(allocation, std::move(member));
  }
  return {};
}

Result<void> Membership::start() {
  if (services_.empty()) return {};
  return apply_configuration();
}

Replica Membership::as_limited(const Member& member) {
  Replica replica = member.replica;
  if (member.limit > 0) {
    replica.max_concurrency = std::min(member.limit, replica.max_concurrency);
  }
  return replica;
}

// Puts the script in place, too: it names the same services in the same order.
Result<std::string> Membership::render() const {
  std::vector<ServiceSection> sections;
  std::vector<Endpoint> endpoints;
  for (const auto& [name, service] : services_) {
    ServiceSection section{.endpoint = service.endpoint, .replicas = {}};
    for (const auto& [allocation, member] : service.members) {
      if (member.phase == Phase::serving) section.replicas.push_back(as_limited(member));
    }
    sections.push_back(std::move(section));
    endpoints.push_back(service.endpoint);
  }
  const Result<void> placed =
      process_.put_file(process_.files().admission, render_admission(endpoints, figures_));
  if (!placed) return tl::unexpected(placed.error());
  for (const auto& [path, text] : render_maps(paths_, front_, endpoints)) {
    if (Result<void> put = process_.put_file(path, text); !put) return tl::unexpected(put.error());
  }
  Front front = front_;
  if (unshared_) front.port = 0;
  return render_config(paths_, front, sections);
}

// After a start or a reload: the worker knows exactly what the file names.
void Membership::loaded() {
  other_preamble_ = false;
  for (auto& [name, service] : services_) {
    for (auto& [allocation, member] : service.members) {
      member.in_proxy = member.phase == Phase::serving;
      if (!member.in_proxy) continue;
      for (const Gateway::Done& done : std::exchange(member.added, {})) done({});
    }
  }
}

Result<void> Membership::apply_configuration() {
  Result<void> applied = apply();
  unapplied_.reset();
  if (!applied) unapplied_ = applied.error();
  return applied;
}

Result<void> Membership::apply() {
  if (barred_) return tl::unexpected(*barred_);
  unshared_.reset();
  if (const Result<void> free = check_shared_port(); !free) unshared_ = free.error();
  const bool runs = process_.running();
  if (!runs) old_workers_.clear();
  const Result<std::string> text = render();
  if (!text) return tl::unexpected(text.error());
  Result<void> done = runs ? process_.reload(*text) : process_.start(*text);
  if (runs) {
    if (const Result<WorkerList> workers = process_.workers()) old_workers_ = workers->old;
  }
  if (done) loaded();
  return done;
}

Result<void> Membership::ensure_service(const Endpoint& endpoint) {
  if (Result<void> checked = check_endpoint(endpoint); !checked) return checked;
  if (Result<void> found = process_.find_program(); !found) return found;
  const auto known = services_.find(endpoint.service);
  std::optional<Endpoint> former;
  if (known != services_.end()) {
    known->second.origin = Origin::asked_for;
    former = known->second.endpoint;
    if (*former == endpoint && process_.running() && !other_preamble_ && !unapplied_) return {};
  }
  const bool listens = former && process_.running() && former->bind == endpoint.bind &&
                       former->port == endpoint.port;
  if (!listens) {
    if (Result<void> free = check_free(endpoint); !free) return free;
  }
  services_[endpoint.service].endpoint = endpoint;
  const std::optional<Error> before = unapplied_;
  Result<void> applied = apply_configuration();
  // What is not the service's own fault is retried, with the service.
  if (applied || front_at_fault()) return applied;
  unapplied_ = before;
  if (former) {
    services_[endpoint.service].endpoint = *former;
  } else {
    services_.erase(endpoint.service);
  }
  return applied;
}

Result<void> Membership::remove_service(const std::string& service) {
  const auto found = services_.find(service);
  if (found == services_.end()) return {};
  Service removed = std::move(found->second);
  services_.erase(found);
  figures_.erase(service);
  // Its streams end in the old worker; nobody has to wait for them.
  for (auto& [allocation, member] : removed.members) {
    for (const Gateway::DrainDone& done : member.drained) done(Drained{});
    for (const Gateway::Done& done : member.removed) done({});
    for (const Gateway::Done& done : member.added) {
      done(fail(ErrorCode::not_found, "the service was removed", service));
    }
  }
  return process_.running() ? apply_configuration() : Result<void>{};
}

Result<void> Membership::command(const std::string& line) const {
  const Result<std::string> answer = run_command(paths_.admin_socket, line);
  if (!answer) return tl::unexpected(answer.error());
  // These commands answer nothing, or one of two notices, when all is well.
  std::string text = *answer;
  std::erase(text, '\n');
  if (text.empty() || text == "New server registered." || text == "Server deleted.") return {};
  return fail(ErrorCode::internal, "the proxy refuses '" + line + "': " + text.substr(0, 300));
}

Result<void> Membership::put_in_proxy(Member& member) const {
  const std::string path = path_of(member.replica);
  if (!member.in_proxy) {
    Result<void> added =
        command("add server " + path + " " + server_parameters(as_limited(member)));
    if (!added) return added;
    member.in_proxy = true;
  }
  Result<void> ready = command("set server " + path + " state ready");
  if (ready) member.phase = Phase::serving;
  return ready;
}

Membership::Member* Membership::find(const ReplicaRef& ref) {
  const auto service = services_.find(ref.service);
  if (service == services_.end()) return nullptr;
  const auto member = service->second.members.find(ref.allocation);
  return member == service->second.members.end() ? nullptr : &member->second;
}

void Membership::add_replica(const Replica& replica, Gateway::Done done) {
  if (Result<void> checked = check_replica(replica); !checked) return done(checked);
  const auto service = services_.find(replica.service);
  if (service == services_.end()) {
    return done(fail(ErrorCode::not_found, "the gateway has no service '" + replica.service + "'"));
  }
  auto [at, fresh] = service->second.members.try_emplace(replica.allocation);
  Member& member = at->second;
  if (fresh) member.replica = replica;
  member.origin = Origin::asked_for;
  if (member.phase == Phase::leaving || member.replica.port != replica.port) {
    return done(fail(ErrorCode::conflict, "an allocation is a replica once, at one port"));
  }
  if (fresh && service->second.endpoint.admission.adaptive) {
    // Few at first; what is added to the running proxy begins so, too.
    member.limit = std::min(service->second.endpoint.admission.least, replica.max_concurrency);
  }
  if (member.replica != replica) {
    const bool adaptive = service->second.endpoint.admission.adaptive;
    member.replica = replica;
    // One that is taken over goes on with the places that it has.
    if (!adaptive) set_limit({replica.service, replica.allocation}, replica.max_concurrency);
  }
  for (const Gateway::DrainDone& waiting : std::exchange(member.drained, {})) waiting(Drained{});
  member.phase = Phase::serving;
  // Down: it is in the file of the next start, which calls back.
  Result<void> added =
      process_.running() ? put_in_proxy(member) : fail(ErrorCode::unavailable, "the proxy is down");
  if (added || added.error().code != ErrorCode::unavailable) return done(added);
  member.added.push_back(std::move(done));
}

void Membership::drain_replica(const ReplicaRef& ref, Instant deadline, Gateway::DrainDone done) {
  Member* member = find(ref);
  if (member == nullptr || !process_.running()) {
    if (member != nullptr && member->phase == Phase::serving) member->phase = Phase::draining;
    return done(Drained{});
  }
  if (member->phase == Phase::serving) {
    member->phase = Phase::draining;
    // A refusal means that the worker is gone or does not know it: nothing new reaches it.
    if (member->in_proxy) (void)command("set server " + path_of(ref) + " state drain");
  }
  member->deadline = deadline;
  member->drained.push_back(std::move(done));
}

void Membership::remove_replica(const ReplicaRef& ref, Instant deadline, Gateway::Done done) {
  Member* member = find(ref);
  if (member == nullptr) return done({});
  if (!process_.running()) {
    services_[ref.service].members.erase(ref.allocation);
    return done({});
  }
  if (member->phase != Phase::leaving) {
    member->phase = Phase::leaving;
    if (member->in_proxy) (void)command("set server " + path_of(ref) + " state maint");
  }
  member->deadline = deadline;
  member->removed.push_back(std::move(done));
}

void Membership::forget_unclaimed(Instant deadline) {
  std::vector<std::string> strays;
  for (auto& [name, service] : services_) {
    if (service.origin == Origin::found) strays.push_back(name);
    std::vector<ReplicaRef> leaving;
    for (const auto& [allocation, member] : service.members) {
      if (member.origin == Origin::found) leaving.push_back({name, allocation});
    }
    for (const ReplicaRef& ref : leaving) remove_replica(ref, deadline, [](auto) {});
  }
  for (const std::string& name : strays) (void)remove_service(name);
}

void Membership::Load::add(const std::map<std::string, AdmissionCounts>& more) {
  for (const auto& [service, one] : more) {
    AdmissionCounts& sum = counts[service];
    for (std::size_t i = 0; i < class_count; ++i) {
      sum.waiting[i] += one.waiting[i];
      sum.shed[i] += one.shed[i];
    }
    sum.passed += one.passed;
    sum.passed_cost += one.passed_cost;
  }
}

void Membership::Load::add(const ProxyStatistics& statistics) {
  for (const ServerRow& row : statistics.servers) {
    if (!allocation_of_server(row.server).valid()) continue;
    in_flight[row.backend][row.server] += row.in_flight;
    queued[row.backend] += row.queued;
    if (row.up) ++ready[row.backend];
  }
  for (const BackendRow& row : statistics.backends) queued[row.backend] += row.queued;
}

Result<Membership::Load> Membership::measure() {
  Load load;
  const Result<std::string> csv = run_command(paths_.admin_socket, statistics_command);
  if (!csv) return tl::unexpected(csv.error());
  const Result<ProxyStatistics> statistics = read_statistics(*csv);
  if (!statistics) return tl::unexpected(statistics.error());
  load.add(*statistics);
  const Result<std::string> told = run_command(paths_.admin_socket, counts_command);
  if (!told) return tl::unexpected(told.error());
  if (const auto counts = read_counts(*told)) load.add(*counts);
  if (old_workers_.empty()) return load;
  const std::map<std::string, std::int32_t> ready = load.ready;
  if (const Result<WorkerList> workers = process_.workers()) old_workers_ = workers->old;
  for (const pid_t worker : old_workers_) {
    // One that ends meanwhile has nothing in flight.
    const Result<std::string> old_csv = run_command(
        process_.files().master_socket, "@!" + std::to_string(worker) + " " + statistics_command);
    if (!old_csv) continue;
    if (const Result<ProxyStatistics> old = read_statistics(*old_csv)) load.add(*old);
    const Result<std::string> waits =
        run_command(process_.files().master_socket,
                    "@!" + std::to_string(worker) + " " + std::string(counts_command));
    if (!waits) continue;
    if (const auto counts = read_counts(*waits)) load.add(*counts);
  }
  load.ready = ready;
  return load;
}

Result<ServiceSample> Membership::sample(const std::string& service) {
  if (!services_.contains(service)) {
    return fail(ErrorCode::not_found, "the gateway has no service '" + service + "'");
  }
  if (!process_.running()) return fail(ErrorCode::unavailable, "the proxy is down");
  Result<Load> load = measure();
  if (!load) return tl::unexpected(load.error());
  ServiceSample sample;
  sample.ready_replicas = load->ready[service];
  sample.queued = load->queued[service];
  for (const auto& [server, in_flight] : load->in_flight[service]) sample.in_flight += in_flight;
  const AdmissionCounts& counts = load->counts[service];
  for (const std::int64_t waiting : counts.waiting) sample.queued += waiting;
  sample.refused = counts.shed;
  return sample;
}

Result<std::vector<ServiceView>> Membership::look() {
  if (!process_.running()) return fail(ErrorCode::unavailable, "the proxy is down");
  Result<Load> load = measure();
  if (!load) return tl::unexpected(load.error());
  std::vector<ServiceView> views;
  for (const auto& [name, service] : services_) {
    ServiceView view{.endpoint = service.endpoint,
                     .queued = load->queued[name],
                     .counts = load->counts[name],
                     .members = {}};
    for (const auto& [allocation, member] : service.members) {
      view.members.push_back({.allocation = allocation,
                              .most = member.replica.max_concurrency,
                              .limit = as_limited(member).max_concurrency,
                              .in_flight = load->in_flight[name][server_name(allocation)],
                              .serving = member.phase == Phase::serving,
                              .taken_over = member.taken_over});
    }
    views.push_back(std::move(view));
  }
  return views;
}

void Membership::set_limit(const ReplicaRef& ref, std::int32_t limit) {
  Member* member = find(ref);
  if (member == nullptr || limit < 1) return;
  if (member->limit == limit) return;
  member->limit = limit;
  if (!member->in_proxy || !process_.running()) return;
  (void)command("set maxconn server " + path_of(ref) + " " +
                std::to_string(as_limited(*member).max_concurrency));
}

void Membership::set_figures(const std::string& service, const AdmissionFigures& figures) {
  if (!services_.contains(service)) return;
  const auto [known, fresh] = figures_.try_emplace(service, figures);
  if (!fresh && known->second == figures) return;
  known->second = figures;
  if (process_.running()) (void)command(set_figures_command(service, figures));
}

bool Membership::pending() const {
  for (const auto& [name, service] : services_) {
    for (const auto& [allocation, member] : service.members) {
      if (member.phase == Phase::leaving || !member.drained.empty()) return true;
    }
  }
  return false;
}

void Membership::advance(Instant now) {
  if (!pending()) return;
  // A proxy that is gone has nothing in flight and knows nobody.
  Load load;
  if (process_.running()) {
    Result<Load> measured = measure();
    if (!measured) return;
    load = std::move(*measured);
  }
  for (auto& [name, service] : services_) {
    std::map<std::string, std::int64_t>& in_flight = load.in_flight[name];
    for (auto at = service.members.begin(); at != service.members.end();) {
      Member& member = at->second;
      const bool gone = advance_member(member, in_flight[server_name(at->first)], now);
      at = gone ? service.members.erase(at) : std::next(at);
    }
  }
}

bool Membership::advance_member(Member& member, std::int64_t in_flight, Instant now) {
  const bool due = now >= member.deadline;
  if (in_flight == 0 || due) {
    for (const Gateway::DrainDone& done : std::exchange(member.drained, {})) {
      done(Drained{.still_in_flight = in_flight});
    }
  }
  if (member.phase != Phase::leaving) return false;
  if (in_flight > 0 && !due) return false;
  if (in_flight > 0 && !member.cut && process_.running()) {
    member.cut = true;
    (void)command("shutdown sessions server " + path_of(member.replica));
    return false;
  }
  for (const Gateway::Done& done : std::exchange(member.removed, {})) done({});
  if (!member.in_proxy || !process_.running()) return true;
  // Refused while a connection is left: again at the next step.
  return command("del server " + path_of(member.replica)).has_value();
}

const Endpoint* Membership::endpoint_of(const std::string& service) const {
  const auto found = services_.find(service);
  return found == services_.end() ? nullptr : &found->second.endpoint;
}

}  // namespace neap::gateway
