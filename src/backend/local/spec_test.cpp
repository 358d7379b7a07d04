#include "backend/local/spec.h"

#include <gtest/gtest.h>

namespace neap::local {
namespace {

SupervisedTask full() {
  SupervisedTask task;
  task.allocation = AllocationId(7);
  task.argv = {"/bin/echo", "a b", ""};
  task.environment = {"A=1", "B="};
  task.uid = 1000;
  task.groups = {4, 5};
  task.watch = "out/*";
  task.signals = true;
  task.service = SupervisedService{};
  task.service->port = 20'001;
  task.cgroup = SupervisedGroup{"/sys/fs/cgroup", "neap/p/7", {}};
  task.cgroup->limits.memory_max_bytes = 1 << 30;
  task.cgroup->limits.cpus = "0-3";
  return task;
}

TEST(Spec, ComesBackAsItWas) {
  const std::string text = spec_text(full());
  const auto back = parse_spec(text);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(spec_text(*back), text);
  EXPECT_EQ(back->groups, (std::vector<std::uint32_t>{4, 5}));
  EXPECT_FALSE(back->cgroup->limits.cpu_weight.has_value());
}

TEST(Spec, ErrorsNameTheField) {
  const struct {
    std::string was;
    std::string is;
    std::string message;
  } cases[] = {
      {"\"epoch\":1", "\"epoch\":-1", "epoch: expected an integer from 0 to 4294967295"},
      {"\"A=1\"", "\"A\"", "environment: expected NAME=value, not 'A'"},
      {"\"/bin/echo\"", "\"\"", "argv: expected a program"},
      {"\"a b\"", "\"a\\u0000b\"", "argv: must not hold a zero byte"},
      {"\"working_directory\":\"/\"", "\"working_directory\":\"tmp\"",
       "working_directory: expected an absolute path"},
      {"\"health_path\":\"/health\"", "\"health_path\":\"/a b\"",
       "service.health_path: expected a path that begins with / and has no blanks"},
      {"neap/p/7", "neap/../x", "cgroup.name: expected a relative path without .."},
      {"\"signals\":1", "\"signals\":1,\"sgnals\":1", "sgnals: no such field"},
      {"\"port\":20001", "\"port\":0", "service.port: expected an integer from 1 to 65535"},
  };
  for (const auto& one : cases) {
    std::string text = spec_text(full());
    const std::size_t at = text.find(one.was);
    ASSERT_NE(at, std::string::npos) << one.was;
    const auto back = parse_spec(text.replace(at, one.was.size(), one.is));
    ASSERT_FALSE(back) << one.is;
    EXPECT_EQ(back.error().message, one.message);
  }
}

TEST(Spec, EveryPrefixIsRefused) {
  const std::string text = spec_text(full());
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_FALSE(parse_spec(text.substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace neap::local
