#include "config/document.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "config/text.h"

namespace neap::config {
namespace {

// The problems of `text`, or "accepted".
std::string problems_of(std::string_view text) {
  Problems problems("f.yaml");
  const auto root = parse_document(text, problems);
  EXPECT_EQ(root.has_value(), problems.empty());
  return root ? "accepted" : problems.text();
}

TEST(Document, KeepsLinesQuotesAndOrder) {
  Problems problems("f.yaml");
  const auto root = parse_document("b: 1\na:\n  - \"2\"\n  - {c: x}\n", problems);
  ASSERT_TRUE(root) << problems.text();
  ASSERT_EQ(root->members.size(), 2u);
  EXPECT_EQ(root->members[0].key, "b");
  EXPECT_EQ(root->members[1].line, 2);
  const Node& list = root->members[1].value;
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_TRUE(list.items[0].quoted);
  EXPECT_FALSE(root->members[0].value.quoted);
  EXPECT_EQ(list.items[1].find("c")->line, 4);
}

// Each is bad input of G5: refused with its line, never repaired in silence.
TEST(Document, G5_RefusesWhatPeopleRegret) {
  struct Row {
    const char* text;
    const char* expected;
  };
  const Row rows[] = {
      {"a: 1\nb: 2\na: 3\n", "f.yaml:3: a: given twice in one mapping, first near line 1"},
      {"a: &x 1\nb: 2\n", "f.yaml:1: a: an anchor (&name)"},
      {"a: {b: &x [1]}\n", "f.yaml:1: a.b: an anchor"},
      {"a: *x\n", "f.yaml:1: "},
      {"a: !!binary aGk=\n", "f.yaml:1: a: the type tag"},
      {"a: 1\n---\nb: 2\n", "more than one YAML document"},
      {"[a, b]: 1\n", "cannot be a key"},
      {"a:\n\tb: 1\n", "f.yaml:2: a tab in the indentation"},
      {"a: [1, 2\n", "f.yaml"},
      {"a: 'open\n", "f.yaml:1: a quote that is never closed"},
      {"b: 1\na: \"open \\\" \n", "f.yaml:2: a quote that is never closed"},
      {"a: 1\nb: \"x\\0y\"\n", "f.yaml:2: b: holds a zero byte"},
      {"\"a\\0\": 1\n", "f.yaml:1: holds a zero byte"},
      {"a: [b, \"\\u0000\"]\n", "f.yaml:1: a[1]: holds a zero byte"},
      {"", "the file is empty"},
      {"# only a comment\n", "f.yaml"},
  };
  for (const Row& row : rows) {
    EXPECT_NE(problems_of(row.text).find(row.expected), std::string::npos)
        << row.text << " gave: " << problems_of(row.text);
  }
}

TEST(Document, G5_RefusesBinaryGarbageWithItsLine) {
  EXPECT_EQ(problems_of(std::string_view("a: 1\n\0b", 7)),
            "f.yaml:2: not text: byte 0x00; expected YAML in UTF-8");
  EXPECT_EQ(problems_of("\x7f"
                        "ELF\x02\x01"),
            "f.yaml:1: not text: byte 0x7f; expected YAML in UTF-8");
  EXPECT_EQ(problems_of("a: \xff\xfe"), "f.yaml:1: not text: byte 0xff; expected YAML in UTF-8");
  // Overlong, a surrogate, beyond the last code point: as a value, as a key, as an escape.
  for (const char* bytes :
       {"\xe0\x91\x9a", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_NE(problems_of(std::string("a: ") + bytes), "") << bytes;
    EXPECT_NE(problems_of(std::string(bytes) + ": a"), "") << bytes;
  }
  EXPECT_NE(problems_of("a: \"\\ud800\""), "");
  EXPECT_EQ(problems_of("a: \xc3"), "f.yaml:1: not text: byte 0xc3; expected YAML in UTF-8");
  EXPECT_EQ(problems_of("a: \xc3\xa4"), "accepted");
}

TEST(Document, TakesClosedQuotes) {
  for (const char* text :
       {"a: 'it''s'\n", "a: \"x \\\" y\"", "a: ''", "a: 'two\n  lines'\nb: 'x'"}) {
    EXPECT_EQ(problems_of(text), "accepted") << text;
  }
  EXPECT_EQ(problems_of("\xef\xbb\xbf"
                        "a: 'b'"),
            "accepted");
}

TEST(Document, G5_RefusesDeepNesting) {
  const auto nested = [](int levels) {
    return "a: " + std::string(levels, '[') + std::string(levels, ']') + "\n";
  };
  EXPECT_EQ(problems_of(nested(depth_max - 1)), "accepted");
  EXPECT_NE(problems_of(nested(depth_max)).find("nested deeper than 32 levels"), std::string::npos);
  // Past the parser's own limit, and with nothing that closes.
  EXPECT_NE(problems_of(nested(20'000)), "accepted");
  EXPECT_NE(problems_of("a: " + std::string(100'000, '[')), "accepted");
}

TEST(Document, G5_RefusesTooManyValues) {
  std::string text = "a: [";
  for (int i = 0; i < 110'000; ++i) text += "1,";
  EXPECT_NE(problems_of(text + "1]\n").find("more than 100000 values"), std::string::npos);
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/neap-config-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    ::unlink((folder_ + "/f").c_str());
    ::rmdir(folder_.c_str());
  }
  std::string folder_;
};

TEST_F(Files, ReadsAFile) {
  std::ofstream(folder_ + "/f") << "pool: {}\n";
  const auto text = read_file(folder_ + "/f");
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "pool: {}\n");
}

// 100 MB: refused by its size. The file is sparse, and reading it would take its time.
TEST_F(Files, G5_RefusesALargeFileBySize) {
  std::ofstream(folder_ + "/f") << "a";
  ASSERT_EQ(::truncate((folder_ + "/f").c_str(), 100'000'000), 0);
  const auto text = read_file(folder_ + "/f");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::too_large);
  EXPECT_EQ(text.error().context, folder_ + "/f");
  EXPECT_EQ(text.error().message, "over the limit of 1024 KiB for a file");
}

TEST_F(Files, G5_NamesWhatIsNotAFile) {
  EXPECT_EQ(read_file(folder_ + "/none").error().code, ErrorCode::not_found);
  EXPECT_EQ(read_file(folder_).error().message, "not a regular file");
  ASSERT_EQ(::mkfifo((folder_ + "/f").c_str(), 0600), 0);
  EXPECT_EQ(read_file(folder_ + "/f").error().message, "not a regular file");
}

TEST(Problems, AreBoundedAndSayHowManyMore) {
  Problems problems("f");
  for (int i = 0; i < 60; ++i) problems.add(i + 1, "x", "wrong");
  EXPECT_EQ(problems.found().size(), Problems::limit);
  EXPECT_EQ(problems.dropped(), 10u);
  EXPECT_TRUE(problems.text().ends_with("and 10 more"));
  const Error error = problems.to_error();
  EXPECT_EQ(error.context, "f:1: x");
  EXPECT_TRUE(error.message.starts_with("wrong\nf:2: x: wrong"));
}

TEST(Nearest, SuggestsOnlyWhatIsNear) {
  const std::vector<std::string_view> names = {"total_gpus", "elastic_buffer", "name"};
  EXPECT_EQ(nearest("total_gpu", names), "total_gpus");
  EXPECT_EQ(nearest("elastic_bufer", names), "elastic_buffer");
  EXPECT_EQ(nearest("nmae", names), "name");
  EXPECT_EQ(nearest("nmea", names), "");
  EXPECT_EQ(nearest("nam", names), "name");
  EXPECT_EQ(nearest("quota", names), "");
}

}  // namespace
}  // namespace neap::config
