// G5: keys are stored as digests in a file that others cannot read.
#include "config/api_keys.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "config/sha256.h"

namespace neap::config {
namespace {

class ApiKeys : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/neap-keys-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/keys";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string text() const {
    std::ifstream in(path_);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }

  std::string folder_;
  std::string path_;
};

TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  // Lengths around the place where the padding needs a block of its own.
  EXPECT_NE(sha256_hex(std::string(55, 'x')), sha256_hex(std::string(56, 'x')));
}

TEST_F(ApiKeys, G5_AKeyIsShownOnceAndStoredAsItsDigest) {
  const auto made = create_key(path_, "vision", "normal", Time(7));
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_TRUE(made->secret.starts_with("neap-"));
  EXPECT_EQ(made->secret.size(), 5U + 64U);
  EXPECT_EQ(made->key.digest, sha256_hex(made->secret));
  EXPECT_EQ(text().find(made->secret.substr(5)), std::string::npos);
  struct stat known {};
  ASSERT_EQ(stat(path_.c_str(), &known), 0);
  EXPECT_EQ(known.st_mode & 0777U, 0600U);
  const auto keys = load_keys(path_);
  ASSERT_TRUE(keys);
  ASSERT_EQ(keys->size(), 1U);
  EXPECT_EQ(keys->front(), made->key);
  ASSERT_TRUE(revoke_key(path_, made->key.id));
  EXPECT_TRUE(load_keys(path_)->empty());
  EXPECT_EQ(revoke_key(path_, made->key.id).error().code, ErrorCode::not_found);
}

TEST_F(ApiKeys, G5_WritersAtOneTimeLoseNoKey) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      for (int n = 0; n < 5; ++n) EXPECT_TRUE(create_key(path_, "team", "high", Time(1)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(load_keys(path_)->size(), 40U);
}

TEST_F(ApiKeys, G5_AFileThatOthersCanReadIsRefused) {
  ASSERT_TRUE(create_key(path_, "vision", "high", Time(7)));
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);
  EXPECT_EQ(load_keys(path_).error().code, ErrorCode::permission_denied);
}

TEST_F(ApiKeys, G5_FaultsNameTheLineAndTheField) {
  EXPECT_TRUE(load_keys(folder_ + "/none")->empty());
  const auto fault = parse_keys("# comment\n\nabc def vision high 1\n", "/k");
  ASSERT_FALSE(fault);
  EXPECT_EQ(to_string(fault.error()), "/k:3: id: is no key; expected 12 of 0-9a-f");
  const std::string id(12, 'a'), digest(64, 'a');
  const std::pair<std::string, const char*> faults[] = {
      {id + " " + std::string(64, 'b') + " vision high 1", "/k:1: SHA-256"},
      {id + " " + digest + " vi/sion high 1", "/k:1: team"},
      {id + " " + digest + " vision urgent 1", "/k:1: class"},
      {id + " " + digest + " vision high soon", "/k:1: created"},
      {id + " " + digest + " vision high 1 2", "/k:1: created"},
  };
  for (const auto& [line, place] : faults) {
    const auto found = parse_keys(line + "\n", "/k");
    ASSERT_FALSE(found) << line;
    EXPECT_EQ(found.error().context, place);
    EXPECT_NE(found.error().message.find("expected"), std::string::npos);
  }
  EXPECT_EQ(create_key(path_, "a b", "high", Time(1)).error().context, "team");
  EXPECT_EQ(create_key(path_, "a", "urgent", Time(1)).error().context, "class");
}

}  // namespace
}  // namespace neap::config
