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

// Where the newest `limit` events begin. Others' events are not shown to everybody: the search
// goes back page by page, and not for ever.
Result<std::int64_t> begin_of_newest(const Context& context, const EventsOptions& options) {
  constexpr int pages_max = 50;
  const auto status = context.get("/v1/status");
  if (!status) return tl::unexpected(status.error());
  std::int64_t begin = status->at("pool").number_at("sequence");
  if (options.json) return std::max<std::int64_t>(0, begin - options.limit);
  std::int64_t wanted = options.limit;
  for (int i = 0; i < pages_max && begin > 0 && wanted > 0; ++i) {
    const std::int64_t size = std::min(page, begin);
    const auto found = context.get("/v1/events?after=" + std::to_string(begin - size) +
                                   "&limit=" + std::to_string(size));
    if (!found) return tl::unexpected(found.error());
    const auto& seen = found->list_at("events");
    const auto count = static_cast<std::int64_t>(seen.size());
    begin -= size;
    if (count >= wanted) {
      return seen[static_cast<std::size_t>(count - wanted)].number_at("sequence") - 1;
    }
    wanted -= count;
  }
  return begin;
}

}  // namespace

int events(const Context& context, const EventsOptions& asked) {
  EventsOptions options = asked;
  std::int64_t after = std::max<std::int64_t>(options.after, 0);
  const bool from_now = options.follow && options.after < 0;
  if (options.after < 0 && !options.follow) {
    const auto newest = begin_of_newest(context, options);
    if (!newest) return context.failed(newest.error());
    after = *newest;
    // From there to the end, however many of them are shown.
    if (!options.json) options.limit = INT64_MAX;
  }
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
