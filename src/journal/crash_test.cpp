// kill -9 at every named point and at every write and fsync: what was reported durable is there,
// in order, and the journal goes on. // G3
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "journal/crash_points.h"
#include "journal/testing/journal_fixture.h"
#include "journal/vfs_probe.h"

namespace neap::journal {
namespace {

using testing::Copy;
using testing::JournalTest;

// Appends, snapshots, seals and drops for ever; writes each durable sequence to `report`.
[[noreturn]] void work_until_killed(const std::string& path, int report) {
  Callbacks callbacks{.on_durable = [report](std::uint64_t sequence) {
    [[maybe_unused]] const auto put = ::write(report, &sequence, sizeof sequence);
  }};
  auto journal = Journal::open({.path = path, .gather = microseconds(50)}, std::move(callbacks));
  if (!journal) ::_exit(3);
  for (int round = 0;; ++round) {
    for (int i = 0; i < 5; ++i) {
      Batch batch;
      const std::uint64_t next = journal->last_sequence() + 1;
      for (std::uint64_t n = next; n < next + 3; ++n) {
        batch.add(Time(static_cast<std::int64_t>(n)), RecordKind::event, 1,
                  bytes_of("n" + std::to_string(n)));
      }
      if (!journal->append(batch)) ::_exit(4);
    }
    if (round % 2 == 1 && !journal->seal(std::vector<std::byte>(64))) ::_exit(5);
    if (round % 3 == 2 && !journal->snapshot(std::vector<std::byte>(1'200'000))) ::_exit(6);
    if (round % 5 == 4 && !journal->drop_raw_before(Time::never())) ::_exit(7);
    if (!journal->flush()) ::_exit(8);
    if (round > 400) ::_exit(9);
  }
}

class Crash : public JournalTest {
 protected:
  // Runs a child that `arm`s its own death; returns the highest sequence it reported durable.
  template <class Arm>
  std::uint64_t run_child(Arm arm) {
    int pipe_ends[2];
    EXPECT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      arm();
      work_until_killed(path_, pipe_ends[1]);
    }
    ::close(pipe_ends[1]);
    std::uint64_t durable = 0;
    for (std::uint64_t n = 0; ::read(pipe_ends[0], &n, sizeof n) == sizeof n;) durable = n;
    ::close(pipe_ends[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    died_ = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    exit_status_ = status;
    return durable;
  }

  void expect_whole(std::uint64_t durable, const std::string& when) {
    // Opening for writing checks the end; reading checks the chain.
    auto journal = Journal::open({.path = path_}, {});
    ASSERT_TRUE(journal) << when << ": " << to_string(journal.error());
    EXPECT_GE(journal->last_sequence(), durable) << when;
    EXPECT_EQ(journal->last_sequence() % 3, 0U) << when << ": a batch was cut in two";
    ASSERT_TRUE(journal->flush()) << when;
    auto reader = Reader::open(path_).value();
    auto verified = reader.verify();
    ASSERT_TRUE(verified) << when << ": " << to_string(verified.error());
    std::vector<Copy> copies;
    ASSERT_EQ(collect(reader.from(reader.first_sequence().value()), copies), "") << when;
    for (const Copy& copy : copies) {
      ASSERT_EQ(copy.payload, "n" + std::to_string(copy.sequence)) << when;
    }
  }

  bool died_ = false;
  int exit_status_ = 0;
};

TEST_F(Crash, G3_AtEveryNamedPoint) {
  std::uint64_t durable = 0;
  std::set<std::string> passed;
  for (int i = 0; i < crash_point_count; ++i) {
    const auto point = static_cast<CrashPoint>(i);
    for (const std::uint64_t nth : {1U, 7U, 23U}) {
      const std::string when = std::string(name_of(point)) + " " + std::to_string(nth);
      const std::uint64_t reported = run_child([&] { kill_at(point, nth); });
      ASSERT_TRUE(died_) << when << ": the point was never passed, status " << exit_status_;
      durable = std::max(durable, reported);
      expect_whole(durable, when);
      passed.insert(std::string(name_of(point)));
    }
  }
  EXPECT_EQ(passed.size(), static_cast<std::size_t>(crash_point_count));
}

std::uint64_t writes_left = 0;  // of the child

FileFault tear_when_due(FileOperation operation) {
  if (operation != FileOperation::write || writes_left-- > 0) return FileFault::none;
  return FileFault::torn_write_and_kill;
}

TEST_F(Crash, G3_InTheMiddleOfAWrite) {
  std::uint64_t durable = 0;
  for (std::uint64_t nth = 0; nth < 48; ++nth) {
    const std::uint64_t reported = run_child([&] {
      writes_left = nth * nth / 8 + nth;  // the first writes one by one, then further out
      file_fault_hook = &tear_when_due;
    });
    ASSERT_TRUE(died_) << nth << " status " << exit_status_;
    durable = std::max(durable, reported);
    expect_whole(durable, "write " + std::to_string(nth));
  }
  EXPECT_GT(durable, 100U);
}

TEST_F(Crash, AFullDiskStopsTheJournalAndLosesNothing) {
  std::uint64_t durable = run_child([] {
    // Files may not grow past 200 kB; without a handler the signal would end the process.
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{200'000, 200'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
  EXPECT_FALSE(died_);
  // append, seal, snapshot, drop or flush reported it; which one is a matter of timing.
  EXPECT_GE(WEXITSTATUS(exit_status_), 4);
  EXPECT_LE(WEXITSTATUS(exit_status_), 8);
  expect_whole(durable, "full disk");
}

}  // namespace
}  // namespace neap::journal
