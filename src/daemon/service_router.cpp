#include "daemon/service_router.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "config/api_keys.h"
#include "config/gateway.h"
#include "core/model/pool_index.h"
#include "daemon/latency_view.h"
#include "daemon/log.h"
#include "daemon/model_claims.h"

namespace neap::daemon {

namespace {

gateway::Gateway::Done report_failure(std::string what) {
  return [what = std::move(what)](Result<void> done) {
    if (!done) log_warning(fmt::format("{}: {}", what, to_string(done.error())));
  };
}

// A service that was submitted before there were such settings has the usual ones.
void set_admission(const ServiceSpec& spec, gateway::Endpoint& endpoint) {
  const auto given = config::gateway_of_launch(spec.launch).value_or(config::ServiceGateway());
  gateway::Admission& admission = endpoint.admission;
  if (given.usual_class == "high") admission.usual = gateway::RequestClass::high;
  if (given.usual_class == "low") admission.usual = gateway::RequestClass::low;
  admission.queue = {given.queue_high, given.queue_normal, given.queue_low};
  admission.within_slo = given.wait_within_slo;
  admission.hold = given.hold;
  admission.hold_for = given.hold_for;
  admission.adaptive = given.adaptive;
  admission.least = given.least_concurrency;
  admission.input_cost = given.input_cost;
  admission.output_cost = given.output_cost;
  admission.output_tokens = given.output_tokens;
  endpoint.queue_timeout = given.wait;
  endpoint.models = given.models;
}

// Differs when the file was changed or replaced; "-" where there is none.
std::string version_of(const std::string& path) {
  struct stat known {};
  if (path.empty() || ::stat(path.c_str(), &known) != 0) return "-";
  // With the time of its attributes: a file that could not be read may become readable.
  return fmt::format("{}.{}.{}.{}.{}.{}", known.st_ino, known.st_size, known.st_mtim.tv_sec,
                     known.st_mtim.tv_nsec, known.st_ctim.tv_sec, known.st_ctim.tv_nsec);
}

gateway::TeamKey team_key(const config::ApiKey& key) {
  gateway::TeamKey out{.digest = key.digest, .team = key.team};
  if (key.highest == "normal") out.highest = gateway::RequestClass::normal;
  if (key.highest == "low") out.highest = gateway::RequestClass::low;
  return out;
}

bool takes_requests(const TaskState& task) {
  return task.service.valid() && task.ready && task.phase == Phase::running;
}

}  // namespace

std::uint16_t service_port(const std::string& launch) {
  const auto json = nlohmann::json::parse(launch, nullptr, false);
  if (!json.is_object()) return 0;
  const auto port = json.find("port");
  if (port == json.end() || !port->is_number_integer()) return 0;
  const auto value = port->get<std::int64_t>();
  return value > 0 && value < 65'536 ? static_cast<std::uint16_t>(value) : std::uint16_t{0};
}

ServiceRouter::ServiceRouter(gateway::Gateway& gateway, Ports ports,
                             config::GatewaySettings settings)
    : gateway_(gateway),
      ports_(std::move(ports)),
      settings_(std::move(settings)),
      release_([this](const StopTask& action) { ports_.carry_out(action); }) {}

ServiceRouter::~ServiceRouter() { stop_sampling(); }

void ServiceRouter::refresh_front() {
  const bool keyed = settings_.keys != config::GatewaySettings::Keys::off;
  const std::string certificate = version_of(settings_.certificate);
  const std::string seen = certificate + "/" + (keyed ? version_of(settings_.keys_file) : "");
  if (seen == front_seen_) return;
  gateway::Front front;
  front.bind = settings_.address.empty() ? front.bind : settings_.address;
  front.port = settings_.port;
  front.certificate = settings_.certificate;
  front.certificate_version = certificate;
  front.keys = static_cast<gateway::Front::Keys>(settings_.keys);
  std::string trouble;
  if (keyed) {
    const auto keys = config::load_keys(settings_.keys_file);
    if (!keys) {
      trouble = to_string(keys.error());
    } else {
      for (const config::ApiKey& key : *keys) front.known.push_back(team_key(key));
    }
  }
  if (trouble != front_trouble_ && !trouble.empty()) log_warning("keys of requests: " + trouble);
  {
    const std::scoped_lock lock(mutex_);
    front_trouble_ = trouble;
  }
  // At the start nobody is let in by keys that cannot be read.
  if (!trouble.empty() && !front_seen_.empty()) return;
  front_seen_ = seen;
  gateway_.set_front(std::move(front), report_failure("what endpoints have in common"));
}

void ServiceRouter::restore(const PoolState& state) {
  refresh_front();
  for (const std::string& twice : models_claimed_twice(state)) log_warning(twice);
  for (const ServiceState& service : state.services) {
    if (service.removed && service.replicas.empty()) continue;
    ensure(service);
    for (const TaskId id : service.replicas) {
      const TaskState& task = state.tasks.at(id);
      if (takes_requests(task)) add(state, task);
    }
  }
  gateway_.forget_unclaimed(report_failure("old members of the proxy"));
}

void ServiceRouter::ensure(const ServiceState& service) {
  gateway::Endpoint endpoint;
  endpoint.service = service.spec.name;
  endpoint.port = service_port(service.spec.launch);
  if (service.spec.slo_first_byte) endpoint.slo_first_byte = *service.spec.slo_first_byte;
  set_admission(service.spec, endpoint);
  {
    const std::scoped_lock lock(mutex_);
    services_[service.spec.name] = endpoint.port;
  }
  gateway_.ensure_service(endpoint, report_failure("service " + service.spec.name));
}

void ServiceRouter::add(const PoolState& state, const TaskState& task) {
  const auto port = ports_.port_of(task.allocation);
  if (!port) {
    log_warning(fmt::format("replica {} has no known port and gets no requests", task.spec.name));
    return;
  }
  const ServiceSpec& spec = state.service(task.service).spec;
  {
    const std::scoped_lock lock(mutex_);
    replicas_[task.allocation] = {spec.name, static_cast<std::uint16_t>(*port), spec.drain_timeout,
                                  engine::kind_of_launch(task.spec.launch)};
  }
  gateway::Replica replica;
  replica.service = spec.name;
  replica.allocation = task.allocation;
  replica.port = static_cast<std::uint16_t>(*port);
  replica.max_concurrency = spec.concurrency;
  gateway_.add_replica(replica, report_failure("replica " + task.spec.name));
}

void ServiceRouter::note(const PoolState& state, const Record& record) {
  if (const auto* decision = std::get_if<Decision>(&record.body)) {
    const auto* entered = std::get_if<StageEntered>(decision);
    const auto* rolled = std::get_if<ServiceRolled>(decision);
    if (entered != nullptr && entered->service.valid()) ensure(state.service(entered->service));
    if (rolled != nullptr) ensure(state.service(rolled->service));
    return;
  }
  const auto* event = std::get_if<Event>(&record.body);
  if (const auto* submitted = std::get_if<ServiceSubmitted>(event)) {
    if (const auto id = find_live_service(state, submitted->spec.name)) ensure(state.service(*id));
  } else if (const auto* replaced = std::get_if<ServiceReplaced>(event)) {
    if (const auto id = find_live_service(state, replaced->spec.name)) ensure(state.service(*id));
  } else if (std::holds_alternative<ReplicaHealthy>(*event)) {
    // The state may be ahead of the record: what is being stopped by now is not added.
    const TaskState* task = state.tasks.find(record.reporter);
    if (task != nullptr && takes_requests(*task)) add(state, *task);
  } else if (const auto* unhealthy = std::get_if<ReplicaUnhealthy>(event)) {
    const std::scoped_lock lock(mutex_);
    if (const auto routed = replicas_.find(unhealthy->stamp.source); routed != replicas_.end()) {
      gateway_.drain_replica({routed->second.service, routed->first}, Micros(0),
                             [](const auto&) {});
    }
  } else if (const auto* exited = std::get_if<TaskExited>(event)) {
    const std::scoped_lock lock(mutex_);
    const auto routed = replicas_.find(exited->stamp.source);
    if (routed != replicas_.end()) {
      gateway_.remove_replica({routed->second.service, routed->first}, Micros(0),
                              report_failure("leaving replica"));
      replicas_.erase(routed);
    }
  }
  for (auto at = services_.begin(); at != services_.end();) {
    // Removed and empty: nobody will answer there any more.
    const bool live = find_live_service(state, at->first).has_value();
    const bool served = std::any_of(replicas_.begin(), replicas_.end(),
                                    [&](const auto& r) { return r.second.service == at->first; });
    if (live || served) {
      ++at;
      continue;
    }
    gateway_.remove_service(at->first, report_failure("removal of service " + at->first));
    const std::scoped_lock lock(mutex_);
    burning_.erase(at->first);
    at = services_.erase(at);
  }
}

bool ServiceRouter::stop_replica(const StopTask& action) {
  Routed routed;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = replicas_.find(action.allocation);
    if (found == replicas_.end()) return false;
    routed = found->second;
  }
  const LeavingReplica leaving{action.allocation, routed.engine, routed.port};
  gateway_.drain_replica({routed.service, action.allocation}, routed.drain,
                         [this, leaving, action](const Result<gateway::Drained>& drained) {
                           // Stopped whatever came of that; who still answers needs all its memory
                           // until its end.
                           if (drained && drained->still_in_flight == 0)
                             return release_.stop_after(leaving, action);
                           ports_.carry_out(action);
                         });
  release_.drains(leaving);
  return true;
}

std::string ServiceRouter::address_of(const std::string& service) const {
  const std::scoped_lock lock(mutex_);
  const auto found = services_.find(service);
  if (found == services_.end() || found->second == 0) return {};
  const std::string scheme = settings_.certificate.empty() ? "http" : "https";
  return scheme + "://127.0.0.1:" + std::to_string(found->second);
}

bool ServiceRouter::serves_any() const {
  const std::scoped_lock lock(mutex_);
  return !services_.empty();
}

std::string ServiceRouter::trouble() const {
  const std::scoped_lock lock(mutex_);
  const std::string keys = front_trouble_.empty() ? "" : "keys of requests: " + front_trouble_;
  return trouble_ + (trouble_.empty() || keys.empty() ? "" : "; ") + keys;
}

void ServiceRouter::set_trouble(std::string detail) {
  const std::scoped_lock lock(mutex_);
  trouble_ = std::move(detail);
}

void ServiceRouter::sample_all() {
  std::vector<std::string> names;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [name, port] : services_) names.push_back(name);
  }
  for (const std::string& name : names) {
    gateway_.sample(name, [this, name](Result<gateway::ServiceSample> sample) {
      ServiceMeasured measured{name, std::nullopt};
      if (sample) {
        measured.in_use = sample->in_flight + sample->queued;
        measured.queued = sample->queued;
        measured.first_byte_p95 = sample->first_byte_p95;
        measured.ended = ended_since(name, sample->requests);
        note_burn(name, sample->burn);
      }
      ports_.post(measured);
    });
  }
}

std::vector<EngineWatch::Replica> ServiceRouter::replicas() const {
  const std::scoped_lock lock(mutex_);
  std::vector<EngineWatch::Replica> all;
  for (const auto& [allocation, routed] : replicas_) {
    all.push_back({routed.service, allocation, routed.port});
  }
  return all;
}

void ServiceRouter::note_burn(const std::string& service, const measure::BurnReport& burn) {
  const std::string text = burn_text(burn);
  const std::scoped_lock lock(mutex_);
  if (!services_.contains(service)) return;
  std::string& known = burning_[service];
  if (known.empty() != text.empty()) {
    log_warning(text.empty() ? fmt::format("service {} keeps to its SLO again", service)
                             : fmt::format("service {} burns its SLO: {}", service, text));
  }
  known = text;
}

std::vector<api::Condition> ServiceRouter::conditions() const {
  std::vector<api::Condition> all;
  if (std::string suffered = trouble(); !suffered.empty()) {
    all.push_back({"gateway", std::move(suffered)});
  }
  const std::scoped_lock lock(mutex_);
  for (const auto& [service, text] : burning_) {
    if (text.empty()) continue;
    all.push_back(
        {"slo_burn", "service " + service + " fails more than its objective allows: " + text});
  }
  return all;
}

Result<gateway::ServiceLatency> ServiceRouter::latency_of(const std::string& service) {
  // Kept by the callback, which may come after the caller has gone.
  auto answer = std::make_shared<std::promise<Result<gateway::ServiceLatency>>>();
  auto future = answer->get_future();
  gateway_.latency(service, [answer](Result<gateway::ServiceLatency> latency) {
    answer->set_value(std::move(latency));
  });
  if (future.wait_for(std::chrono::seconds(5)) != std::future_status::ready) {
    return fail(ErrorCode::unavailable, "the gateway does not answer");
  }
  return future.get();
}

// Nothing with the first sample, and after the gateway began to count anew.
std::optional<std::int64_t> ServiceRouter::ended_since(const std::string& service,
                                                       std::uint64_t requests) {
  const std::scoped_lock lock(mutex_);
  const auto [known, is_new] = requests_.try_emplace(service, requests);
  const std::uint64_t before = std::exchange(known->second, requests);
  if (is_new || requests < before) return std::nullopt;
  return static_cast<std::int64_t>(requests - before);
}

void ServiceRouter::start_sampling() {
  sampler_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, std::chrono::seconds(1),
                          [&] { return stop.stop_requested(); })) {
      sample_all();
      refresh_front();
    }
  });
}

void ServiceRouter::stop_sampling() {
  if (sampler_.joinable()) {
    sampler_.request_stop();
    sampler_.join();
  }
}

}  // namespace neap::daemon
