#include "daemon/recovery.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/engine.h"
#include "core/model/codec.h"
#include "core/model/pool_index.h"
#include "daemon/log.h"
#include "journal/reader.h"

namespace neap::daemon {

namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void replay(Recovered& out, Record record) {
  PoolState& state = out.state;
  if (auto* event = std::get_if<Event>(&record.body)) {
    if (const ReportStamp* stamp = stamp_of(*event)) {
      record.reporter = state.index->allocations.at(stamp->source);
    }
    apply(state, record.time, *event);
  } else {
    apply(state, record.time, std::get<Decision>(record.body));
  }
  out.books.note(state, record);
  ++out.replayed;
}

}  // namespace

Result<Record> decode_record(const journal::RecordView& view) {
  Record record{view.sequence, view.time, {}, TaskId::none()};
  const bool is_event =
      view.kind == journal::RecordKind::event || view.kind == journal::RecordKind::aggregate;
  if (is_event) {
    auto event = decode_event(as_text(view.payload));
    if (!event) return tl::unexpected(event.error());
    record.body = std::move(*event);
  } else {
    auto decision = decode_decision(as_text(view.payload));
    if (!decision) return tl::unexpected(decision.error());
    record.body = std::move(*decision);
  }
  return record;
}

Result<Recovered> recover(const std::string& journal_path, ReplayFrom from) {
  Recovered out;
  if (!std::filesystem::exists(journal_path)) {
    return fail(ErrorCode::not_found, "there is no journal at " + journal_path);
  }
  auto reader = journal::Reader::open(journal_path);
  if (!reader) return tl::unexpected(reader.error());
  auto oldest = reader->first_sequence();
  if (!oldest) return tl::unexpected(oldest.error());
  // Where retention has dropped records, the oldest snapshot is the first that there is.
  if (from == ReplayFrom::newest_snapshot || *oldest > 1) {
    auto loaded =
        reader->load_snapshot(from == ReplayFrom::newest_snapshot ? journal::SnapshotAge::newest
                                                                  : journal::SnapshotAge::oldest);
    if (!loaded) return tl::unexpected(loaded.error());
    for (const std::string& why : loaded->rejected)
      log_warning(fmt::format("snapshot passed over: {}", why));
    if (loaded->snapshot) {
      auto restored = decode_checkpoint(as_text(loaded->snapshot->blob));
      if (!restored) return tl::unexpected(restored.error());
      out.state = std::move(restored->state);
      out.books = std::move(restored->books);
      out.snapshot_sequence = loaded->snapshot->sequence;
    }
  }
  auto cursor = reader->from(out.snapshot_sequence + 1);
  if (!cursor) return tl::unexpected(cursor.error());
  while (true) {
    auto next = cursor->next();
    if (!next) return tl::unexpected(next.error());
    if (!next->has_value()) return out;
    auto record = decode_record(**next);
    if (!record) {
      return fail(ErrorCode::internal, record.error().message,
                  "journal record " + std::to_string((*next)->sequence));
    }
    replay(out, std::move(*record));
  }
}

}  // namespace neap::daemon
