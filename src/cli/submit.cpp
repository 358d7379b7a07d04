#include <algorithm>
#include <string>
#include <string_view>

#include "cli/verbs.h"
#include "config/text.h"

namespace neap::cli {

namespace {

// A deadline that is not accepted is no fault of the submission, and yet to be known at once.
void tell_deadline(const Context& context, const Value& made) {
  const std::string id = std::to_string(made.number_at("id"));
  const auto report = context.get("/v1/tasks/" + id + "/why");
  if (!report) return;  // it is there in `neap why`
  // Services and pipelines have ids of their own, which are those of other tasks.
  if (report->at("task").text_at("name") != made.text_at("name")) return;
  for (const Value& check : report->list_at("admission")) {
    const bool refused = check.text_at("name") == "deadline" && check.text_at("state") == "failed";
    if (refused) context.terminal().line(harmless(check.text_at("message")));
  }
}

// JSON carries UTF-8 alone: other bytes would be altered on their way.
Result<std::string> read_text(const std::string& file) {
  auto text = config::read_file(file);
  if (!text) return tl::unexpected(text.error());
  if (config::is_utf8(*text)) return text;
  std::size_t begin = 0;
  for (int line = 1;; ++line) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    const std::string_view one = std::string_view(*text).substr(begin, end - begin);
    if (!config::is_utf8(one) || end == text->size()) {
      return fail(ErrorCode::invalid_argument, "is not text; expected YAML in UTF-8",
                  file + ":" + std::to_string(line));
    }
    begin = end + 1;
  }
}

}  // namespace

int submit(const Context& context, const SubmitOptions& options) {
  auto client = context.client();
  if (!client) return context.failed(client.error());
  const auto workdir = working_folder();
  if (!workdir) return context.failed(workdir.error());
  for (const std::string& file : options.files) {
    const auto text = read_text(file);
    if (!text) return context.failed(text.error());
    std::string body = json_object({{"file", file}, {"text", *text}, {"workdir", *workdir}});
    if (options.replace) body.insert(body.size() - 1, ",\"replace\":true");
    const auto answer = client->post("/v1/tasks", body);
    if (!answer) return context.failed(answer.error());
    if (options.json) {
      context.terminal().line(*answer);
      continue;
    }
    const auto made = Value::parse(*answer);
    if (!made) return context.failed(made.error());
    context.terminal().line(made->text_at("name") + " submitted, id " +
                            std::to_string(made->number_at("id")));
    tell_deadline(context, *made);
  }
  return 0;
}

}  // namespace neap::cli
