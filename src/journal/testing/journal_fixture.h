// What the journal's tests share: a directory that goes away, records, ways to read all and to
// tamper.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "journal/journal.h"
#include "journal/reader.h"

namespace neap::journal::testing {

struct Copy {
  std::uint64_t sequence = 0;
  std::int64_t time_us = 0;
  RecordKind kind = RecordKind::event;
  std::uint16_t type = 0;
  std::string payload;
};

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "neap-journal-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    path_ = directory_ + "/journal.db";
  }
  ~JournalTest() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] Journal open(Callbacks callbacks = {}) const {
    auto journal = Journal::open({.path = path_}, std::move(callbacks));
    EXPECT_TRUE(journal.has_value()) << to_string(journal.error());
    return std::move(*journal);
  }

  // The message when the journal cannot be opened for writing, else "".
  [[nodiscard]] std::string open_error() const {
    auto journal = Journal::open({.path = path_}, {});
    return journal ? "" : to_string(journal.error());
  }

  static std::string text_of(std::uint64_t n) { return "payload " + std::to_string(n); }

  static Batch batch_of(std::uint64_t first, std::uint64_t count) {
    Batch batch;
    for (std::uint64_t n = first; n < first + count; ++n) {
      batch.add(Time(static_cast<std::int64_t>(n) * 10), RecordKind::event,
                static_cast<std::uint16_t>(n % 7), bytes_of(text_of(n)));
    }
    return batch;
  }

  // Records 1 to `count`, durable, and the journal closed again.
  void fill(std::uint64_t count) const {
    Journal journal = open();
    for (std::uint64_t n = 1; n <= count; ++n) ASSERT_TRUE(journal.append(batch_of(n, 1)));
    ASSERT_TRUE(journal.flush());
  }

  static std::string collect(Result<Cursor> cursor, std::vector<Copy>& to) {
    if (!cursor) return to_string(cursor.error());
    for (;;) {
      auto record = cursor->next();
      if (!record) return to_string(record.error());
      if (!*record) return "";
      const Bytes payload = (*record)->payload;
      to.push_back({(*record)->sequence,
                    (*record)->time.us,
                    (*record)->kind,
                    (*record)->type,
                    {reinterpret_cast<const char*>(payload.data()), payload.size()}});
    }
  }

  // The message of the first damage found by reading all, else "".
  [[nodiscard]] std::string read_error() const {
    auto reader = Reader::open(path_);
    if (!reader) return to_string(reader.error());
    auto count = reader->verify();
    return count ? "" : to_string(count.error());
  }

  [[nodiscard]] std::vector<Copy> read_all() const {
    std::vector<Copy> copies;
    auto reader = Reader::open(path_);
    EXPECT_TRUE(reader.has_value());
    EXPECT_EQ(collect(reader->from(1), copies), "");
    return copies;
  }

  void tamper(const std::string& sql) const {
    auto connection = Connection::open(path_, Access::read_write);
    ASSERT_TRUE(connection.has_value());
    auto done = connection->execute(sql.c_str());
    ASSERT_TRUE(done.has_value()) << to_string(done.error());
  }

  std::string directory_;
  std::string path_;
};

}  // namespace neap::journal::testing
