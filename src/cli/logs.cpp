#include "cli/log_reader.h"
#include "cli/verbs.h"

namespace neap::cli {

namespace {

constexpr std::int64_t tail_bytes = 256 * 1024;

// The last `lines` lines of `text`.
std::string_view last_lines(std::string_view text, std::int64_t lines) {
  std::size_t begin = text.size();
  if (text.ends_with('\n')) --begin;
  if (lines == 0) return {};
  while (begin > 0) {
    const std::size_t before = text.rfind('\n', begin - 1);
    if (before == std::string_view::npos) return text;
    if (--lines == 0) return text.substr(before + 1);
    begin = before;
  }
  return text;
}

}  // namespace

int logs(const Context& context, const LogsOptions& options) {
  const std::string path = "/v1/tasks/" + part(options.name) + "/log?offset=";
  std::int64_t offset = options.lines >= 0 ? -tail_bytes : 0;
  while (true) {
    const auto chunk = context.get(path + std::to_string(offset));
    if (!chunk) return context.failed(chunk.error());
    const std::string& text = chunk->text_at("text");
    const bool tail = offset < 0;
    offset = chunk->number_at("next_offset");
    context.terminal().write(tail ? last_lines(text, options.lines) : std::string_view(text));
    if (text.empty() || tail) break;
  }
  context.terminal().flush();
  if (!options.follow) return 0;
  const auto ending = follow_log(context, options.name, offset);
  return ending ? 0 : context.failed(ending.error());
}

}  // namespace neap::cli
