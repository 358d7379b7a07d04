#include "gateway/haproxy/haproxy_gateway.h"

#include <poll.h>
#include <pwd.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "gateway/haproxy/admission_driver.h"
#include "gateway/haproxy/membership.h"
#include "gateway/haproxy/process.h"
#include "gateway/haproxy/records.h"
#include "gateway/haproxy/request_log.h"

namespace neap::gateway {
namespace {

using Instant = Membership::Instant;
using std::chrono::steady_clock;
constexpr auto advance_step = std::chrono::milliseconds(20);
constexpr auto idle_step = std::chrono::milliseconds(1000);
constexpr auto first_retry = std::chrono::milliseconds(200);
constexpr auto longest_retry = std::chrono::milliseconds(5000);
constexpr auto first_reapply = std::chrono::seconds(2);
constexpr auto longest_reapply = std::chrono::seconds(16);
constexpr auto long_life =
    std::chrono::seconds(30);  // alive for this long: the next death is the first
constexpr auto drive_step = std::chrono::seconds(1);
constexpr Micros stray_patience = seconds(30);
constexpr auto read_step = std::chrono::milliseconds(50);  // the pipe holds far more than comes

Instant after(Micros length) {
  return steady_clock::now() + std::chrono::microseconds(std::min(length, hours(24)).value);
}

Time system_time() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return Time(std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count());
}

// A daemon that runs as root does not let the proxy's workers keep root's rights.
std::string workers_user() {
  if (geteuid() != 0) return {};
  return getpwnam("haproxy") == nullptr ? std::string() : "haproxy";
}

}  // namespace

// All that belongs to the gateway's thread.
class HaproxyGateway::Worker {
 public:
  Worker(HaproxyOptions options, Observer observer)
      : now_(options.now ? std::move(options.now) : system_time),
        observer_(std::move(observer)),
        process_(ProxyFiles(options.folder), options.program),
        members_(process_, {.admin_socket = process_.files().admin_socket,
                            .idle_socket = process_.files().idle_socket,
                            .admission = process_.files().admission,
                            .folder = process_.files().folder,
                            .run_as = workers_user()}),
        log_(options.folder, options.log, now_, [this](const std::string& service) {
          const Endpoint* endpoint = members_.endpoint_of(service);
          return endpoint == nullptr ? std::nullopt : std::optional(endpoint->slo_first_byte);
        }) {
    log_.watch([this](const RequestRecord& record) { admission_.note(record, now_()); });
  }

  Result<void> open() {
    if (Result<void> prepared = process_.prepare(); !prepared) return prepared;
    if (Result<void> opened = log_.open(); !opened) return opened;
    members_.adopt();
    started_at_ = steady_clock::now();
    return {};
  }

  Membership& members() { return members_; }

  // What was logged before this start; before anything else is asked.
  void begin() { read_records(); }

  void ensure_service(const Endpoint& endpoint, const Done& done) {
    const bool ran = process_.running();
    Result<void> ensured = members_.ensure_service(endpoint);
    if (!ran && process_.running()) started_at_ = steady_clock::now();
    if (!ensured && !members_.trouble().empty()) tried_ = true;
    note_trouble();
    done(std::move(ensured));
  }

  void set_front(const Front& front, const Done& done) {
    Result<void> set = members_.set_front(front);
    reapply_after_ = first_reapply;
    reapply_at_ = steady_clock::now() + reapply_after_;
    note_trouble();
    done(std::move(set));
  }

  void sample(const std::string& service, const SampleDone& done) {
    read_records();  // so that a request which ended is not missing from both
    Result<ServiceSample> sample = members_.sample(service);
    if (sample) log_.complete(service, *sample);
    done(std::move(sample));
  }

  void latency(const std::string& service, const LatencyDone& done) {
    read_records();
    if (members_.endpoint_of(service) == nullptr) {
      return done(fail(ErrorCode::not_found, "no such service", service));
    }
    done(log_.latency(service));
  }

  void stop(const Done& done) {
    stopped_ = true;
    process_.stop(seconds(5));
    read_records();
    tell(log_.take_all());
    done({});
  }

  // Waits for something to do, at most until the next step is due.
  void wait(int wake_fd) {
    const auto now = steady_clock::now();
    const bool rests = now < read_at_;
    std::array<pollfd, 3> entries{
        {{.fd = wake_fd, .events = POLLIN, .revents = 0},
         {.fd = process_.pid_fd(), .events = POLLIN, .revents = 0},
         {.fd = rests ? -1 : process_.records_fd(), .events = POLLIN, .revents = 0}}};
    auto step = std::chrono::duration_cast<std::chrono::milliseconds>(idle_step);
    if (members_.pending()) step = advance_step;
    if (rests) {
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(read_at_ - now);
      step = std::min(step, rest);
    }
    if (down()) step = std::min(step, std::max(until_retry(), std::chrono::milliseconds(1)));
    ::poll(entries.data(), entries.size(), static_cast<int>(step.count()));
  }

  void step() {
    if (steady_clock::now() >= read_at_) read_records();
    watch_process();
    drive_admission();
    members_.advance(steady_clock::now());
    retry_members();
    tell(log_.take_closed());
  }

  void close() {
    read_records();
    tell(log_.take_all());
  }

 private:
  [[nodiscard]] bool down() const {
    return !stopped_ && !process_.running() && members_.wanted() && tried_;
  }

  [[nodiscard]] std::chrono::milliseconds until_retry() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(retry_at_ - steady_clock::now());
  }

  // Not at each record, of which there may be thousands a second.
  void read_records() {
    read_at_ = steady_clock::now() + read_step;
    const std::string trouble = log_.read(process_.records_fd());
    tell_trouble(log_trouble_, trouble);
  }

  void drive_admission() {
    if (!process_.running() || steady_clock::now() < drive_at_) return;
    drive_at_ = steady_clock::now() + drive_step;
    admission_.tick(now_());
  }

  void tell(const std::vector<RequestSlice>& slices) const {
    if (!observer_.requests) return;
    for (const RequestSlice& one : slices) observer_.requests(one);
  }

  // What one part suffers from does not hide what another does.
  void tell_trouble(std::string& of, const std::string& now) {
    if (std::exchange(of, now) == now || !observer_.trouble) return;
    std::string all;
    for (const std::string* one : {&proxy_trouble_, &member_trouble_, &log_trouble_}) {
      if (!one->empty()) all += (all.empty() ? "" : "; ") + *one;
    }
    observer_.trouble(all);
  }

  void report(const std::string& detail) { tell_trouble(proxy_trouble_, detail); }
  void note_trouble() {
    const bool said = !process_.running() && !proxy_trouble_.empty();
    tell_trouble(member_trouble_, said ? std::string() : members_.trouble());
  }

  void retry_members() {
    if (members_.trouble().empty()) {
      reapply_after_ = first_reapply;
    } else if (process_.running() && steady_clock::now() >= reapply_at_) {
      members_.retry();
      reapply_after_ = std::min(reapply_after_ * 2, longest_reapply);
      reapply_at_ = steady_clock::now() + reapply_after_;
    }
    note_trouble();
  }

  void watch_process() {
    if (process_.running()) {
      pollfd entry{.fd = process_.pid_fd(), .events = POLLIN, .revents = 0};
      if (::poll(&entry, 1, 0) == 0) return report({});
      report("the proxy ended: " + process_.ended());
      if (steady_clock::now() - started_at_ > long_life) retry_after_ = first_retry;
      retry_at_ = steady_clock::now();
      tried_ = true;
    }
    if (!down() || steady_clock::now() < retry_at_) return;
    Result<void> started = members_.start();
    started_at_ = steady_clock::now();
    if (started) {
      report({});
      retry_at_ = started_at_ + retry_after_;  // should it end again at once
    } else {
      report("the proxy does not start: " + to_string(started.error()));
      retry_at_ = started_at_ + retry_after_;
    }
    retry_after_ = std::min(retry_after_ * 2, longest_retry);
  }

  std::function<Time()> now_;
  Observer observer_;
  ProxyProcess process_;
  Membership members_;
  AdmissionDriver admission_{members_};
  RequestLog log_;
  std::string proxy_trouble_, member_trouble_, log_trouble_;
  Instant reapply_at_;
  std::chrono::seconds reapply_after_ = first_reapply;
  bool stopped_ = false;
  bool tried_ = false;  // it ran once: from then on it is kept running
  Instant started_at_;
  Instant read_at_;
  Instant drive_at_;
  Instant retry_at_;
  std::chrono::milliseconds retry_after_ = first_retry;
};

Result<std::unique_ptr<HaproxyGateway>> HaproxyGateway::open(HaproxyOptions options,
                                                             Observer observer) {
  auto worker = std::make_unique<Worker>(std::move(options), std::move(observer));
  if (Result<void> opened = worker->open(); !opened) return tl::unexpected(opened.error());
  return std::unique_ptr<HaproxyGateway>(new HaproxyGateway(std::move(worker)));
}

HaproxyGateway::HaproxyGateway(std::unique_ptr<Worker> worker)
    : worker_(std::move(worker)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      thread_([this] { run(); }) {}

HaproxyGateway::~HaproxyGateway() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void HaproxyGateway::post(Order order) {
  {
    const std::lock_guard lock(mutex_);
    orders_.push_back(std::move(order));
  }
  eventfd_write(wake_.get(), 1);
}

void HaproxyGateway::run() {
  worker_->begin();
  for (;;) {
    worker_->wait(wake_.get());
    eventfd_t ignored = 0;
    eventfd_read(wake_.get(), &ignored);
    std::deque<Order> orders;
    bool closing = false;
    {
      const std::lock_guard lock(mutex_);
      orders.swap(orders_);
      closing = closing_;
    }
    for (const Order& order : orders) order(*worker_);
    if (closing) return worker_->close();
    worker_->step();
  }
}

void HaproxyGateway::ensure_service(Endpoint endpoint, Done done) {
  post([endpoint = std::move(endpoint), done = std::move(done)](Worker& worker) {
    worker.ensure_service(endpoint, done);
  });
}

void HaproxyGateway::set_front(Front front, Done done) {
  post([front = std::move(front), done = std::move(done)](Worker& worker) {
    worker.set_front(front, done);
  });
}

void HaproxyGateway::remove_service(std::string service, Done done) {
  post([service = std::move(service), done = std::move(done)](Worker& worker) {
    done(worker.members().remove_service(service));
  });
}

void HaproxyGateway::add_replica(Replica replica, Done done) {
  post([replica = std::move(replica), done = std::move(done)](Worker& worker) {
    worker.members().add_replica(replica, done);
  });
}

void HaproxyGateway::drain_replica(ReplicaRef replica, Micros within, DrainDone done) {
  post([replica = std::move(replica), within, done = std::move(done)](Worker& worker) {
    worker.members().drain_replica(replica, after(within), done);
  });
}

void HaproxyGateway::remove_replica(ReplicaRef replica, Micros within, Done done) {
  post([replica = std::move(replica), within, done = std::move(done)](Worker& worker) {
    worker.members().remove_replica(replica, after(within), done);
  });
}

void HaproxyGateway::sample(std::string service, SampleDone done) {
  post([service = std::move(service), done = std::move(done)](Worker& worker) {
    worker.sample(service, done);
  });
}

void HaproxyGateway::latency(std::string service, LatencyDone done) {
  post([service = std::move(service), done = std::move(done)](Worker& worker) {
    worker.latency(service, done);
  });
}

void HaproxyGateway::forget_unclaimed(Done done) {
  post([done = std::move(done)](Worker& worker) {
    worker.members().forget_unclaimed(after(stray_patience));
    done({});
  });
}

void HaproxyGateway::stop(Done done) {
  post([done = std::move(done)](Worker& worker) { worker.stop(done); });
}

}  // namespace neap::gateway
