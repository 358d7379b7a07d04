#include "cli/demo.h"

#include <signal.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "cli/demo_files.h"
#include "cli/demo_process.h"
#include "cli/demo_screen.h"
#include "cli/demo_verdict.h"
#include "cli/demo_watch.h"
#include "cli/value.h"
#include "load/generator.h"
#include "measure/windows.h"

namespace neap::cli {
namespace {

namespace fs = std::filesystem;
constexpr Micros look_every = milliseconds(500);
constexpr Micros start_patience = seconds(180);
constexpr Micros return_patience = seconds(60);
constexpr Micros end_patience = seconds(45);
// The pool books steps and requests in slices of 10 s: its figures are whole a little later.
constexpr Micros books_lag = seconds(11);

std::int64_t wall_clock_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// Turns Ctrl-C, SIGTERM and a closed terminal into a request to stop, for as long as it lives.
class StopOnSignal {
 public:
  explicit StopOnSignal(std::stop_source& stop) {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    thread_ = std::jthread([this, &stop](const std::stop_token& ending) {
      constexpr timespec step{.tv_sec = 0, .tv_nsec = 100'000'000};
      while (!ending.stop_requested()) {
        if (sigtimedwait(&signals_, nullptr, &step) > 0) stop.request_stop();
      }
    });
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal() {
    thread_.request_stop();
    thread_.join();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t signals_{};
  sigset_t before_{};
  std::jthread thread_;
};

// The generator in its thread, and what the display reads of it.
class DemoLoad {
 public:
  DemoLoad(const DemoFiles& files, const DemoOptions& options, load::Day day)
      : day_(std::move(day)),
        options_{
            .curve = day_.curve,
            .target = {.port = files.port, .path = "/v1/completions", .body = demo_request_body()},
            .seed = options.seed} {
    view_.length = day_.curve.length();
    view_.phase = phase_at(day_, Micros(0));
  }

  void start() {
    began_us_ = wall_clock_us();
    thread_ = std::jthread([this](const std::stop_token& stop) {
      const load::LoadObserver observer{.result = [this](const auto& r) { note(r); },
                                        .progress = [this](const auto& p) { note(p); }};
      Result<load::LoadSummary> summary = load::run_load(options_, observer, stop);
      const std::lock_guard lock(mutex_);
      summary_ = std::move(summary);
    });
  }
  [[nodiscard]] bool ended() const {
    const std::lock_guard lock(mutex_);
    return summary_.has_value();
  }
  [[nodiscard]] Result<load::LoadSummary> summary() const {
    const std::lock_guard lock(mutex_);
    return summary_.value_or(fail(ErrorCode::internal, "the load has not ended"));
  }
  [[nodiscard]] LoadView view() const {
    const std::lock_guard lock(mutex_);
    LoadView view = view_;
    const measure::Histogram recent = first_bytes_.over(Time(view.elapsed.value), seconds(10));
    view.recent_p50 = recent.percentiles().p50;
    view.recent_p95 = recent.percentiles().p95;
    return view;
  }
  [[nodiscard]] std::int64_t burst_began_us() const { return began_us_ + day_.burst_from.value; }

 private:
  void note(const load::RequestResult& result) {
    const std::lock_guard lock(mutex_);
    const bool good = result.outcome == load::Outcome::ok;
    if (result.outcome != load::Outcome::interrupted) ++(good ? view_.answered : view_.failed);
    if (good) {
      first_bytes_.record(Time(result.finished.value),
                          result.first_byte.value_or(result.finished) - result.scheduled);
    }
  }
  void note(const load::LoadProgress& progress) {
    const std::lock_guard lock(mutex_);
    view_.elapsed = progress.elapsed;
    view_.phase = phase_at(day_, progress.elapsed);
    view_.rate = progress.rate;
    view_.in_flight = progress.in_flight;
  }

  load::Day day_;
  load::LoadOptions options_;
  std::int64_t began_us_ = 0;
  mutable std::mutex mutex_;
  LoadView view_;                                          // guarded by mutex_
  measure::SlidingHistogram first_bytes_{seconds(1), 12};  // guarded by mutex_
  std::optional<Result<load::LoadSummary>> summary_;       // guarded by mutex_
  std::jthread thread_;                                    // stops the load when it goes
};

class Demo {
 public:
  Demo(const DemoOptions& options, Terminal& terminal)
      : options_(options),
        terminal_(terminal),
        screen_(terminal, options.report == Report::json ? stderr : stdout) {}

  int run() {
    const StopOnSignal on_signal(stop_);
    screen_.say("neap demo: " + std::to_string(demo_devices) +
                " simulated A100-80G; training, serving and requests are real processes.");
    Result<DemoFiles> files = prepare_demo(options_);
    if (!files) return failed(files.error());
    files_ = std::move(*files);
    screen_.say("Everything is in " + files_.folder);
    int code = 0;
    {
      DemoDaemon daemon(files_);
      const Result<bool> held = show(daemon);
      code = !held ? failed(held.error()) : *held ? 0 : 1;
      if (stop_.stop_requested()) code = 130;
      if (options_.afterwards == Afterwards::keep_running && held && !stop_.stop_requested()) {
        say_how_to_stop(daemon);
        daemon.keep();
        return code;
      }
      end_all(daemon);
    }
    leave_folder(code);
    return code;
  }

 private:
  Result<bool> show(DemoDaemon& daemon) {
    if (Result<void> ready = start(daemon); !ready) return tl::unexpected(ready.error());
    DemoFigures figures;
    figures.folder = files_.folder;
    figures.pool_began_us = began_us_;
    if (Result<void> day = play_day(figures); !day) return tl::unexpected(day.error());
    if (stop_.stop_requested()) return false;
    const std::vector<Promise> promises = promises_of(figures);
    if (options_.report == Report::json) {
      terminal_.line(report_json(figures, promises));
    } else {
      print_report(figures, promises, terminal_);
    }
    terminal_.flush();
    return all_held(promises);
  }

  Result<void> start(DemoDaemon& daemon) {
    began_us_ = wall_clock_us();
    if (Result<void> started = daemon.start(); !started) return started;
    if (Result<void> ready = daemon.wait_ready(seconds(20)); !ready) return ready;
    watch_.emplace(files_.socket);
    for (const char* name : demo_trainings) {
      if (Result<void> done = submit(demo_training(files_, options_, name)); !done) return done;
    }
    if (Result<void> done = submit(demo_chat(files_, options_)); !done) return done;
    screen_.say("Waiting for two training jobs and the first replica to run");
    return wait_until(start_patience, "not everything runs within 3 min",
                      [this] { return watch_->picture().replicas_ready > 0 && trainings_run(); });
  }

  [[nodiscard]] bool trainings_run() const {
    for (const char* name : demo_trainings) {
      const SeenTask* task = watch_->picture().task(name);
      if (task == nullptr || task->state != "running" || task->step <= 0) return false;
    }
    return true;
  }

  Result<void> submit(const DemoTask& task) {
    const Result<std::string> answer = watch_->client().post(
        "/v1/tasks",
        json_object(
            {{"file", task.name + ".yaml"}, {"text", task.text}, {"workdir", task.workdir}}));
    if (!answer) return tl::unexpected(answer.error());
    return {};
  }

  // Looks until `done`, the end of patience (an error), or a signal (no error).
  Result<void> wait_until(Micros patience, const std::string& otherwise,
                          const std::function<bool()>& done) {
    const std::int64_t deadline = wall_clock_us() + patience.value;
    while (!stop_.stop_requested()) {
      if (Result<void> seen = watch_->refresh(); !seen) return seen;
      if (load_) screen_.show(watch_->picture(), load_->view(), watch_->evidence().story);
      if (done()) return {};
      if (wall_clock_us() > deadline) return fail(ErrorCode::unavailable, otherwise + states());
      std::this_thread::sleep_for(std::chrono::microseconds(look_every.value));
    }
    return {};
  }

  [[nodiscard]] std::string states() const {
    std::string text;
    for (const SeenTask& task : watch_->picture().tasks) {
      text +=
          "\n  " + task.name + " " + task.state + (task.reason.empty() ? "" : ": " + task.reason);
    }
    return text;
  }

  Result<void> play_day(DemoFigures& figures) {
    Result<load::Day> day = load::make_day(demo_day(options_));
    if (!day) return tl::unexpected(day.error());
    screen_.say("A day of " + std::to_string(options_.length.value / 1'000'000) +
                " s begins, with a burst of requests in it");
    load_.emplace(files_, options_, std::move(*day));
    load_->start();
    const Micros patience = options_.length + seconds(120);
    Result<void> seen =
        wait_until(patience, "the load does not end", [this] { return load_->ended(); });
    if (!seen || stop_.stop_requested()) return seen;
    const Result<load::LoadSummary> load = load_->summary();
    if (!load) return tl::unexpected(load.error());
    figures.load = *load;
    figures.burst_began_us = load_->burst_began_us();
    const std::int64_t books_at = wall_clock_us() + books_lag.value;
    // That training does not come back is a promise that did not hold, not an error.
    (void)wait_until(return_patience, "",
                     [&] { return trainings_run() && wall_clock_us() >= books_at; });
    const Result<Value> usage = watch_->get("/v1/usage");
    if (!usage) return tl::unexpected(usage.error());
    figures.usage = *usage;
    figures.at_end = watch_->picture();
    figures.evidence = watch_->evidence();
    screen_.finish();
    return {};
  }

  void say_how_to_stop(const DemoDaemon& daemon) {
    const std::string neap = files_.program + " --socket " + files_.socket;
    screen_.say("\nThe pool goes on. Look at it:\n  " + neap + " ps\n  " + neap +
                " gpus\n  curl http://127.0.0.1:" + std::to_string(files_.port) +
                "/v1/completions -d '{\"prompt\": \"The licensee\"}'\nStop it:\n  " + neap +
                " cancel " + demo_service + " " + demo_trainings[0] + " " + demo_trainings[1] +
                " && sleep 5 && kill " + std::to_string(daemon.pid()));
  }

  void end_all(DemoDaemon& daemon) {
    if (load_) load_.reset();
    if (watch_ && daemon.alive()) {
      screen_.say("Ending all that was started");
      api::Client& client = watch_->client();
      (void)client.remove(std::string("/v1/services/") + demo_service);
      for (const char* name : demo_trainings) {
        (void)client.remove(std::string("/v1/tasks/") + name);
      }
      const std::int64_t deadline = wall_clock_us() + end_patience.value;
      while (wall_clock_us() < deadline && watch_->refresh() && !watch_->picture().tasks.empty()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      }
    }
    daemon.stop(seconds(15));
    end_processes(processes_of(files_.folder), seconds(3));
  }

  // After a failure the logs are worth more than a clean disk.
  void leave_folder(int code) {
    if (code != 0 && code != 130) {
      screen_.say("Logs are kept in " + files_.folder);
      return;
    }
    std::error_code ignored;
    fs::remove_all(files_.folder, ignored);
  }

  int failed(const Error& error) {
    screen_.finish();
    terminal_.complain("neap demo: " + to_string(error));
    return exit_code_of(error.code);
  }

  DemoOptions options_;
  Terminal& terminal_;
  DemoScreen screen_;
  DemoFiles files_;
  std::stop_source stop_;
  std::int64_t began_us_ = 0;
  std::optional<DemoWatch> watch_;
  std::optional<DemoLoad> load_;
};

}  // namespace

int run_demo(const DemoOptions& options, Terminal& terminal) {
  return Demo(options, terminal).run();
}

int demo(const std::vector<std::string>& words, Terminal& terminal) {
  for (const std::string& word : words) {
    if (word != "--help" && word != "-h") continue;
    terminal.write(demo_usage());
    return 0;
  }
  const Result<DemoOptions> options = parse_demo_options(words);
  if (!options) {
    terminal.complain(to_string(options.error()));
    return exit_code_of(options.error().code);
  }
  return run_demo(*options, terminal);
}

}  // namespace neap::cli
