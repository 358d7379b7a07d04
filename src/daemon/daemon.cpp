#include "daemon/daemon.h"

#include <fmt/format.h>

#include <malloc.h>
#include <unistd.h>
#include <cerrno>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "api/event_hub.h"
#include "api/server.h"
#include "backend/local/local_backend.h"
#include "config/pool_file.h"
#include "config/text.h"
#include "core/model/codec.h"
#include "core/model/pool_index.h"
#include "core/rules/adoption.h"
#include "daemon/contention.h"
#include "daemon/control_port.h"
#include "daemon/crash_points.h"
#include "daemon/engine_watch.h"
#include "daemon/forward_clock.h"
#include "daemon/health_checks.h"
#include "daemon/host_limit_checks.h"
#include "daemon/host_limit_views.h"
#include "daemon/latency_view.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/placement_learner.h"
#include "daemon/read_task_log.h"
#include "daemon/recovery.h"
#include "daemon/service_router.h"
#include "daemon/stage_metrics.h"
#include "daemon/start_forecaster.h"
#include "daemon/state_dir.h"
#include "daemon/stop_signals.h"
#include "device/device_source.h"
#include "gateway/haproxy/haproxy_gateway.h"

namespace neap::daemon {

namespace {

Result<config::PoolFile> load_pool_file(const DaemonOptions& options) {
  auto text = config::read_file(options.pool_file);
  if (!text) return tl::unexpected(text.error());
  config::Problems problems(options.pool_file);
  auto file = config::parse_pool_file(*text, problems);
  if (!file) return tl::unexpected(problems.to_error());
  if (!options.state_dir.empty()) file->state_dir = options.state_dir;
  if (file->state_dir.empty()) {
    const char* home = std::getenv("HOME");
    file->state_dir = ::geteuid() == 0
                          ? "/var/lib/neap"
                          : std::string(home == nullptr ? "." : home) + "/.local/state/neap";
  }
  if (!options.socket.empty()) file->socket = options.socket;
  std::error_code ignored;
  file->state_dir = std::filesystem::absolute(file->state_dir, ignored).string();
  if (file->socket.empty()) file->socket = file->state_dir + "/neap.sock";
  return std::move(*file);
}

std::string supervisor_path(const DaemonOptions& options) {
  if (!options.supervisor.empty()) return options.supervisor;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "neap-supervise").string();
}

struct FoundDevices {
  std::string source;
  std::vector<NodeSpec> nodes;
};

Result<FoundDevices> find_devices(const config::PoolFile& file) {
  const auto simulated = [&] {
    return device::simulated_source(file.nodes.empty() ? config::default_simulated_nodes(file.spec)
                                                       : file.nodes);
  };
  std::unique_ptr<device::DeviceSource> source;
  switch (file.source) {
    case config::DeviceSource::nvml:
      source = device::nvml_source();
      break;
    case config::DeviceSource::simulated:
      source = simulated();
      break;
    case config::DeviceSource::automatic:
      source = device::nvml_source();
      if (auto real = source->discover(); !real) {
        log_info(fmt::format("devices are simulated: {}", real.error().message));
        source = simulated();
      }
      break;
  }
  auto nodes = source->discover();
  if (!nodes) return tl::unexpected(nodes.error());
  return FoundDevices{source->name(), std::move(*nodes)};
}

bool same_spec(const PoolSpec& a, const PoolSpec& b) {
  Encoder x, y;
  x.put(a);
  y.put(b);
  return x.bytes() == y.bytes();
}

// What the parts beside the loop ask of the state before the start: services, pipelines and their
// tasks. A whole copy would be most of the memory that a large pool's start takes.
PoolState outline_of(const PoolState& state) {
  PoolState out;
  out.now = state.now;
  out.next_allocation = state.next_allocation;
  out.services = state.services;
  out.pipelines = state.pipelines;
  std::vector<TaskState> tasks;
  state.tasks.for_each([&](const TaskState& task) {
    if (task.service.valid() || task.pipeline.valid()) tasks.push_back(task);
  });
  out.tasks.restore(state.tasks.next_id().value, std::move(tasks));
  return out;
}

// Of what the file says and the journal contradicts.
tl::unexpected<Error> in_file(const std::string& file, Error error) {
  error.context = file + (error.context.empty() ? "" : ": " + error.context);
  return tl::unexpected(std::move(error));
}

// What the file and the machine say, as events, where the journal does not say it already.
Result<void> bring_up_to_date(Loop& loop, const PoolSpec& spec,
                              const std::vector<NodeSpec>& nodes) {
  const PoolState& before = loop.state();
  for (const NodeSpec& node : nodes) {
    // A known node joins again: that refuses other devices, and brings it back when it was gone.
    if (auto allowed = check_event(before, NodeJoined{node}); !allowed) return allowed;
    const auto known = find_node(before, node.name);
    if (known && before.node(*known).up && before.node(*known).reachable) continue;
    if (auto done = loop.apply_now(NodeJoined{node}); !done) return done;
  }
  if (!before.configured || !same_spec(before.spec, spec)) {
    if (auto done = loop.apply_now(PoolConfigured{spec}); !done) return done;
  }
  std::vector<std::string> gone;
  for (const NodeState& node : before.nodes) {
    const bool found = std::any_of(nodes.begin(), nodes.end(),
                                   [&](const NodeSpec& n) { return n.name == node.name; });
    if (!found && node.reachable) gone.push_back(node.name);
  }
  for (const std::string& name : gone) {
    if (auto done = loop.apply_now(NodeUnreachable{name}); !done) return done;
  }
  return {};
}

// Everything that the daemon is made of, in the order in which it must be taken down.
class Daemon {
 public:
  Result<void> run(const DaemonOptions& options) {
    auto file = load_pool_file(options);
    if (!file) return tl::unexpected(file.error());
    if (auto made = prepare_state_dir(file->state_dir); !made) return made;
    auto devices = find_devices(*file);
    if (!devices) return tl::unexpected(devices.error());
    if (auto opened = open_loop(*file); !opened) return opened;
    if (auto up = bring_up_to_date(*loop_, file->spec, devices->nodes); !up) {
      return in_file(options.pool_file, up.error());
    }
    if (auto opened = open_backend(*file, options); !opened) return opened;
    if (auto opened = open_gateway(*file); !opened) return opened;
    open_contention(*file);
    if (auto opened = open_api(*file, devices->source); !opened) return opened;
    signals_.watch([this] { loop_->stop(); });
    std::printf("neap serves %zu %s devices on %s\n", device_count(devices->nodes),
                devices->source.c_str(), file->socket.c_str());
    std::fflush(stdout);
    auto result = loop_->run();
    contention_->stop();
    router_->stop_sampling();
    engines_->stop();
    starts_->stop();  // who asks for a forecast does not hold up the server's end
    server_.reset();
    stop_idle_proxy();
    if (!result) return result;
    if (failure_) return tl::unexpected(*failure_);
    return {};
  }

 private:
  static std::size_t device_count(const std::vector<NodeSpec>& nodes) {
    std::size_t count = 0;
    for (const NodeSpec& node : nodes) count += node.devices.size();
    return count;
  }

  Result<void> open_loop(const config::PoolFile& file) {
    journal_path_ = file.state_dir + "/journal.db";
    journal::Callbacks callbacks;
    callbacks.on_failure = [this](const Error& error) {
      log_error(fmt::format("the journal cannot be written, stopping: {}", to_string(error)));
      failure_ = error;
      loop_->stop();
    };
    // Opened before it is read, so that no other daemon can write meanwhile.
    auto journal = journal::Journal::open({.path = journal_path_}, callbacks);
    if (!journal) return tl::unexpected(journal.error());
    auto recovered = recover(journal_path_, ReplayFrom::newest_snapshot);
    if (!recovered) return tl::unexpected(recovered.error());
    if (recovered->state.sequence > 0) {
      log_info(fmt::format("recovered record {} ({} replayed after the snapshot of {})",
                           recovered->state.sequence, recovered->replayed,
                           recovered->snapshot_sequence));
    }
    before_ = outline_of(recovered->state);
    clock_.not_before(before_.now);
    Outlet outlet;
    outlet.carry_out = [this](const Action& action) { carry_out(action); };
    outlet.acknowledge = [this](const ReportStamp& stamp) { backend_->acknowledge(stamp); };
    outlet.route = [this](const PoolState& state, const Record& record) {
      if (router_) router_->note(state, record);
      if (metrics_) metrics_->note(state, record);
    };
    outlet.publish = [this](const PoolState& state, const Record& record) {
      learner_.note(state);
      keep_waits_known(state);
      const api::EventRow row = view_event(state, record);
      hub_.push(std::span(&row, 1));
    };
    loop_ = std::make_unique<Loop>(std::move(recovered->state), std::move(recovered->books),
                                   std::move(*journal), now_, std::move(outlet),
                                   paced_for_tests({.retention = file.journal_retention}));
    return {};
  }

  // Numbers of allocations are never used twice, unless the journal is older than what runs: new
  // tasks would take over the processes and the logs of others.
  [[nodiscard]] Result<void> journal_covers(const std::string& run_directory) const {
    const auto newest = local::newest_allocation(run_directory);
    if (!newest || newest->value < before_.next_allocation) return {};
    return fail(ErrorCode::conflict,
                "is of a task that the journal does not know, for it was restored or removed: end "
                "what runs there and remove the folder run; docs/operators/running.md says how",
                run_directory + "/tasks/" + std::to_string(newest->value));
  }

  Result<void> open_backend(const config::PoolFile& file, const DaemonOptions& options) {
    local::LocalBackend::Settings settings;
    settings.run_directory = file.state_dir + "/run";
    if (auto covered = journal_covers(settings.run_directory); !covered) return covered;
    settings.executable = supervisor_path(options);
    settings.plan.pool = file.spec.name;
    settings.plan.artifacts = file.state_dir + "/artifacts";
    auto host = local::parse_host_policy(file.host.policy);
    if (!host) return tl::unexpected(host.error());
    settings.plan.host = std::move(*host);
    settings.verify = file.host.verify;
    settings.verify_folder = file.state_dir;
    settings.verify_kept = kept_checks_of(file);
    sweep_artifacts(settings.plan.artifacts, before_);
    metrics_ = std::make_unique<StageMetrics>(settings.plan.artifacts,
                                              [this](Event e) { loop_->post(std::move(e)); });
    metrics_->restore(before_);
    auto backend = local::LocalBackend::open(
        settings,
        [this](Event event) {
          metrics_->before(event);
          if (ContentionWatch* watch = contention_seen_.load()) watch->note(event);
          loop_->post(std::move(event));
        },
        [](AllocationId allocation, const std::string& note) {
          log_warning(fmt::format("allocation {}: {}", allocation.value, note));
        });
    if (!backend) return tl::unexpected(backend.error());
    backend_ = std::move(*backend);
    return {};
  }

  Result<void> open_gateway(const config::PoolFile& file) {
    gateway::Observer observer;
    observer.requests = [this](const gateway::RequestSlice& slice) {
      if (!slice.allocation.valid() || slice.totals.responses == 0) return;
      loop_->post(RequestsServed{
          slice.allocation, static_cast<std::int64_t>(slice.totals.responses),
          static_cast<std::int64_t>(slice.totals.within_slo), slice.totals.busy_within_slo});
    };
    observer.trouble = [this](std::string detail) {
      if (!detail.empty()) log_warning(fmt::format("proxy: {}", detail));
      if (router_) router_->set_trouble(std::move(detail));
    };
    auto gateway =
        gateway::HaproxyGateway::open({.folder = file.state_dir + "/proxy", .now = now_}, observer);
    if (!gateway) return tl::unexpected(gateway.error());
    gateway_ = std::move(*gateway);
    config::GatewaySettings settings = file.gateway;
    if (settings.keys_file.empty()) settings.keys_file = file.state_dir + "/keys";
    if (!settings.certificate.empty() && ::access(settings.certificate.c_str(), R_OK) != 0) {
      return fail(ErrorCode::invalid_argument,
                  settings.certificate + " cannot be read: " + std::strerror(errno) +
                      "; expected a PEM file with the certificate, its chain and its key",
                  settings.certificate_place);
    }
    router_ = std::make_unique<ServiceRouter>(
        *gateway_,
        ServiceRouter::Ports{[this](Event event) { loop_->post(std::move(event)); },
                             [this](AllocationId id) { return backend_->port_of(id); },
                             [this](const Action& action) { backend_->carry_out(action); }},
        settings);
    router_->restore(before_);
    before_ = PoolState();
    ::malloc_trim(0);  // the many small parts of the copy would stay with the process
    router_->start_sampling();
    engines_ = std::make_unique<EngineWatch>([this] { return router_->replicas(); }, now_);
    engines_->start();
    return {};
  }

  void open_contention(const config::PoolFile& file) {
    ContentionWatch::Ports ports = contention_ports(*loop_, *backend_, *engines_, *router_);
    ports.now = now_;
    contention_ = std::make_unique<ContentionWatch>(ports, file.ladder, file.state_dir);
    contention_seen_.store(contention_.get());
    contention_->start();
  }

  Result<void> open_api(const config::PoolFile& file, const std::string& device_source) {
    ControlPort::Outside outside;
    outside.journal_path = journal_path_;
    outside.artifacts = file.state_dir + "/artifacts";
    outside.read_log = [this](AllocationId allocation, api::LogRange range) {
      return read_task_log(backend_->directory_of(allocation), range);
    };
    outside.address_of = [this](const std::string& name) { return router_->address_of(name); };
    outside.port_of = [this](AllocationId allocation) -> std::int64_t {
      return backend_->port_of(allocation).value_or(api::unknown);
    };
    auto policy = local::parse_host_policy(file.host.policy);
    if (!policy) return tl::unexpected(policy.error());
    outside.host_limits = [this, given = std::move(*policy)](AllocationId id, Purpose purpose,
                                                             api::HostLimitsView& into) {
      const auto limits = backend_->isolation().limits_of(id);
      if (!limits) return;
      const bool serves = purpose == Purpose::inference;
      view_host_limits({serves ? given.inference : given.training, *limits,
                        backend_->isolation().checks(), backend_->refused_limits_of(id)},
                       into);
    };
    outside.contention = contention_.get();
    outside.doctor = [this, file] { return check_health(file); };
    outside.latency = [this](const std::string& service, api::LatencyReport& into) -> Result<void> {
      const auto latency = router_->latency_of(service);
      if (!latency) return tl::unexpected(latency.error());
      view_latency(*latency, into);
      into.engine = engines_->row(service);
      return {};
    };
    starts_ = std::make_unique<StartForecaster>(
        [this](StartForecaster::Look look) {
          loop_->query(
              [look = std::move(look)](const PoolState& state, const Books&) { look(state); });
        },
        now_, StartForecaster::Options{},
        [this](std::vector<WaitExpected> waits) {
          for (WaitExpected& wait : waits) loop_->post(std::move(wait));
        });
    outside.starts = [this] { return starts_->wanted(); };
    control_ = std::make_unique<ControlPort>(*loop_,
                                             ViewContext{device_source, now_(), ::geteuid(), now_,
                                                         [this] { return router_->conditions(); }},
                                             outside, now_);
    api::ServerSettings settings;
    settings.socket_path = file.socket;
    settings.group = file.socket_group;
    if (file.tcp) settings.tcp = api::TcpSettings{file.tcp->listen, file.tcp->token_file};
    auto server = api::Server::start(settings, *control_, hub_);
    if (!server) return tl::unexpected(server.error());
    server_ = std::move(*server);
    return {};
  }

  // What holds on this machine holds for each pool on it, until it boots.
  static std::string kept_checks_of(const config::PoolFile& file) {
    std::error_code error;
    if (::geteuid() == 0) std::filesystem::create_directories("/run/neap", error);
    return (::geteuid() == 0 && !error ? "/run/neap" : file.state_dir) + "/isolation.json";
  }

  std::vector<api::DoctorCheck> check_health(const config::PoolFile& file) const {
    std::vector<api::DoctorCheck> checks;
    checks.push_back({"journal", "ok", "writes " + journal_path_, ""});
    checks.push_back(proxy_check(router_->trouble()));
    if (file.spec.preset != Preset::none) checks.push_back(preset_check(file));
    for (api::DoctorCheck& check : host_limit_checks(backend_->isolation(), file.host)) {
      checks.push_back(std::move(check));
    }
    checks.push_back(submitters_check());
    checks.push_back(disk_check(file.state_dir));
    return checks;
  }

  // Deadlines are judged by the waits that forecasts expect: now and then one, asked for or not.
  void keep_waits_known(const PoolState& state) {
    if (!starts_ || state.spec.fairness.deadline_tier.empty()) return;
    if (state.now - waits_wanted_ < minutes(5)) return;
    waits_wanted_ = state.now;
    starts_->want();
  }

  void carry_out(const Action& action) {
    if (const auto* stop = std::get_if<StopTask>(&action)) {
      if (router_ && router_->stop_replica(*stop)) return;
    }
    backend_->carry_out(action);
  }

  // With no service left the proxy has nothing to serve; else it goes on for the next daemon.
  void stop_idle_proxy() {
    if (router_->serves_any()) return;
    std::mutex mutex;
    std::condition_variable done;
    bool stopped = false;
    gateway_->stop([&](const Result<void>&) {
      const std::scoped_lock lock(mutex);
      stopped = true;
      done.notify_one();
    });
    std::unique_lock lock(mutex);
    done.wait_for(lock, std::chrono::seconds(5), [&] { return stopped; });
  }

  StopSignals signals_;  // first: threads inherit the blocked signals
  ForwardClock clock_;
  const std::function<Time()> now_ = [this] { return clock_.now(); };
  std::string journal_path_;
  std::optional<Error> failure_;
  PoolState before_;  // an outline
  api::EventHub hub_;
  std::unique_ptr<Loop> loop_;
  // Ends before the loop, to which it posts.
  PlacementLearner learner_{[this](Event event) { loop_->post(std::move(event)); }};
  std::unique_ptr<StartForecaster> starts_;  // likewise
  Time waits_wanted_;
  std::unique_ptr<StageMetrics> metrics_;                   // likewise
  std::atomic<ContentionWatch*> contention_seen_{nullptr};  // reports come before it is there
  std::unique_ptr<local::LocalBackend> backend_;
  std::unique_ptr<ServiceRouter> router_;
  std::unique_ptr<EngineWatch> engines_;  // ends before the router, whose replicas it asks
  std::unique_ptr<gateway::Gateway> gateway_;
  std::unique_ptr<ContentionWatch> contention_;  // ends before all that it asks
  std::unique_ptr<ControlPort> control_;
  std::unique_ptr<api::Server> server_;
};

std::string hash_text(std::uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace

Result<void> serve(const DaemonOptions& options) {
  // Few threads, and one of them does nearly all: a heap for each would only hold memory back.
  ::mallopt(M_ARENA_MAX, 2);
  if (!arm_crash_points()) return fail(ErrorCode::invalid_argument, "unknown crash point");
  return Daemon().run(options);
}

Result<void> verify_journal(const std::string& state_dir) {
  const std::string path = state_dir + "/journal.db";
  auto whole = recover(path, ReplayFrom::first_record);
  if (!whole) return tl::unexpected(whole.error());
  auto newest = recover(path, ReplayFrom::newest_snapshot);
  if (!newest) return tl::unexpected(newest.error());
  const std::uint64_t a = hash_of(whole->state);
  const std::uint64_t b = hash_of(newest->state);
  std::printf("%llu records, state %s from record %llu, %s from snapshot %llu\n",
              static_cast<unsigned long long>(whole->state.sequence), hash_text(a).c_str(),
              static_cast<unsigned long long>(whole->snapshot_sequence + 1), hash_text(b).c_str(),
              static_cast<unsigned long long>(newest->snapshot_sequence));
  if (a != b) return fail(ErrorCode::internal, "the snapshot and the full replay differ", path);
  return {};
}

}  // namespace neap::daemon
