#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

#include "cli/log_reader.h"
#include "cli/verbs.h"

namespace neap::cli {

namespace {

// A name from the program's: "train.py" becomes "train-py-4711".
std::string name_for(const std::string& program) {
  std::string name;
  for (const char c : std::filesystem::path(program).filename().string()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const bool capital = c >= 'A' && c <= 'Z';
    if (plain || capital) name += capital ? static_cast<char>(c - 'A' + 'a') : c;
    if (!plain && !capital && !name.empty() && name.back() != '-') name += '-';
  }
  while (name.ends_with('-')) name.pop_back();
  if (name.empty()) name = "run";
  return name.substr(0, 40) + "-" + std::to_string(::getpid());
}

// Cancels the task when the person presses Ctrl-C; the log then ends by itself. The second
// Ctrl-C leaves at once.
class Interrupt {
 public:
  Interrupt(const Context& context, const Value& made) {
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGINT);
    ::sigaddset(&signals_, SIGTERM);
    ::sigaddset(&signals_, SIGUSR2);  // ends the thread
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    thread_ = std::thread([this, &context, &made] { wait(context, made); });
  }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt() {
    ending_.store(true);
    ::pthread_kill(thread_.native_handle(), SIGUSR2);
    thread_.join();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  void wait(const Context& context, const Value& made) {
    constexpr int interrupted = 130;
    for (int count = 1;; ++count) {
      int signal = 0;
      ::sigwait(&signals_, &signal);
      if (ending_.load()) return;
      if (count > 1) ::_exit(interrupted);
      context.terminal().complain("neap: cancelling " + made.text_at("name") +
                                  "; again leaves at once");
      auto client = context.client();
      if (client) (void)client->remove("/v1/tasks/" + std::to_string(made.number_at("id")));
    }
  }

  ::sigset_t signals_{};
  ::sigset_t before_{};
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

std::string yaml_list(const std::vector<std::string>& items) {
  std::string text = "[";
  for (const std::string& item : items) text += (text.size() > 1 ? ", " : "") + json_text(item);
  return text + "]";
}

void print_ending(const Context& context, const Value& made, const Ending& ending) {
  if (ending.state == "finished") return;
  std::string line = "neap: " + made.text_at("name") + " " + ending.state;
  if (ending.exit_code > 0) line += " with " + std::to_string(ending.exit_code);
  const auto detail = context.get("/v1/tasks/" + std::to_string(made.number_at("id")));
  if (detail && !detail->at("task").text_at("reason").empty()) {
    line += ": " + harmless(detail->at("task").text_at("reason"));
  }
  context.terminal().complain(line);
}

}  // namespace

Result<std::string> task_text(const RunOptions& options, const std::string& name) {
  std::string text = "task:\n  name: " + json_text(name) + "\n";
  const auto add = [&text](const std::string& key, const std::string& value) {
    if (!value.empty()) text += "  " + key + ": " + json_text(value) + "\n";
  };
  text += "  command: " + yaml_list(options.command) + "\n";
  add("tier", options.tier);
  add("team", options.team);
  add("kind", options.kind);
  if (options.memory.empty() && options.compute.empty()) {
    text += "  gpus: " + std::to_string(options.gpus) + "\n";
  } else {
    text += "  gpu:\n    count: " + std::to_string(options.gpus) + "\n";
    if (!options.memory.empty()) text += "    memory: " + json_text(options.memory) + "\n";
    if (!options.compute.empty()) text += "    compute: " + json_text(options.compute) + "\n";
  }
  if (!options.checkpoint.empty()) {
    text += "  checkpoint: {contract: " + yaml_list(options.checkpoint) + "}\n";
  }
  if (!options.env.empty()) text += "  env:\n";
  for (const std::string& variable : options.env) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos) {
      return fail(ErrorCode::invalid_argument, "expected NAME=value", "--env " + variable);
    }
    text += "    " + json_text(variable.substr(0, equals)) + ": " +
            json_text(variable.substr(equals + 1)) + "\n";
  }
  return text;
}

int run(const Context& context, const RunOptions& options) {
  const std::string name = options.name.empty() ? name_for(options.command.front()) : options.name;
  const auto text = task_text(options, name);
  if (!text) return context.failed(text.error());
  auto client = context.client();
  if (!client) return context.failed(client.error());
  const auto workdir = working_folder();
  if (!workdir) return context.failed(workdir.error());
  const auto answer = client->post(
      "/v1/tasks", json_object({{"file", "neap run"}, {"text", *text}, {"workdir", *workdir}}));
  if (!answer) return context.failed(answer.error());
  const auto made = Value::parse(*answer);
  if (!made) return context.failed(made.error());
  // By number: the name may be another task's by the time this one has ended.
  const std::string id = std::to_string(made->number_at("id"));
  context.terminal().complain("neap: " + name + " submitted, id " + id);
  const Interrupt interrupt(context, *made);
  const auto ending = follow_log(context, id, 0);
  if (!ending) return context.failed(ending.error());
  print_ending(context, *made, *ending);
  return exit_code_of(*ending);
}

}  // namespace neap::cli
