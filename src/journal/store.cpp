#include "journal/store.h"

#include <array>

#include "core/model/check.h"
#include "journal/crash_points.h"

namespace neap::journal {
namespace {

enum Prepared : std::size_t {
  begin_sql,
  commit_sql,
  head_sql,
  part_sql,
  delete_sql,
  prepared_from_text,
  insert_one_sql = prepared_from_text,
  insert_many_sql,
};

// SQLite inserts this many rows of one statement in three quarters of the time that as many
// statements of one row take.
constexpr std::size_t rows_at_once = 16;

constexpr std::array<std::string_view, prepared_from_text> texts = {
    "BEGIN IMMEDIATE",
    "COMMIT",
    "UPDATE head SET sequence = ?, time_us = ?, chain = ? WHERE id = 1",
    "INSERT INTO snapshot_part(sequence, part, bytes) VALUES(?, ?, ?)",
    "DELETE FROM record WHERE sequence IN (SELECT sequence FROM record WHERE sequence <= "
    "(SELECT max(last) FROM segment WHERE raw = 0) ORDER BY sequence LIMIT 10000)",
};

std::string insert_text(std::size_t rows) {
  std::string text = "INSERT INTO record(sequence, time_us, kind, type, payload, chain) VALUES";
  for (std::size_t i = 0; i < rows; ++i) text += i == 0 ? "(?,?,?,?,?,?)" : ",(?,?,?,?,?,?)";
  return text;
}

std::int64_t stored(std::uint64_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

Result<Store> Store::open(const std::string& path) {
  auto lock = WriterLock::acquire(path);
  if (!lock) return pass_on(lock);
  auto connection = open_for_writing(path);
  if (!connection) return pass_on(connection);
  auto head = read_head(*connection);
  if (!head) return pass_on(head);
  Store store(std::move(*lock), std::move(*connection), *head);
  if (auto sound = store.check_end(); !sound) return pass_on(sound);
  if (auto ready = store.prepare_statements(); !ready) return pass_on(ready);
  if (auto finished = store.finish_after_crash(); !finished) return pass_on(finished);
  return store;
}

Result<void> Store::prepare_statements() {
  std::vector<std::string> all(texts.begin(), texts.end());
  all.push_back(insert_text(1));
  all.push_back(insert_text(rows_at_once));
  for (const std::string& text : all) {
    auto statement = connection_.prepare(text);
    if (!statement) return pass_on(statement);
    statements_.push_back(std::move(*statement));
  }
  return {};
}

Result<void> Store::check_end() {
  auto last = connection_.query_int(
      "SELECT max((SELECT ifnull(max(sequence), 0) FROM record),"
      " (SELECT ifnull(max(last), 0) FROM segment))");
  if (!last) return damaged(connection_, head_.sequence, last.error().message);
  if (const auto end = static_cast<std::uint64_t>(*last); end != head_.sequence) {
    return damaged(connection_, std::min(end, head_.sequence) + 1,
                   "records end at " + std::to_string(end) + ", and the journal's head names " +
                       std::to_string(head_.sequence));
  }
  auto at_end = chain_after(connection_, head_.sequence);
  if (!at_end) return pass_on(at_end);
  if (*at_end != head_.chain) {
    return damaged(connection_, head_.sequence, "its chain hash is not the one of the head");
  }
  const auto& anchor = lock_.anchor();
  if (!anchor) return {};
  if (anchor->sequence > head_.sequence) {
    return damaged(connection_, head_.sequence + 1,
                   "it is missing, and records up to " + std::to_string(anchor->sequence) +
                       " were durable: the journal was cut short (after restoring an older copy "
                       "on purpose, remove " +
                       connection_.path() + "-lock)");
  }
  if (anchor->sequence <= dropped_up_to(connection_).value_or(0)) return {};
  auto at_anchor = chain_after(connection_, anchor->sequence);
  if (!at_anchor) return pass_on(at_anchor);
  if (*at_anchor != anchor->chain) {
    return damaged(connection_, anchor->sequence,
                   "it is not the record that was reported durable (after putting another journal "
                   "in place on purpose, remove " +
                       connection_.path() + "-lock)");
  }
  return {};
}

Result<void> Store::finish_after_crash() {
  auto unfinished = connection_.query_int(
      "SELECT EXISTS(SELECT 1 FROM snapshot_part"
      " WHERE sequence NOT IN (SELECT sequence FROM snapshot))");
  if (!unfinished) return pass_on(unfinished);
  if (*unfinished != 0) {
    auto removed = connection_.execute(
        "DELETE FROM snapshot_part WHERE sequence NOT IN (SELECT sequence FROM snapshot)");
    if (!removed) return removed;
  }
  auto snapshot = connection_.query_int("SELECT max(sequence) FROM snapshot");
  if (!snapshot) return pass_on(snapshot);
  last_snapshot_ = static_cast<std::uint64_t>(*snapshot);
  auto left = connection_.query_int(
      "SELECT EXISTS(SELECT 1 FROM record"
      " WHERE sequence <= (SELECT max(last) FROM segment WHERE raw = 0))");
  if (!left) return pass_on(left);
  dropping_ = *left != 0;
  return {};
}

Result<void> Store::begin() {
  auto begun = statements_[begin_sql].run();
  crash_point(CrashPoint::begun);
  return begun;
}

Result<void> Store::commit() {
  if (head_changed_) {
    Statement& update = statements_[head_sql];
    update.bind(1, stored(head_.sequence));
    update.bind(2, head_.time.us);
    update.bind(3, bytes_of(head_.chain));
    if (auto updated = update.run(); !updated) return updated;
  }
  crash_point(CrashPoint::before_commit);
  if (auto committed = statements_[commit_sql].run(); !committed) return committed;
  crash_point(CrashPoint::after_commit);
  if (!head_changed_) return {};
  head_changed_ = false;
  auto anchored = lock_.write_anchor({head_.sequence, head_.chain});
  crash_point(CrashPoint::after_anchor);
  return anchored;
}

Result<void> Store::insert(const Batch& batch) {
  std::array<ChainHash, rows_at_once> chains;  // bound without a copy until the statement has run
  for (std::size_t done = 0; done < batch.size();) {
    const std::size_t rows = batch.size() - done >= rows_at_once ? rows_at_once : 1;
    Statement& insert = statements_[rows == 1 ? insert_one_sql : insert_many_sql];
    for (std::size_t row = 0; row < rows; ++row) {
      RecordView record = batch.at(done + row);
      NEAP_CHECK(record.time >= head_.time || head_.sequence == 0);
      record.sequence = head_.sequence + 1;
      chains[row] = chain(head_.chain, record);
      head_.chain = chains[row];
      head_.sequence = record.sequence;
      head_.time = record.time;
      const int place = static_cast<int>(row) * 6;
      insert.bind(place + 1, stored(record.sequence));
      insert.bind(place + 2, record.time.us);
      insert.bind(place + 3, static_cast<std::int64_t>(record.kind));
      insert.bind(place + 4, std::int64_t{record.type});
      insert.bind(place + 5, record.payload);
      insert.bind(place + 6, bytes_of(chains[row]));
    }
    head_changed_ = true;
    if (auto inserted = insert.run(); !inserted) return inserted;
    crash_point(CrashPoint::rows_inserted);
    done += rows;
  }
  return {};
}

void Store::begin_snapshot(std::vector<std::byte> blob) {
  if (head_.sequence == last_snapshot_) return;  // the state has not changed since
  last_snapshot_ = head_.sequence;
  snapshots_.push_back({head_.sequence, head_.time, head_.chain, std::move(blob), 0});
}

Result<std::uint64_t> Store::insert_snapshot_part() {
  Unfinished& snapshot = snapshots_.front();
  const std::size_t offset = snapshot.parts * snapshot_part_bytes;
  if (offset < snapshot.blob.size()) {
    const std::size_t size = std::min(snapshot_part_bytes, snapshot.blob.size() - offset);
    Statement& insert = statements_[part_sql];
    insert.bind(1, stored(snapshot.sequence));
    insert.bind(2, stored(snapshot.parts));
    insert.bind(3, Bytes(snapshot.blob).subspan(offset, size));
    if (auto inserted = insert.run(); !inserted) return pass_on(inserted);
    ++snapshot.parts;
    crash_point(CrashPoint::snapshot_part);
  }
  if (snapshot.parts * snapshot_part_bytes < snapshot.blob.size()) return 0;
  const Unfinished complete = std::move(snapshot);
  snapshots_.pop_front();
  if (auto completed = complete_snapshot(complete); !completed) return pass_on(completed);
  crash_point(CrashPoint::snapshot_complete);
  return complete.sequence;
}

Result<void> Store::complete_snapshot(const Unfinished& snapshot) {
  auto insert = connection_.prepare(
      "INSERT INTO snapshot(sequence, time_us, size, checksum, chain) VALUES(?, ?, ?, ?, ?)");
  if (!insert) return pass_on(insert);
  const ChainHash checksum = hash_of(snapshot.blob);
  insert->bind(1, stored(snapshot.sequence));
  insert->bind(2, snapshot.time.us);
  insert->bind(3, stored(snapshot.blob.size()));
  insert->bind(4, bytes_of(checksum));
  insert->bind(5, bytes_of(snapshot.chain));
  if (auto inserted = insert->run(); !inserted) return inserted;
  auto remove = connection_.prepare(
      "DELETE FROM snapshot WHERE sequence NOT IN"
      " (SELECT sequence FROM snapshot ORDER BY sequence DESC LIMIT ?)");
  if (!remove) return pass_on(remove);
  remove->bind(1, std::int64_t{snapshots_kept});
  if (auto removed = remove->run(); !removed) return removed;
  // Parts of a later snapshot cannot be there: they are written one snapshot after the other.
  return connection_.execute(
      "DELETE FROM snapshot_part WHERE sequence NOT IN (SELECT sequence FROM snapshot)");
}

Result<void> Store::seal(Bytes closing) {
  auto last = connection_.prepare(
      "SELECT number, last, chain_last, checksum FROM segment ORDER BY number DESC LIMIT 1");
  if (!last) return pass_on(last);
  auto row = last->step();
  if (!row) return pass_on(row);
  Segment segment;
  ChainHash checksum_before{};
  segment.number = 1;
  segment.first = 1;
  segment.chain_before = head_.genesis;
  if (*row) {
    segment.number = static_cast<std::uint64_t>(last->column_int(0)) + 1;
    segment.first = static_cast<std::uint64_t>(last->column_int(1)) + 1;
    if (!assign(segment.chain_before, last->column_blob(2)) ||
        !assign(checksum_before, last->column_blob(3))) {
      return damaged(connection_, segment.first - 1, "the sealed segment before is malformed");
    }
  }
  last->reset();
  segment.last = head_.sequence;
  if (segment.last < segment.first) return {};
  auto first_time = connection_.query_int("SELECT time_us FROM record WHERE sequence = " +
                                          std::to_string(segment.first));
  if (!first_time) return pass_on(first_time);
  segment.first_time = Time(*first_time);
  segment.last_time = head_.time;
  segment.chain_last = head_.chain;
  segment.closing.assign(closing.begin(), closing.end());
  segment.checksum = checksum_of(segment, checksum_before);
  auto insert = connection_.prepare("INSERT INTO segment VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, 1)");
  if (!insert) return pass_on(insert);
  insert->bind(1, stored(segment.number));
  insert->bind(2, stored(segment.first));
  insert->bind(3, stored(segment.last));
  insert->bind(4, segment.first_time.us);
  insert->bind(5, segment.last_time.us);
  insert->bind(6, bytes_of(segment.chain_before));
  insert->bind(7, bytes_of(segment.chain_last));
  insert->bind(8, Bytes(segment.closing));
  insert->bind(9, bytes_of(segment.checksum));
  auto inserted = insert->run();
  crash_point(CrashPoint::segment_sealed);
  return inserted;
}

Result<void> Store::drop_older_than(Time limit) {
  auto mark = connection_.prepare(
      "UPDATE segment SET raw = 0 WHERE raw = 1 AND last_time_us < ?1 AND last <="
      " (SELECT CASE WHEN count(*) = ?2 THEN min(sequence) ELSE 0 END FROM snapshot)");
  if (!mark) return pass_on(mark);
  mark->bind(1, limit.us);
  mark->bind(2, std::int64_t{snapshots_kept});
  if (auto marked = mark->run(); !marked) return marked;
  if (connection_.changes() > 0) dropping_ = true;
  return {};
}

Result<void> Store::delete_dropped() {
  if (auto deleted = statements_[delete_sql].run(); !deleted) return deleted;
  crash_point(CrashPoint::segment_dropped);
  dropping_ = connection_.changes() > 0;
  return {};
}

}  // namespace neap::journal
