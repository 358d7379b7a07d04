// The gateway under load (E1, E3), each mode in one run with one line of JSON at its end:
//
//   gateway_bench overload [SECONDS]   ten times what two replicas can do, three classes
//   gateway_bench churn [SECONDS]      replicas come, go and die, reloads, the daemon is killed
//   gateway_bench overhead [SECONDS]   beside a bare HAProxy, and that beside another
#include <fcntl.h>
#include <sched.h>

#include <cstring>

#include "bench/gateway/owner.h"

namespace neap::bench {
namespace {

constexpr double slo_s = 2;
constexpr double service_s = 0.1;
constexpr int slots = 8;
constexpr double capacity = 2 * slots / service_s;  // a second, of two replicas
constexpr const char* class_heads[] = {"X-Priority: high\r\n", "X-Priority: normal\r\n",
                                       "X-Priority: low\r\n"};

long resident_kib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  }
  return 0;
}

pid_t worker_of(const std::string& folder) {
  const auto text = gateway::run_command(gateway::ProxyFiles(folder).master_socket, "show proc");
  return text ? gateway::read_workers(*text).current : 0;
}

// Other work on the machine is not what is measured. False where that is not allowed.
bool real_time(pid_t pid) {
  const sched_param priority{.sched_priority = 10};
  std::error_code error;
  bool all = true;
  const std::string tasks = "/proc/" + std::to_string(pid == 0 ? getpid() : pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    const pid_t thread = std::atoi(task.path().filename().c_str());
    all = sched_setscheduler(thread, SCHED_FIFO, &priority) == 0 && all;
  }
  return all && !error;
}

double goodput(const std::vector<Answer>& answers, double from, double until) {
  const auto good = std::ranges::count_if(answers, [&](const Answer& a) {
    return a.whole && a.status == 200 && a.first <= slo_s && a.ask.at + a.last >= from &&
           a.ask.at + a.last < until;
  });
  return static_cast<double>(good) / (until - from);
}

// A request of a higher class that was refused while one of a lower class waited, which had come 5
// ms before and was dispatched 5 ms after; hops between processes take less. One that gave its
// place up is told so within the 50 ms that a waiting request sleeps at most, and no longer waits
// then.
std::size_t refused_before_lower(const std::vector<Answer>& answers) {
  constexpr double slack = 0.005;
  constexpr double sleep = 0.06;
  std::size_t found = 0;
  for (const Answer& refused : answers) {
    if (refused.status != 429) continue;
    const double at = refused.ask.at + refused.last;
    found += std::ranges::any_of(answers, [&](const Answer& other) {
      if (other.ask.kind <= refused.ask.kind || other.ask.at > at - slack || !other.whole) {
        return false;
      }
      const double left = other.status == 200 ? other.ask.at + other.first - service_s - slack
                                              : other.ask.at + other.last - sleep;
      return left > at;
    });
  }
  return found;
}

// Of refusals, those whose Retry-After is within half and twice the wait of the request of the
// class that was admitted nearest to them.
struct RetryFit {
  std::size_t within = 0;
  std::size_t all = 0;
};
RetryFit retry_fit(const std::vector<Answer>& answers, double from, double until) {
  RetryFit fit;
  for (int kind = 0; kind < 3; ++kind) {
    std::vector<const Answer*> admitted;
    for (const Answer& a : answers) {
      if (a.ask.kind == kind && a.status == 200 && a.first > service_s) admitted.push_back(&a);
    }
    for (const Answer& a : answers) {
      if (a.ask.kind != kind || a.status != 429 || a.ask.at < from || a.ask.at > until) continue;
      const auto near = std::ranges::lower_bound(admitted, a.ask.at, {},
                                                 [](const Answer* one) { return one->ask.at; });
      if (near == admitted.end() || (*near)->ask.at > a.ask.at + 0.5) continue;
      const double wait = (*near)->first - service_s;
      ++fit.all;
      const double seconds_up = std::max(1.0, std::ceil(wait));
      const bool whole_fits = a.retry_s <= 2 * seconds_up && 2 * a.retry_s >= seconds_up;
      const double ms = a.retry_ms / 1000;
      fit.within += whole_fits && ms <= 2 * wait && 2 * ms >= wait ? 1 : 0;
    }
  }
  return fit;
}

int overload(double length) {
  Folder folder;
  Backend backend;
  Owner owner(folder.path());
  gateway::Endpoint endpoint{.service = "chat", .port = free_port()};
  endpoint.slo_first_byte = milliseconds(static_cast<std::int64_t>(slo_s * 1000));
  endpoint.admission = {.queue = {600, 500, 400}, .within_slo = true, .adaptive = true};
  owner.ensure(endpoint);
  const auto service_us = std::chrono::microseconds(static_cast<std::int64_t>(service_s * 1e6));
  for (const std::uint64_t id : {1U, 2U}) {
    owner.add({.service = "chat",
               .allocation = AllocationId(id),
               .port = backend.start({.time = service_us, .slots = slots}),
               .max_concurrency = slots});
  }
  std::vector<Kind> kinds;
  for (const char* head : class_heads) kinds.push_back({endpoint.port, head_of(head)});
  const auto at_load = [&](double times, double seconds, std::uint64_t seed) {
    // High alone is half of what there is; the rest is normal and low.
    const double all = capacity * times;
    const double high = std::min(all / 3, capacity * 0.5);
    return Client(kinds).run(
        poisson({high, (all - high) * 0.45, (all - high) * 0.55}, seconds, seed), 10);
  };
  (void)(real_time(0) && real_time(worker_of(folder.path())));
  at_load(1.5, 10, 1);  // places rise
  double peak = 0;
  for (const double times : {0.7, 0.8, 0.9, 1.0, 1.2}) {
    peak = std::max(peak, goodput(at_load(times, 8, 2), 2, 8));
  }
  const pid_t worker = worker_of(folder.path());
  const long before = resident_kib(worker);
  std::atomic<bool> done = false;
  long most_kib = before;
  std::int64_t most_waiting = 0;
  std::thread watcher([&] {
    while (!done) {
      most_kib = std::max(most_kib, resident_kib(worker));
      most_waiting = std::max(most_waiting, owner.sample().queued);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  const std::vector<Answer> answers = at_load(10, length, 3);
  done = true;
  watcher.join();
  Samples firsts;
  std::array<std::size_t, 3> served{};
  std::array<std::size_t, 3> refused{};
  std::size_t lost = 0;
  for (const Answer& a : answers) {
    const auto kind = static_cast<std::size_t>(a.ask.kind);
    if (a.status == 200 && a.whole) {
      firsts.add(a.first);
      ++served[kind];
    } else if (a.status == 429) {
      ++refused[kind];
    } else {
      ++lost;
    }
  }
  const RetryFit fit = retry_fit(answers, 3, length - 3);
  Json json;
  json.add("peak_per_s", peak);
  json.add("goodput_per_s", goodput(answers, 2, length));
  json.add("asked_per_s", static_cast<double>(answers.size()) / length);
  json.add("slo_s", slo_s);
  json.add("admitted_p50_s", firsts.at(0.5));
  json.add("admitted_p99_s", firsts.at(0.99));
  const char* names[] = {"high", "normal", "low"};
  for (std::size_t i = 0; i < 3; ++i) {
    json.add(std::string("served_") + names[i], static_cast<double>(served[i]));
    json.add(std::string("refused_") + names[i], static_cast<double>(refused[i]));
  }
  json.add("lost", static_cast<double>(lost));
  json.add("refused_while_lower_waited", static_cast<double>(refused_before_lower(answers)));
  json.add("retry_within_2x",
           fit.all == 0 ? 0 : static_cast<double>(fit.within) / static_cast<double>(fit.all));
  json.add("retry_judged", static_cast<double>(fit.all));
  json.add("most_waiting", static_cast<double>(most_waiting));
  json.add("proxy_mib_before", static_cast<double>(before) / 1024);
  json.add("proxy_mib_most", static_cast<double>(most_kib) / 1024);
  json.print();
  owner.stop();
  return 0;
}

// ---- churn ------------------------------------------------------------------------------------

class Churn {
 public:
  explicit Churn(double length) : length_(length), daemon_(folder_.path()) {}

  int run() {
    daemon_.tell(service_line());
    for (int i = 0; i < standing; ++i) add();
    std::vector<Answer> answers;
    std::thread load([&] {
      Client client({{port_, head_of("")}});
      answers = client.run(poisson({120}, length_, 7), 15);
    });
    drive();
    load.join();
    report(answers);
    daemon_.tell("stop");
    return 0;
  }

 private:
  static constexpr int standing = 6;

  std::string service_line() const { return "ensure chat " + std::to_string(port_); }

  void add() {
    const std::uint64_t id = ++ids_;
    const std::uint16_t port =
        backend_.start({.time = std::chrono::milliseconds(400), .slots = 64, .chunks = 8});
    daemon_.tell("add " + std::to_string(id) + " " + std::to_string(port));
    members_.emplace_back(id, port);
    ++added_;
  }
  void leave() {
    const auto [id, port] = members_.front();
    members_.pop_front();
    daemon_.tell("leave " + std::to_string(id) + " 5000");
    ++removed_;
    leaving_.emplace_back(Clock::now() + std::chrono::seconds(7), port);
  }
  void end_those_who_left() {
    while (!leaving_.empty() && leaving_.front().first < Clock::now()) {
      backend_.kill(leaving_.front().second);
      leaving_.pop_front();
    }
  }
  void kill_one() {
    const auto [id, port] = members_.front();  // the oldest has the most streams
    members_.pop_front();
    backend_.kill(port);
    ++killed_;
    daemon_.tell("leave " + std::to_string(id) + " 0");
    ++removed_;
    add();
  }
  // What the daemon does when it starts: names all that should be there.
  void restart_daemon() {
    daemon_.kill_now();
    daemon_.start();
    daemon_.tell(service_line());
    for (int i = 0; i < reloads_; ++i) daemon_.tell(other_line(i));
    for (const auto& [id, port] : members_) {
      daemon_.tell("add " + std::to_string(id) + " " + std::to_string(port));
    }
    daemon_.tell("forget");
    ++restarts_;
  }
  std::string other_line(int i) {
    while (static_cast<int>(others_.size()) <= i) others_.push_back(free_port());
    return "ensure other" + std::to_string(i) + " " +
           std::to_string(others_[static_cast<std::size_t>(i)]);
  }

  void drive() {
    const auto start = Clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    double next_pair = 0;
    double next_kill = 1;
    while (passed() < length_) {
      if (passed() >= next_pair) {
        add();
        leave();
        next_pair += length_ / 950;
      }
      if (passed() >= next_kill) {
        kill_one();
        next_kill += 1;
      }
      if (reloads_ < 3 && passed() > length_ * (reloads_ + 1) / 4) {
        daemon_.tell(other_line(reloads_));
        ++reloads_;
      }
      if (restarts_ < 2 && passed() > length_ * (restarts_ + 1) / 3 + 1) restart_daemon();
      end_those_who_left();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  void report(const std::vector<Answer>& answers) const {
    std::size_t whole = 0;
    std::size_t broken = 0;
    std::map<int, std::size_t> lost;
    for (const Answer& a : answers) {
      if (a.whole && a.status == 200) {
        ++whole;
      } else if (!a.whole && a.first >= 0 && a.status == 200) {
        ++broken;
      } else {
        ++lost[a.status];
      }
    }
    std::size_t all_lost = 0;
    for (const auto& [status, count] : lost) {
      std::fprintf(stderr, "lost with status %d: %zu\n", status, count);
      all_lost += count;
    }
    Json json;
    json.add("requests", static_cast<double>(answers.size()));
    json.add("whole", static_cast<double>(whole));
    json.add("lost", static_cast<double>(all_lost));
    json.add("broken", static_cast<double>(broken));
    json.add("broken_by_kills", static_cast<double>(backend_.broken()));
    json.add("added", added_);
    json.add("removed", removed_);
    json.add("killed", killed_);
    json.add("reloads", reloads_);
    json.add("restarts", restarts_);
    json.print();
  }

  double length_;
  Folder folder_;
  Backend backend_;
  Daemon daemon_;
  std::uint16_t port_ = free_port();
  std::vector<std::uint16_t> others_;
  std::deque<std::pair<std::uint64_t, std::uint16_t>> members_;
  std::deque<std::pair<Clock::time_point, std::uint16_t>> leaving_;
  std::uint64_t ids_ = 0;
  int added_ = 0, removed_ = 0, killed_ = 0, reloads_ = 0, restarts_ = 0;
};

// ---- overhead ---------------------------------------------------------------------------------

class BareProxy {
 public:
  BareProxy(const std::string& folder, std::uint16_t backend) : port_(free_port()) {
    const std::string path = folder + "/bare-" + std::to_string(port_) + ".cfg";
    std::ofstream(path)
        << "global\n    nbthread 1\ndefaults\n    mode http\n"
        << "    timeout client 60s\n    timeout connect 2s\n    timeout server 60s\n"
        << "frontend f\n    bind 127.0.0.1:" << port_ << "\n    default_backend b\n"
        << "backend b\n    server s 127.0.0.1:" << backend << "\n";
    gateway::ProxyProcess probe(gateway::ProxyFiles("/nowhere"), "haproxy");
    std::string program = "haproxy";
    std::string flag = "-f";
    std::string file = path;
    char* argv[] = {program.data(), flag.data(), file.data(), nullptr};
    setenv("PATH", (std::string(getenv("PATH")) + ":/usr/sbin:/sbin").c_str(), 1);
    if (posix_spawnp(&pid_, program.c_str(), nullptr, nullptr, argv, environ) != 0) {
      fail_bench("haproxy does not start");
    }
  }
  BareProxy(const BareProxy&) = delete;
  BareProxy& operator=(const BareProxy&) = delete;
  ~BareProxy() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  std::uint16_t port_;
  pid_t pid_ = 0;
};

struct Side {
  std::vector<double> p50;
  std::vector<double> p99;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

int overhead(double length) {
  constexpr double rate = 2000;
  constexpr int rounds = 5;
  Folder folder;
  Backend backend;
  const std::uint16_t replica = backend.start({});
  Owner owner(folder.path());
  const gateway::Endpoint endpoint{.service = "chat", .port = free_port()};
  owner.ensure(endpoint);
  owner.add(
      {.service = "chat", .allocation = AllocationId(1), .port = replica, .max_concurrency = 256});
  const BareProxy one(folder.path(), replica);
  const BareProxy two(folder.path(), replica);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  bool fifo = true;
  for (const pid_t pid : {pid_t{0}, worker_of(folder.path()), one.pid(), two.pid()}) {
    fifo = real_time(pid) && fifo;
  }
  const std::uint16_t ports[] = {endpoint.port, one.port(), two.port()};
  Side sides[3];
  for (int round = 0; round < rounds; ++round) {
    // Slices of all three take turns, so that what disturbs one disturbs all.
    Samples times[3];
    for (int slice = 0; slice < 6; ++slice) {
      for (int i = 0; i < 3; ++i) {
        const int side = (i + slice + round) % 3;
        Client client({{ports[side], head_of("")}});
        const auto seed = static_cast<std::uint64_t>(round * 100 + slice);
        for (const Answer& a : client.run(poisson({rate}, length / 6, seed), 2)) {
          if (!a.whole || a.status != 200) fail_bench("a request failed");
          if (a.ask.at > 0.05) times[side].add(a.first * 1000);
        }
      }
    }
    for (int side = 0; side < 3; ++side) {
      sides[side].p50.push_back(times[side].at(0.5));
      sides[side].p99.push_back(times[side].at(0.99));
    }
  }
  const auto differences = [](const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> out;
    for (std::size_t i = 0; i < a.size(); ++i) out.push_back(a[i] - b[i]);
    return median(out);
  };
  const auto ratios = [](const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> out;
    for (std::size_t i = 0; i < a.size(); ++i) out.push_back(a[i] / b[i]);
    return median(out);
  };
  Json json;
  json.add("fifo", fifo ? 1 : 0);
  json.add("rate_per_s", rate);
  json.add("gateway_p50_ms", median(sides[0].p50));
  json.add("bare_p50_ms", median(sides[1].p50));
  json.add("gateway_p99_ms", median(sides[0].p99));
  json.add("bare_p99_ms", median(sides[1].p99));
  json.add("p50_more_ms", differences(sides[0].p50, sides[1].p50));
  json.add("floor_p50_ms", std::abs(differences(sides[2].p50, sides[1].p50)));
  json.add("p99_ratio", ratios(sides[0].p99, sides[1].p99));
  double floor = 1;
  for (std::size_t i = 0; i < sides[1].p99.size(); ++i) {
    floor = std::max({floor, sides[2].p99[i] / sides[1].p99[i], sides[1].p99[i] / sides[2].p99[i]});
  }
  json.add("floor_p99_ratio", floor);
  json.print();
  owner.stop();
  return 0;
}

}  // namespace
}  // namespace neap::bench

int main(int argc, char** argv) {
  using namespace neap::bench;
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "owner" && argc == 3) return run_owner(argv[2]);
  const double length = argc > 2 ? std::atof(argv[2]) : 0;
  signal(SIGPIPE, SIG_IGN);
  if (mode == "overload") return overload(length > 0 ? length : 60);
  if (mode == "churn") return Churn(length > 0 ? length : 60).run();
  if (mode == "overhead") return overhead(length > 0 ? length : 3);
  if (!mode.empty()) {
    std::fprintf(stderr, "gateway_bench overload|churn|overhead [SECONDS]\n");
    return 2;
  }
  return overload(10) + Churn(15).run() + overhead(1);
}
