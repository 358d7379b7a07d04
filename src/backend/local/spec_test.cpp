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
  task.cgroup->limits.memory_high_bytes = 1 << 29;
  task.cgroup->limits.io_weight = 50;
  task.cgroup->limits.network_bytes = 1'000'000;
  task.cgroup->limits.io = {{"8:0", 1, {}, 3, {}}, {"259:1", {}, 2, {}, 4}};
  task.cgroup->traffic_class = 0x11;
  task.cgroup->required = {"cpu quota"};
  return task;
}

TEST(Spec, ComesBackAsItWas) {
  const std::string text = spec_text(full());
  const auto back = parse_spec(text);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(spec_text(*back), text);
  EXPECT_EQ(back->groups, (std::vector<std::uint32_t>{4, 5}));
  EXPECT_FALSE(back->cgroup->limits.cpu_weight.has_value());
  EXPECT_EQ(back->cgroup->limits, full().cgroup->limits);
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
      {"8:0 rbps=1 ", "8:0 rbps=0 ",
       "cgroup.io: expected texts such as '8:0 rbps=1000 wbps=max riops=max wiops=max'"},
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

TEST(Spec, OneOfAnEarlierVersionIsUnderstood) {  // its task still runs after an upgrade (G3)
  std::string text = spec_text(full());
  const std::size_t begin = text.find(",\"io\":");
  const std::size_t end = text.find(']', text.find("\"required\"")) + 1;
  text.erase(begin, end - begin);
  const auto back = parse_spec(text);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(back->cgroup->limits.io.empty());
  EXPECT_EQ(back->cgroup->traffic_class, 0U);
}

TEST(Spec, EveryPrefixIsRefused) {
  const std::string text = spec_text(full());
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_FALSE(parse_spec(text.substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace neap::local
