#include <algorithm>
#include <cstdint>

#include "cli/format.h"
#include "cli/verbs.h"

namespace neap::cli {

namespace {

constexpr std::int64_t page = 1000;

void print_event(const Context& context, const Value& event) {
  Terminal& terminal = context.terminal();
  const std::string& subject = event.text_at("subject");
  terminal.line(
      terminal.painted(moment_text(event.number_at("time_us")), Colour::faint) + "  " +
      std::to_string(event.number_at("sequence")) + "  " + harmless(event.text_at("kind")) +
      (subject.empty() ? "" : "  " + harmless(subject)) +
      (event.text_at("message").empty() ? "" : ": " + harmless(event.text_at("message"))));
  terminal.flush();
}

// Pages up to `limit` events; where they end is in `after`.
Result<void> print_pages(const Context& context, const EventsOptions& options,
                         std::int64_t& after) {
  std::int64_t left = options.follow ? INT64_MAX : options.limit;
  while (left > 0) {
    const std::int64_t asked = std::min(left, page);
    std::string body;
    const auto found = context.get(
        "/v1/events?after=" + std::to_string(after) + "&limit=" + std::to_string(asked), &body);
    if (!found) return tl::unexpected(found.error());
    if (options.json && !options.follow) {
      // One page is one document.
      context.terminal().line(body);
      return {};
    }
    for (const Value& event : found->list_at("events")) print_event(context, event);
    const std::int64_t last = found->number_at("last", after);
    left -= asked;
    if (last == after) return {};
    after = last;
  }
  return {};
}

}  // namespace

int events(const Context& context, const EventsOptions& options) {
  std::int64_t after = std::max<std::int64_t>(options.after, 0);
  const bool from_now = options.follow && options.after < 0;
  if (!from_now && !(options.json && options.follow)) {
    if (auto done = print_pages(context, options, after); !done) {
      return context.failed(done.error());
    }
  }
  if (!options.follow) return 0;
  auto client = context.client();
  if (!client) return context.failed(client.error());
  const std::string path =
      "/v1/events?follow=1" + (from_now ? "" : "&after=" + std::to_string(after));
  const auto done = client->follow(path, [&](const api::StreamEvent& event) {
    if (event.name == "behind") return api::Next::stop;
    if (options.json) {
      context.terminal().line(event.data);
      context.terminal().flush();
    } else if (const auto value = Value::parse(event.data)) {
      print_event(context, *value);
    }
    return api::Next::more;
  });
  if (!done) return context.failed(done.error());
  return context.failed({ErrorCode::unavailable, "the daemon ended the stream", ""});
}

}  // namespace neap::cli
