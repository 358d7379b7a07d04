#include "cli/log_reader.h"

#include <chrono>
#include <optional>
#include <thread>

namespace neap::cli {

namespace {
constexpr int silent_tries_max = 60;
constexpr std::chrono::seconds between_tries{1};
}  // namespace

Result<Ending> follow_log(const Context& context, const std::string& task, std::int64_t offset) {
  auto client = context.client();
  if (!client) return tl::unexpected(client.error());
  std::optional<Ending> ending;
  bool reached = false;
  const auto take = [&](const api::StreamEvent& event) {
    const auto data = Value::parse(event.data);
    reached = true;
    if (!data) return api::Next::more;
    offset = data->number_at("next_offset", offset);
    context.terminal().write(data->text_at("text"));
    context.terminal().flush();
    if (event.name != "end") return api::Next::more;
    ending = Ending{data->text_at("state"), data->number_at("exit_code", -1)};
    return api::Next::stop;
  };
  for (int tries = 0; tries < silent_tries_max; ++tries) {
    const auto done = client->follow(
        "/v1/tasks/" + part(task) + "/log?follow=1&offset=" + std::to_string(offset), take);
    if (ending) return *ending;
    if (!done && done.error().code != ErrorCode::unavailable) return tl::unexpected(done.error());
    if (!done && !reached && tries == 0) return tl::unexpected(done.error());
    if (reached) {
      context.terminal().complain("neap: the daemon has gone; the task goes on, waiting for it");
      tries = 0;
      reached = false;
    }
    std::this_thread::sleep_for(between_tries);
  }
  return fail(ErrorCode::unavailable,
              "the daemon did not come back; `neap logs -f " + task + "` goes on when it does");
}

int exit_code_of(const Ending& ending) {
  if (ending.state == "finished") return 0;
  if (ending.state == "cancelled") return 130;
  if (ending.state == "refused") return neap::exit_code_of(ErrorCode::refused);
  return ending.exit_code > 0 ? static_cast<int>(ending.exit_code & 0xff) : 1;
}

}  // namespace neap::cli
