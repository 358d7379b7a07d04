// Any bytes as the body of each request: decoded, or an error with a message.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/decode.h"
#include "api/error_body.h"
#include "api/reports.h"
#include "config/task_file.h"

namespace {

template <class Value>
bool sound(const neap::Result<Value>& decoded) {
  return decoded.has_value() ||
         (!decoded.error().message.empty() && !neap::api::error_body(decoded.error()).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto submission = neap::api::decode_submission(body);
  const auto scale = neap::api::decode_scale(body);
  if (!sound(submission) || !sound(scale) || !sound(neap::api::decode_pause(body))) std::abort();
  if (scale && scale->replicas_max == 0) std::abort();
  if (!sound(neap::api::decode_stage_change(body))) std::abort();
  const auto drill = neap::api::decode_drill(body);
  if (!sound(drill) || (drill && (drill->replicas < 0 || drill->for_us < 0))) std::abort();
  if (!submission) return 0;
  if (!submission->workdir.starts_with('/')) std::abort();
  neap::config::Problems problems(submission->file);
  const neap::config::Submitter submitter{{1000, 1000, "ada"}, submission->workdir};
  const auto file = neap::config::parse_task_file(submission->text, submitter, problems);
  if (file.has_value() != problems.empty()) std::abort();
  if (!file && neap::api::error_body(problems).empty()) std::abort();
  return 0;
}
