#include "cli/demo_files.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "cli/demo_process.h"
#include "cli/value.h"
#include "posix/fd.h"

namespace neap::cli {
namespace {

namespace fs = std::filesystem;

// A replica serves `replica_slots` requests at once, a token of each every `token_sleep_ms`: with
// 16 tokens a request takes 0.8 s, and a replica answers five requests a second. The day asks for
// less than one replica can do, the burst for more than two can do in comfort.
constexpr int replica_slots = 4;
constexpr int token_sleep_ms = 50;
constexpr int tokens = 16;

Result<std::string> find_examples(const std::string& given, const std::string& program) {
  std::vector<fs::path> places;
  if (!given.empty()) {
    places.emplace_back(given);
  } else {
    const fs::path beside = fs::path(program).parent_path();
    for (const char* way : {"../examples/llm", "../../examples/llm", "../../../examples/llm",
                            "../share/neap/examples/llm"}) {
      places.push_back(beside / way);
    }
  }
  for (const fs::path& place : places) {
    std::error_code error;
    const fs::path whole = fs::weakly_canonical(place, error);
    if (!error && fs::exists(whole / "train.py", error) && fs::exists(whole / "serve.py", error)) {
      return whole.string();
    }
  }
  return fail(ErrorCode::not_found, "train.py and serve.py are not there; name their folder",
              "--examples" + (given.empty() ? "" : " " + given));
}

Result<void> check_python(const std::string& python) {
  const Result<int> code = run_to_end({python, "-c", "import torch"});
  if (!code || *code == 127) {
    return fail(ErrorCode::unavailable, "no such interpreter", "--python " + python);
  }
  if (*code != 0) {
    return fail(ErrorCode::unavailable,
                "it cannot import torch: apt-get install --no-install-recommends python3-torch "
                "libopenblas0-pthread",
                python);
  }
  return {};
}

Result<std::string> make_folder(const std::string& given) {
  std::error_code error;
  if (given.empty()) {
    std::string pattern = "/tmp/neap-demo-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
      return fail(ErrorCode::unavailable, "cannot make a folder under /tmp");
    }
    return pattern;
  }
  fs::create_directories(given, error);
  if (error || !fs::is_empty(given, error) || error) {
    return fail(ErrorCode::invalid_argument, "expected a new or empty folder", "--dir " + given);
  }
  return fs::canonical(given, error).string();
}

// Free a moment ago. The gateway says clearly when it is not any more.
Result<std::uint16_t> free_port() {
  const posix::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* where = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd.get(), where, sizeof address) != 0 || ::getsockname(fd.get(), where, &size) != 0) {
    return fail(ErrorCode::unavailable, "no free port on the loopback interface");
  }
  return ntohs(address.sin_port);
}

std::string command_text(const std::vector<std::string>& words) {
  std::string text = "[";
  for (const std::string& word : words) text += (text.size() > 1 ? ", " : "") + json_text(word);
  return text + "]";
}

}  // namespace

std::string demo_pool_text(const DemoFiles& files) {
  std::string text =
      "# The pool of `neap demo`: devices are simulated, processes are real. The times are those\n"
      "# of a real pool, shortened as the day is.\n"
      "pool:\n"
      "  name: demo\n"
      "  total_gpus: 4\n"
      "  inference_guard_min: 1\n"
      "  elastic_buffer: 1\n"
      "preempt:\n"
      "  enabled: true\n"
      "  only_at_checkpoint: true\n"
      "  checkpoint_interval_min: 1\n"
      "  protected_for: 5s\n"
      "  fixed_cost: 1s\n"
      "  budget_per_day: 100\n"
      "  grace: 20s\n"
      "  term_grace: 10s\n"
      "priority_tiers:\n"
      "  - {name: infer_core, weight: 100}\n"
      "  - {name: train_normal, weight: 40}\n"
      "devices:\n"
      "  source: simulated\n"
      "  nodes:\n"
      "    - {name: demo, model: A100-80G, count: 4}\n";
  text += "api: {socket: " + json_text(files.socket) + "}\n";
  text += "state_dir: " + json_text(files.state_dir) + "\n";
  return text;
}

DemoTask demo_training(const DemoFiles& files, const DemoOptions& options,
                       const std::string& name) {
  DemoTask task{.name = name, .text = {}, .workdir = files.folder + "/" + name};
  task.text = "task:\n  name: " + name + "\n  tier: train_normal\n  command: " +
              command_text({options.python, files.examples + "/train.py", "--contract", "sdk",
                            "--steps", "1000000", "--checkpoint-seconds", "3", "--size", "small",
                            "--batch", "4", "--step-sleep", "0.05"}) +
              "\n"
              "  gpus: 1\n"
              "  cpu: 1\n"
              "  work: 20h\n"
              "  checkpoint:\n"
              "    contract: sdk\n"
              "    interval: 3s\n"
              "    save_time: 500ms\n"
              "    stall_time: 500ms\n"
              "    drain_time: 500ms\n"
              "    release_time: 1s\n"
              "    restore_time: 4s\n";
  return task;
}

DemoTask demo_chat(const DemoFiles& files, const DemoOptions& options) {
  DemoTask task{.name = demo_service, .text = {}, .workdir = files.folder + "/" + demo_service};
  const std::string trained = files.folder + "/" + demo_trainings[0];
  task.text =
      std::string("service:\n  name: ") + demo_service + "\n  tier: infer_core\n  command: " +
      command_text({options.python, files.examples + "/serve.py", "--port={port}", "--checkpoints",
                    trained + "/checkpoints/" + demo_trainings[0], "--slots",
                    std::to_string(replica_slots), "--token-sleep-ms",
                    std::to_string(token_sleep_ms), "--reload-seconds", "3"}) +
      "\n"
      "  gpus: 1\n"
      "  replicas: {min: 1, max: " +
      std::to_string(demo_replicas_max) +
      "}\n"
      "  port: " +
      std::to_string(files.port) +
      "\n"
      "  concurrency: " +
      std::to_string(replica_slots) +
      "\n"
      "  health: {interval: 250ms, timeout: 5s, start_timeout: 2min}\n"
      "  slo: {ttft: 1s}\n"
      "  scale: {up_above: 70%, up_for: 2s, down_below: 30%, down_for: 5s, stale_after: 10s}\n"
      "  drain_timeout: 30s\n";
  return task;
}

std::string demo_request_body() {
  return R"({"prompt": "The licensee of copy {n} may ", "max_tokens": )" + std::to_string(tokens) +
         R"(, "stream": true})";
}

load::DayShape demo_day(const DemoOptions& options) {
  return {.length = options.length,
          .night_per_second = 0.6,
          .day_per_second = 1.2,
          .burst_per_second = 8};
}

Result<DemoFiles> prepare_demo(const DemoOptions& options) {
  DemoFiles files;
  std::error_code error;
  files.program = fs::read_symlink("/proc/self/exe", error).string();
  const Result<std::string> examples = find_examples(options.examples, files.program);
  if (!examples) return tl::unexpected(examples.error());
  files.examples = *examples;
  if (Result<void> python = check_python(options.python); !python) {
    return tl::unexpected(python.error());
  }
  const Result<std::uint16_t> port = free_port();
  if (!port) return tl::unexpected(port.error());
  files.port = *port;
  const Result<std::string> folder = make_folder(options.folder);
  if (!folder) return tl::unexpected(folder.error());
  files.folder = *folder;
  files.pool_file = files.folder + "/pool.yaml";
  files.state_dir = files.folder + "/state";
  files.socket = files.folder + "/neap.sock";
  files.daemon_log = files.folder + "/daemon.log";
  for (const std::string name : {demo_trainings[0], demo_trainings[1], demo_service}) {
    fs::create_directory(files.folder + "/" + name, error);
  }
  std::ofstream pool(files.pool_file);
  pool << demo_pool_text(files);
  pool.close();
  if (!pool) return fail(ErrorCode::unavailable, "cannot be written", files.pool_file);
  return files;
}

}  // namespace neap::cli
