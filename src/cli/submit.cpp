#include "cli/verbs.h"
#include "config/text.h"

namespace neap::cli {

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
  }
  return 0;
}

}  // namespace neap::cli
