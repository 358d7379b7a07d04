#include "journal/reader.h"

#include <utility>

namespace neap::journal {
namespace {

// One refill of a cursor: bounds memory and the life of the read transaction.
constexpr std::int64_t rows_of_a_refill = 512;
constexpr std::size_t bytes_at_once = 1u << 20;

}  // namespace

Result<std::optional<RecordView>> Cursor::next() {
  if (row_ == rows_.size()) {
    if (auto filled = refill(); !filled) return pass_on(filled);
    if (rows_.empty()) return std::optional<RecordView>();
  }
  Row& row = rows_[row_];
  RecordView record = row.record;
  record.payload = Bytes(bytes_).subspan(row.begin, row.end - row.begin);
  if (record.sequence != next_) return damaged(*connection_, next_, "the record is missing");
  const ChainHash expected = chain(chain_, record);
  if (expected != row.chain) {
    return damaged(*connection_, next_,
                   "its chain hash does not match: it or the one before was altered or moved");
  }
  chain_ = expected;
  ++next_;
  ++row_;
  return record;
}

Result<void> Cursor::refill() {
  rows_.clear();
  bytes_.clear();
  row_ = 0;
  // Read before the rows: what the head names now must be there, whatever is added meanwhile.
  auto head = read_head(*connection_);
  if (!head) return pass_on(head);
  if (head->sequence < next_) return {};
  select_.bind(1, static_cast<std::int64_t>(next_));
  select_.bind(2, rows_of_a_refill);
  while (bytes_.size() < bytes_at_once) {
    auto row = select_.step();
    if (!row) return damaged(*connection_, next_ + rows_.size(), row.error().message);
    if (!*row) break;
    Row read;
    read.record.sequence = static_cast<std::uint64_t>(select_.column_int(0));
    read.record.time = Time(select_.column_int(1));
    read.record.kind = static_cast<RecordKind>(select_.column_int(2));
    read.record.type = static_cast<std::uint16_t>(select_.column_int(3));
    const Bytes payload = select_.column_blob(4);
    read.begin = bytes_.size();
    bytes_.insert(bytes_.end(), payload.begin(), payload.end());
    read.end = bytes_.size();
    if (!assign(read.chain, select_.column_blob(5))) {
      select_.reset();
      return damaged(*connection_, read.record.sequence, "its chain hash is malformed");
    }
    rows_.push_back(read);
  }
  select_.reset();
  if (!rows_.empty() && rows_.front().record.sequence == next_) return {};
  auto dropped = dropped_up_to(*connection_);
  if (!dropped) return pass_on(dropped);
  if (next_ > *dropped) return damaged(*connection_, next_, "the record is missing");
  return fail(ErrorCode::not_found,
              "record " + std::to_string(next_) + " was dropped by retention; records up to " +
                  std::to_string(*dropped) + " are gone, their closing balances remain",
              connection_->path());
}

Result<Reader> Reader::open(const std::string& path) {
  auto connection = open_for_reading(path);
  if (!connection) return pass_on(connection);
  return Reader(std::move(*connection));
}

Result<Head> Reader::head() { return read_head(connection_); }

Result<std::uint64_t> Reader::first_sequence() {
  auto dropped = dropped_up_to(connection_);
  if (!dropped) return pass_on(dropped);
  return *dropped + 1;
}

Result<Cursor> Reader::from(std::uint64_t sequence) {
  if (sequence == 0) sequence = 1;
  auto first = first_sequence();
  if (!first) return pass_on(first);
  auto head = read_head(connection_);
  if (!head) return pass_on(head);
  if (sequence < *first || sequence > head->sequence + 1) {
    return fail(ErrorCode::not_found,
                "record " + std::to_string(sequence) + " is not held: the journal has " +
                    std::to_string(*first) + " to " + std::to_string(head->sequence),
                connection_.path());
  }
  auto before = chain_after(connection_, sequence - 1);
  if (!before) return pass_on(before);
  auto select = connection_.prepare(
      "SELECT sequence, time_us, kind, type, payload, chain FROM record"
      " WHERE sequence >= ? ORDER BY sequence LIMIT ?");
  if (!select) return pass_on(select);
  return Cursor(connection_, std::move(*select), sequence, *before);
}

Result<Cursor> Reader::from_time(Time time) {
  auto first = first_sequence();
  if (!first) return pass_on(first);
  auto head = read_head(connection_);
  if (!head) return pass_on(head);
  auto select = connection_.prepare("SELECT time_us FROM record WHERE sequence = ?");
  if (!select) return pass_on(select);
  // Sequences are gapless and time never falls, so the records are their own index by time.
  std::uint64_t low = *first;
  std::uint64_t high = head->sequence + 1;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    select->bind(1, static_cast<std::int64_t>(middle));
    auto row = select->step();
    if (!row) return damaged(connection_, middle, row.error().message);
    if (!*row) return damaged(connection_, middle, "the record is missing");
    const bool earlier = Time(select->column_int(0)) < time;
    select->reset();
    if (earlier) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return from(low);
}

Result<Cursor> Reader::tail(std::uint64_t count) {
  auto first = first_sequence();
  if (!first) return pass_on(first);
  auto head = read_head(connection_);
  if (!head) return pass_on(head);
  const std::uint64_t end = head->sequence + 1;
  return from(end - *first > count ? end - count : *first);
}

Result<Snapshot> Reader::read_snapshot(std::uint64_t sequence) {
  auto row =
      connection_.prepare("SELECT time_us, size, checksum, chain FROM snapshot WHERE sequence = ?");
  if (!row) return pass_on(row);
  row->bind(1, static_cast<std::int64_t>(sequence));
  auto found = row->step();
  if (!found) return pass_on(found);
  if (!*found) return fail(ErrorCode::not_found, "the snapshot is gone", connection_.path());
  Snapshot snapshot;
  snapshot.sequence = sequence;
  snapshot.time = Time(row->column_int(0));
  const auto size = static_cast<std::size_t>(row->column_int(1));
  ChainHash checksum;
  ChainHash chain;
  if (!assign(checksum, row->column_blob(2)) || !assign(chain, row->column_blob(3))) {
    return damaged(connection_, sequence, "its snapshot's row is malformed");
  }
  auto parts =
      connection_.prepare("SELECT bytes FROM snapshot_part WHERE sequence = ? ORDER BY part");
  if (!parts) return pass_on(parts);
  parts->bind(1, static_cast<std::int64_t>(sequence));
  for (;;) {
    auto part = parts->step();
    if (!part) return pass_on(part);
    if (!*part) break;
    const Bytes bytes = parts->column_blob(0);
    if (snapshot.blob.size() + bytes.size() > size) break;
    snapshot.blob.insert(snapshot.blob.end(), bytes.begin(), bytes.end());
  }
  if (snapshot.blob.size() != size || hash_of(snapshot.blob) != checksum) {
    return damaged(connection_, sequence, "its snapshot does not match its checksum");
  }
  // Retention keeps this record, or the segment that ends with it.
  auto at = chain_after(connection_, sequence);
  if (!at) return pass_on(at);
  if (*at != chain) {
    return damaged(connection_, sequence, "its snapshot is of another history");
  }
  return snapshot;
}

Result<LoadedSnapshot> Reader::load_snapshot(SnapshotAge age) {
  auto list = connection_.prepare(age == SnapshotAge::newest
                                      ? "SELECT sequence FROM snapshot ORDER BY sequence DESC"
                                      : "SELECT sequence FROM snapshot ORDER BY sequence");
  if (!list) return pass_on(list);
  std::vector<std::uint64_t> sequences;
  for (;;) {
    auto row = list->step();
    if (!row) return pass_on(row);
    if (!*row) break;
    sequences.push_back(static_cast<std::uint64_t>(list->column_int(0)));
  }
  LoadedSnapshot loaded;
  for (const std::uint64_t sequence : sequences) {
    auto snapshot = read_snapshot(sequence);
    if (snapshot) {
      loaded.snapshot = std::move(*snapshot);
      return loaded;
    }
    loaded.rejected.push_back("snapshot at " + std::to_string(sequence) + ": " +
                              to_string(snapshot.error()));
  }
  auto dropped = dropped_up_to(connection_);
  if (!dropped) return pass_on(dropped);
  if (*dropped == 0) return loaded;
  return damaged(connection_, 1,
                 "records up to " + std::to_string(*dropped) +
                     " were dropped, and no sound snapshot is left to start from" +
                     (loaded.rejected.empty() ? "" : " (" + loaded.rejected.front() + ")"));
}

Result<std::uint64_t> Reader::verify() {
  auto sealed = segments();
  if (!sealed) return pass_on(sealed);
  auto first = first_sequence();
  if (!first) return pass_on(first);
  auto cursor = from(*first);
  if (!cursor) return pass_on(cursor);
  std::uint64_t count = 0;
  for (;;) {
    auto record = cursor->next();
    if (!record) return pass_on(record);
    if (!*record) break;
    ++count;
  }
  auto snapshots = load_snapshot();
  if (!snapshots) return pass_on(snapshots);
  if (!snapshots->rejected.empty()) {
    return fail(ErrorCode::internal, snapshots->rejected.front(), connection_.path());
  }
  return count;
}

}  // namespace neap::journal
