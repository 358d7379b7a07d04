#include "journal/journal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "journal/testing/journal_fixture.h"
#include "journal/vfs_probe.h"

namespace neap::journal {
namespace {

using testing::Copy;
using testing::JournalTest;

TEST_F(JournalTest, ReadsBackWhatWasAppendedInOrderAndWithoutGaps) {
  fill(1'500);  // more than one refill of a cursor
  const std::vector<Copy> copies = read_all();
  ASSERT_EQ(copies.size(), 1'500U);
  for (std::uint64_t n = 1; n <= copies.size(); ++n) {
    const Copy& copy = copies[n - 1];
    EXPECT_EQ(copy.sequence, n);
    EXPECT_EQ(copy.time_us, static_cast<std::int64_t>(n) * 10);
    EXPECT_EQ(copy.kind, RecordKind::event);
    EXPECT_EQ(copy.type, n % 7);
    EXPECT_EQ(copy.payload, text_of(n));
  }
  EXPECT_EQ(read_error(), "");
}

TEST_F(JournalTest, GoesOnAfterReopening) {
  fill(10);
  {
    Journal journal = open();
    EXPECT_EQ(journal.last_sequence(), 10U);
    EXPECT_EQ(journal.last_time(), Time(100));
    EXPECT_EQ(journal.durable_sequence(), 10U);
    EXPECT_EQ(journal.append(batch_of(11, 5)).value(), 15U);
  }  // the destructor makes it durable
  EXPECT_EQ(read_all().size(), 15U);
  EXPECT_EQ(open_error(), "");
}

TEST_F(JournalTest, KeepsEmptyLargeAndBinaryPayloads) {
  std::string large(3'000'000, 'x');
  large[1'234'567] = '\0';
  {
    Journal journal = open();
    Batch batch;
    batch.add(Time(1), RecordKind::decision, 65'535, {});
    batch.add(Time(1), RecordKind::aggregate, 2, bytes_of(large));
    batch.add(Time(1), RecordKind::reason, 3, bytes_of(std::string_view("\0\xff", 2)));
    ASSERT_TRUE(journal.append(batch));
  }
  const std::vector<Copy> copies = read_all();
  ASSERT_EQ(copies.size(), 3U);
  EXPECT_EQ(copies[0].payload, "");
  EXPECT_EQ(copies[0].type, 65'535);
  EXPECT_EQ(copies[1].payload, large);
  EXPECT_EQ(copies[2].payload, std::string("\0\xff", 2));
  EXPECT_EQ(copies[2].kind, RecordKind::reason);
}

TEST_F(JournalTest, ReportsDurabilityInOrderAndThroughTheEventfd) {
  std::vector<std::uint64_t> reported;  // of the commit thread, read after flush
  {
    Journal journal = open({.on_durable = [&](std::uint64_t n) { reported.push_back(n); }});
    for (std::uint64_t n = 1; n <= 200; ++n) ASSERT_TRUE(journal.append(batch_of(n, 1)));
    ASSERT_TRUE(journal.flush());
    EXPECT_EQ(journal.durable_sequence(), 200U);
    pollfd poll_for{journal.durable_fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&poll_for, 1, 10'000), 1);
  }
  ASSERT_FALSE(reported.empty());
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  EXPECT_EQ(reported.back(), 200U);
}

TEST_F(JournalTest, OneFsyncServesManyAppendsUnderLoad) {
  constexpr std::uint64_t count = 20'000;
  Journal journal = open();
  const std::uint64_t syncs_before = file_counters().syncs;
  for (std::uint64_t n = 1; n <= count; ++n) {
    while (!journal.has_room()) ASSERT_TRUE(journal.flush());
    ASSERT_TRUE(journal.append(batch_of(n, 1)));
  }
  ASSERT_TRUE(journal.flush());
  const std::uint64_t syncs = file_counters().syncs - syncs_before;
  EXPECT_GT(syncs, 0U);
  EXPECT_GE(count / syncs, 100U);  // the bench asks for 200; a loaded test machine gets slack
  EXPECT_EQ(journal.statistics().records, count);
}

TEST_F(JournalTest, BackPressureRefusesAndLosesNothing) {
  // The commit thread is held in its callback, so the queue can only grow.
  std::promise<void> release;
  std::atomic<int> calls{0};
  Callbacks callbacks{.on_durable = [&, released = release.get_future().share()](std::uint64_t) {
    if (calls.fetch_add(1) == 0) released.wait();
  }};
  auto journal =
      Journal::open({.path = path_, .max_pending_records = 10}, std::move(callbacks)).value();
  ASSERT_TRUE(journal.append(batch_of(1, 1)));
  while (calls == 0) std::this_thread::yield();
  std::uint64_t next = 2;
  while (journal.has_room()) {
    ASSERT_TRUE(journal.append(batch_of(next, 3)));
    next += 3;
  }
  auto refused = journal.append(batch_of(next, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::exhausted);
  EXPECT_EQ(journal.last_sequence(), next - 1);
  release.set_value();
  ASSERT_TRUE(journal.flush());
  EXPECT_TRUE(journal.has_room());
  ASSERT_TRUE(journal.append(batch_of(next, 1)));
  ASSERT_TRUE(journal.flush());
  EXPECT_EQ(read_all().size(), next);
}

TEST_F(JournalTest, RefusesTimeThatFalls) {
  Journal journal = open();
  ASSERT_TRUE(journal.append(batch_of(5, 1)));
  auto refused = journal.append(batch_of(4, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(journal.append(batch_of(5, 1)).value(), 2U);  // equal is fine, nothing was queued
}

TEST_F(JournalTest, ReaderFollowsBesideTheWriter) {
  Journal journal = open();
  ASSERT_TRUE(journal.append(batch_of(1, 3)));
  ASSERT_TRUE(journal.flush());
  auto reader = Reader::open(path_).value();
  auto cursor = reader.from(2).value();
  EXPECT_EQ(cursor.next().value()->sequence, 2U);
  EXPECT_EQ(cursor.next().value()->sequence, 3U);
  EXPECT_FALSE(cursor.next().value().has_value());
  ASSERT_TRUE(journal.append(batch_of(4, 1)));
  ASSERT_TRUE(journal.flush());
  EXPECT_EQ(cursor.next().value()->sequence, 4U);
  EXPECT_FALSE(cursor.next().value().has_value());
}

TEST_F(JournalTest, ReadsByTimeAndTail) {
  fill(100);  // record n has time 10 n
  auto reader = Reader::open(path_).value();
  auto first_at = [&](std::int64_t us) { return reader.from_time(Time(us)).value().position(); };
  EXPECT_EQ(first_at(-5), 1U);
  EXPECT_EQ(first_at(10), 1U);
  EXPECT_EQ(first_at(11), 2U);
  EXPECT_EQ(first_at(500), 50U);
  EXPECT_EQ(first_at(1'000), 100U);
  EXPECT_EQ(first_at(1'001), 101U);
  EXPECT_EQ(reader.tail(3).value().position(), 98U);
  EXPECT_EQ(reader.tail(0).value().position(), 101U);
  EXPECT_EQ(reader.tail(1'000).value().position(), 1U);
  EXPECT_EQ(reader.from(102).error().code, ErrorCode::not_found);
}

TEST_F(JournalTest, ReadsAnEmptyJournal) {
  { Journal journal = open(); }
  EXPECT_TRUE(read_all().empty());
  EXPECT_EQ(read_error(), "");
  EXPECT_EQ(Reader::open(directory_ + "/none.db").error().code, ErrorCode::not_found);
}

TEST_F(JournalTest, AllFilesArePrivate) {
  const mode_t before = ::umask(0);
  {
    Journal journal = open();
    ASSERT_TRUE(journal.append(batch_of(1, 1)));
    ASSERT_TRUE(journal.flush());
    for (const char* suffix : {"", "-wal", "-shm", "-lock"}) {
      struct stat status {};
      ASSERT_EQ(::stat((path_ + suffix).c_str(), &status), 0) << suffix;
      EXPECT_EQ(status.st_mode & 0777, 0600U) << suffix;
    }
  }
  ::umask(before);
}

TEST_F(JournalTest, RefusesASecondWriterAndNamesTheFirst) {
  Journal journal = open();
  const std::string here = open_error();
  EXPECT_NE(here.find("open for writing by process " + std::to_string(::getpid())),
            std::string::npos)
      << here;
  const pid_t child = ::fork();
  if (child == 0) {
    // A lock inherited by fork must not let the child in.
    ::_exit(open_error().find(std::to_string(::getppid())) == std::string::npos ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(journal.append(batch_of(1, 1)));
}

TEST_F(JournalTest, RefusesANewerSchemaAndChangesNothing) {
  fill(3);
  tamper("PRAGMA user_version = 7; PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string error = open_error();
  EXPECT_NE(error.find("schema version 7"), std::string::npos) << error;
  EXPECT_NE(error.find("versions up to 4"), std::string::npos) << error;
  EXPECT_NE(read_error().find("schema version 7"), std::string::npos);
  tamper("PRAGMA user_version = 4");
  EXPECT_EQ(read_all().size(), 3U);
  EXPECT_EQ(open_error(), "");
}

TEST_F(JournalTest, RefusesTheSchemaWhoseRecordsItDoesNotRead) {
  fill(3);
  tamper("PRAGMA user_version = 1; PRAGMA wal_checkpoint(TRUNCATE)");
  EXPECT_NE(open_error().find("schema version 1"), std::string::npos);
  EXPECT_NE(read_error().find("nothing was changed"), std::string::npos);
}

TEST_F(JournalTest, RefusesWhatIsNoJournal) {
  {
    const int file = ::open(path_.c_str(), O_CREAT | O_WRONLY, 0600);
    const std::string garbage(10'000, 'g');
    ASSERT_EQ(::write(file, garbage.data(), garbage.size()), 10'000);
    ::close(file);
  }
  EXPECT_NE(open_error(), "");
  std::filesystem::remove(path_);
  ::close(::open(path_.c_str(), O_CREAT | O_WRONLY, 0600));
  tamper("CREATE TABLE other(a); INSERT INTO other VALUES(1)");
  EXPECT_NE(open_error().find("no journal of neap"), std::string::npos) << open_error();
}

FileFault fail_every_write(FileOperation operation) {
  return operation == FileOperation::write ? FileFault::disk_full : FileFault::none;
}
FileFault fail_every_sync(FileOperation operation) {
  return operation == FileOperation::sync ? FileFault::io_error : FileFault::none;
}

struct FailingFile {
  const char* name;
  FileFaultHook hook;
};
void PrintTo(const FailingFile& failing, std::ostream* out) { *out << failing.name; }

class FailedWrite : public JournalTest, public ::testing::WithParamInterface<FailingFile> {};

TEST_P(FailedWrite, IsReportedOnceAndStopsTheJournal) {
  std::promise<Error> failed;
  {
    Journal journal = open({.on_failure = [&](const Error& error) { failed.set_value(error); }});
    ASSERT_TRUE(journal.append(batch_of(1, 2)));
    ASSERT_TRUE(journal.flush());
    file_fault_hook = GetParam().hook;
    ASSERT_TRUE(journal.append(batch_of(3, 2)));
    EXPECT_FALSE(journal.flush());
    file_fault_hook = nullptr;  // the disk has room again, and still nothing is written
    const Error error = failed.get_future().get();
    EXPECT_EQ(error.code, ErrorCode::unavailable);
    EXPECT_NE(error.message.find("cannot be written"), std::string::npos) << error.message;
    EXPECT_FALSE(journal.append(batch_of(5, 1)));
    EXPECT_FALSE(journal.snapshot({}));
    EXPECT_EQ(journal.durable_sequence(), 2U);
  }
  EXPECT_EQ(open_error(), "");
  EXPECT_EQ(read_error(), "");
  EXPECT_GE(read_all().size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Faults, FailedWrite,
                         ::testing::Values(FailingFile{"write", &fail_every_write},
                                           FailingFile{"sync", &fail_every_sync}),
                         [](const auto& failing) { return std::string(failing.param.name); });

}  // namespace
}  // namespace neap::journal
