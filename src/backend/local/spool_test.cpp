#include "backend/local/spool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>

#include "backend/local/durable_file.h"

namespace neap::local {
namespace {

class SpoolTest : public ::testing::Test {
 protected:
  SpoolTest() {
    std::string name = "/tmp/neap-spool-XXXXXX";
    directory_ = ::mkdtemp(name.data());
  }
  ~SpoolTest() override { std::filesystem::remove_all(directory_); }

  static Report checkpoint(std::int64_t step, std::size_t path_size = 8) {
    return {AllocationId(1), 1, 0, Time(step),
            Checkpoint{step, std::string(path_size, 'p'), 1, {}, {}, {}}};
  }
  void fill(Spool& spool, std::int64_t count, std::size_t path_size = 8) const {
    for (std::int64_t i = 1; i <= count; ++i) spool.append(checkpoint(i, path_size));
    ASSERT_TRUE(spool.sync());
  }
  static std::vector<std::uint64_t> sequences(const std::vector<Report>& reports) {
    std::vector<std::uint64_t> out;
    for (const Report& report : reports) out.push_back(report.sequence);
    return out;
  }

  std::string directory_;
};

TEST_F(SpoolTest, NothingIsReadableBeforeItIsDurable) {
  auto spool = Spool::create(directory_);
  ASSERT_TRUE(spool);
  spool->append(checkpoint(1));
  std::int64_t position = 0;
  EXPECT_EQ(spool->read(position, 100), "");
  ASSERT_TRUE(spool->sync());
  EXPECT_NE(spool->read(position, 100), "");
}

TEST_F(SpoolTest, ReadsOnFromAnySequence) {
  auto spool = Spool::create(directory_);
  ASSERT_TRUE(spool);
  fill(*spool, 1000);
  for (const std::uint64_t after : {0, 1, 499, 999, 1000, 5000}) {
    std::int64_t position = spool->position_after(after);
    std::uint64_t next = after;
    for (std::string lines; !(lines = spool->read(position, 700)).empty();) {
      std::string_view rest = lines;
      while (!rest.empty()) {
        EXPECT_EQ(sequence_of(rest), ++next);
        rest.remove_prefix(rest.find('\n') + 1);
      }
    }
    EXPECT_EQ(next, std::max<std::uint64_t>(after, 1000));
  }
}

TEST_F(SpoolTest, LinesLongerThanTheReadAreWhole) {
  auto spool = Spool::create(directory_);
  ASSERT_TRUE(spool);
  fill(*spool, 2, 60'000);
  std::int64_t position = 0;
  const std::string line = spool->read(position, 10);
  EXPECT_TRUE(line.ends_with('\n'));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST_F(SpoolTest, AcknowledgedReportsLeaveTheFileAndPositionsStayGood) {
  auto spool = Spool::create(directory_);
  ASSERT_TRUE(spool);
  fill(*spool, 1000, 1000);
  std::int64_t reader = spool->position_after(700);
  spool->acknowledge(600);
  EXPECT_LT(spool->file_bytes(), 500'000);
  const std::string lines = spool->read(reader, 1);
  EXPECT_EQ(sequence_of(lines), 701U);
  EXPECT_EQ(sequences(*read_spool(directory_, 998)), (std::vector<std::uint64_t>{999, 1000}));
}

TEST_F(SpoolTest, GrowthIsBoundedWhenAcknowledged) {
  auto spool = Spool::create(directory_);
  ASSERT_TRUE(spool);
  std::int64_t most = 0;
  for (std::int64_t i = 1; i <= 20'000; ++i) {
    spool->append(checkpoint(i));
    if (i % 50 != 0) continue;
    ASSERT_TRUE(spool->sync());
    spool->acknowledge(static_cast<std::uint64_t>(i));
    most = std::max(most, spool->file_bytes());
  }
  EXPECT_LT(most, 300 * 1024);
}

TEST_F(SpoolTest, TheNewestSequenceOutlivesItsAcknowledgement) {
  auto spool = Spool::create(directory_);
  ASSERT_TRUE(spool);
  fill(*spool, 1000, 1000);
  spool->acknowledge(1000);
  EXPECT_EQ(sequences(*read_spool(directory_, 0)), (std::vector<std::uint64_t>{1000}));
}

TEST_F(SpoolTest, TornTailIsLeftOut) {
  auto spool = Spool::create(directory_);
  ASSERT_TRUE(spool);
  fill(*spool, 3);
  const std::string path = directory_ + "/spool";
  for (auto size = std::filesystem::file_size(path) - 1; size > 0; size -= 7) {
    std::filesystem::resize_file(path, size);
    const auto reports = read_spool(directory_, 0);
    ASSERT_TRUE(reports);
    EXPECT_LT(reports->size(), 3U);
    for (std::size_t i = 0; i < reports->size(); ++i) EXPECT_EQ((*reports)[i].sequence, i + 1);
    if (size < 7) break;
  }
}

TEST_F(SpoolTest, FullDiskKeepsReportsUntilThereIsRoom) {
  auto spool = Spool::create(directory_);
  ASSERT_TRUE(spool);
  fill(*spool, 1);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = static_cast<rlim_t>(spool->file_bytes()) + 100;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  spool->append(checkpoint(2));
  spool->append(checkpoint(3));
  const bool refused = !spool->sync();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_DFL);
  EXPECT_TRUE(refused);
  EXPECT_EQ(spool->last_durable(), 1U);
  spool->append(checkpoint(4));
  ASSERT_TRUE(spool->sync());
  EXPECT_EQ(sequences(*read_spool(directory_, 0)), (std::vector<std::uint64_t>{1, 2, 3, 4}));
}

TEST(ReportLine, EveryKindComesBackAsItWas) {
  const ReportBody bodies[] = {Started{42, {"memory max: no"}},
                               Ready{},
                               Unready{"why"},
                               Hello{1, {"a"}},
                               Steps{5, 2, Micros(3)},
                               Checkpoint{1, "/p", 2, Micros(3), Time(4), Micros(5)},
                               Yielding{6},
                               Exited{1, 0, 2, Time(3), 4, "d"},
                               StartFailed{"no"},
                               Lost{"gone"},
                               ContractFault{7, "bad"}};
  for (const ReportBody& body : bodies) {
    const Report report{AllocationId(9), 2, 17, Time(99), body};
    const std::string line = report_line(report);
    EXPECT_EQ(sequence_of(line), 17U);
    const auto back = parse_report_line(line);
    ASSERT_TRUE(back) << line << back.error().message;
    EXPECT_EQ(report_line(*back), line);
    EXPECT_EQ(back->body.index(), body.index());
  }
}

TEST(ReportLine, RefusesWhatIsNotOne) {
  for (const char* line : {"", "{}", R"({"sequence":0,"epoch":1,"allocation":1,"at_us":1})",
                           R"({"sequence":1,"epoch":1,"allocation":1,"at_us":1,"type":"x"})"}) {
    EXPECT_FALSE(parse_report_line(line)) << line;
  }
}

}  // namespace
}  // namespace neap::local
