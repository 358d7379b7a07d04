#include "cli/verbs.h"
#include "config/text.h"

namespace neap::cli {

namespace {

// A deadline that is not accepted is no fault of the submission, and yet to be known at once.
void tell_deadline(const Context& context, std::int64_t id) {
  const auto report = context.get("/v1/tasks/" + std::to_string(id) + "/why");
  if (!report) return;  // it is there in `neap why`
  for (const Value& check : report->list_at("admission")) {
    const bool refused = check.text_at("name") == "deadline" && check.text_at("state") == "failed";
    if (refused) context.terminal().line(harmless(check.text_at("message")));
  }
}

}  // namespace

int submit(const Context& context, const SubmitOptions& options) {
  auto client = context.client();
  if (!client) return context.failed(client.error());
  const auto workdir = working_folder();
  if (!workdir) return context.failed(workdir.error());
  for (const std::string& file : options.files) {
    const auto text = config::read_file(file);
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
    tell_deadline(context, made->number_at("id"));
  }
  return 0;
}

}  // namespace neap::cli
